// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "emulator/model/model.h"
#include "suite.h"

namespace kernelpro::golden {
namespace {

constexpr std::string_view kHead = R"(# Modelled and measured: 51 kernels on an H200

Written by `h200_model_report`; do not edit. Model run: {date}, on a machine without a GPU.

- Measured: NVIDIA H200 SXM, 132 SMs, 1980 MHz, CUDA 13.0 toolchain (`-arch=sm_90`), driver version not recorded;
  November 2026. Times are the median of 20 CUDA-event runs, the L2 flushed by a 256 MB fill before each. Counters
  are Nsight Compute's. Data and sources: `tests/data/h200`.
- Modelled: the same launches at full size, emulated by sampling (two cohorts of CTAs), constants from
  `src/emulator/model/specs/h200.toml`.
- Command: `build/release/bin/h200_model_report . {date}`

**What these figures are not.** The suite was used while the model was built: the CTA launch rate, the CTA overhead,
the atomic rate and the launch overhead were set on it. A prototype of the same model predicted 22 further kernels
before they were timed: Spearman 0.926, 91 % within 2x, median error 14 %. That is the honest figure for new kernels.
Times from 4 us to 19 ms flatter a rank correlation. Matrix instructions, half precision and spills are in no kernel here.

)";

std::string Summary(const Accuracy& a) {
  return fmt::format(
      "| | |\n|---|---|\n"
      "| Spearman rank correlation | {:.3f} |\n"
      "| within 2x | {:.1f} % |\n"
      "| within 1.5x | {:.1f} % |\n"
      "| geometric mean factor | {:.2f} |\n"
      "| mean absolute error | {:.1f} % |\n"
      "| median absolute error | {:.1f} % |\n"
      "| global sector counts within 0.5 % of Nsight Compute | {} of {} |\n\n",
      a.spearman, a.within_2x * 100, a.within_1_5x * 100, a.geometric_factor, a.mape * 100,
      a.median_error * 100, a.sector_pairs_right, a.sector_pairs);
}

/// Sector counts need more digits than the rest: the bar is 0.5 %.
std::string Cell(const Pair& pair, int digits) {
  return pair.ncu == 0 ? "-" : fmt::format("{:.{}f}", pair.Ratio(), digits);
}

std::string TopBounds(const model::ModelledTime& modelled) {
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, modelled.bounds.size()); ++i) {
    const model::Bound& bound = modelled.bounds[i];
    out += fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", bound.name, bound.share * 100);
  }
  return out;
}

}  // namespace

std::string MarkdownReport(std::span<const Row> rows, const model::GpuSpec& spec,
                           std::string_view date) {
  std::string out = fmt::format(fmt::runtime(kHead), fmt::arg("date", date));
  out += Summary(Judge(rows));
  out += fmt::format(
      "Columns: us measured; us modelled ({} spec); modelled / measured; the two largest bounds, "
      "as "
      "shares of the largest; then ours / Nsight Compute for 32-byte sectors of global loads and "
      "stores, wavefronts of shared loads and stores, and warp instructions; L1 hit rate of global "
      "loads, ours and theirs. A dash: the kernel has none.\n\n"
      "| kernel | measured | modelled | ratio | bounds | ld sectors | st sectors | ld wavefronts | "
      "st wavefronts | instructions | L1 hits |\n|---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|\n",
      spec.name);
  for (const Row& row : rows) {
    fmt::format_to(
        std::back_inserter(out),
        "| {} | {:.1f} | {:.1f} | {:.2f} | {} | {} | {} | {} | {} | {} | {:.2f} / {:.2f} |\n",
        row.name, row.measured_us, row.modelled.time_us, row.Ratio(), TopBounds(row.modelled),
        Cell(row.load_sectors, 3), Cell(row.store_sectors, 3), Cell(row.load_wavefronts, 2),
        Cell(row.store_wavefronts, 2), Cell(row.instructions, 2), row.l1_hit_rate.ours,
        row.l1_hit_rate.ncu);
  }
  return out;
}

}  // namespace kernelpro::golden
