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
Times from 4 us to 18 ms flatter a rank correlation. Matrix instructions, half precision and spills are in no kernel here.

)";

constexpr std::string_view kTail = R"(
## What was changed here, and on what evidence

No constant was set from the times below; the spec holds the prototype's. Differences from the prototype:

- Atomics queue by warp-level requests to a sector. The engine first counted lanes only, which made red_atomic, where eight
  lanes share a sector, eight times too slow.
- A store takes an L1 line, and resident CTAs are switched every 8 instructions instead of 24: both from Nsight Compute's
  L1 hit rates (sm_warp 0.25 -> 0.15, measured 0.15; copy_chunk32 0.80 -> 0.25, measured 0.04). The times followed.
- A 128-bit shared load takes at least two wavefronts, also when all lanes read one address.
- Integer to f32 conversions (I2FP), f16 packing (F2FP) and 64-bit logic cost what ptxas 13.0 emits for them.
- The barrier takes the 20 cycles measured for it (prototype: 25).

## Known deviations

- copy_chunk32: each thread walks its own 128 bytes; the GPU fetches from DRAM eleven times what it needs, the model less.
  Right rank, half the time.
- diverge: branches that reconverge cost BSSY and BSYNC instructions that PTX does not show (instructions 0.72).
- hist_s: probably shared atomics to equal addresses within a warp are replayed more often than the two passes counted.
- st3d: the sampled CTAs touch the border of the volume less often than all do (load sectors 1.10).
- copy1 and its like: reading parameters and special registers is free in the cost table and an instruction each in SASS
  (instructions 0.62); no kernel here is bound by it.
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
