// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compile_suite.h"
#include "emulator/model/model.h"
#include "measurements.h"

namespace kernelpro::golden {

/// A counter of ours beside Nsight Compute's, both for the whole grid.
struct Pair {
  double ours = 0, ncu = 0;

  /// ours / ncu; 1 when both are zero.
  [[nodiscard]] double Ratio() const;
};

struct Row {
  std::string name;
  double measured_us = 0;
  model::ModelledTime modelled;
  Pair load_sectors, store_sectors, load_wavefronts, store_wavefronts, instructions, l1_hit_rate;
  double emulation_s = 0;

  [[nodiscard]] double Ratio() const { return modelled.time_us / measured_us; }
};

/// Runs each variant at its full size, sampled, and models its time.
[[nodiscard]] Result<std::vector<Row>> RunSuite(const CompiledSuite& suite,
                                                std::span<const Variant> variants,
                                                const model::GpuSpec& spec);

struct Accuracy {
  double spearman = 0;
  double within_2x = 0, within_1_5x = 0;  ///< shares
  double geometric_factor = 0;            ///< exp(mean |log ratio|)
  double mape = 0, median_error = 0;
  int sector_pairs = 0, sector_pairs_right = 0;  ///< within 0.5 % of ncu
};

[[nodiscard]] Accuracy Judge(std::span<const Row> rows);
/// "copy1  202.98 198.20 0.98  dram ..." for a person.
[[nodiscard]] std::string FormatRow(const Row& row);

}  // namespace kernelpro::golden
