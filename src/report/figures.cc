// SPDX-License-Identifier: Apache-2.0
#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

namespace kernelpro::report {
namespace {

struct Figure {
  std::string_view label;
  std::string_view metric;
  std::string_view unit;
};

struct Line {
  std::string_view title;
  std::initializer_list<Figure> figures;
};

// Names are those of docs/profile_format.md; the groups follow Nsight Compute's sections.
const Line kLines[] = {
    {"launch",
     {{"blocks", "launch__grid_size", ""},
      {"threads a block", "launch__block_size", ""},
      {"registers a thread", "launch__registers_per_thread", ""},
      {"shared memory a block", "launch__shared_mem_per_block", " B"},
      {"waves", "launch__waves_per_multiprocessor", ""}}},
    {"resident",
     {{"warps active", "sm__warps_active.avg.pct_of_peak_sustained_active", " %"},
      {"blocks an SM by registers", "launch__occupancy_limit_registers", ""},
      {"by shared memory", "launch__occupancy_limit_shared_mem", ""},
      {"by warps", "launch__occupancy_limit_warps", ""}}},
    {"busy",
     {{"DRAM", "dram__bytes.sum.pct_of_peak_sustained_elapsed", " %"},
      {"L2", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed", " %"},
      {"L1 and shared data", "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
       " %"},
      {"LSU queue", "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed", " %"},
      {"FMA", "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed", " %"},
      {"ALU", "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed", " %"},
      {"FP64", "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed", " %"},
      {"tensor", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", " %"}}},
    {"model",
     {{"latency", "model.latency.pct", " % of the time"},
      {"launch", "model.launch_overhead.pct", " %"},
      {"starting blocks", "model.cta_launch.pct", " %"}}},
    {"warp instructions",
     {{"all", "smsp__inst_executed.sum", ""},
      {"global loads", "smsp__sass_inst_executed_op_global_ld.sum", ""},
      {"global stores", "smsp__sass_inst_executed_op_global_st.sum", ""},
      {"shared loads", "smsp__sass_inst_executed_op_shared_ld.sum", ""},
      {"shared stores", "smsp__sass_inst_executed_op_shared_st.sum", ""},
      {"async copies", "smsp__sass_inst_executed_op_ldgsts.sum", ""},
      {"16-byte accesses", "smsp__sass_inst_executed_op_memory_128b.sum", ""},
      {"4-byte accesses", "smsp__sass_inst_executed_op_memory_32b.sum", ""}}},
    {"thread instructions",
     {{"FFMA", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", ""},
      {"FADD", "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", ""},
      {"FMUL", "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", ""},
      {"FP64", "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum", ""},
      {"integer", "smsp__sass_thread_inst_executed_op_integer_pred_on.sum", ""},
      {"memory", "smsp__sass_thread_inst_executed_op_memory_pred_on.sum", ""},
      {"control", "smsp__sass_thread_inst_executed_op_control_pred_on.sum", ""}}},
    {"memory",
     {{"DRAM read", "dram__bytes_read.sum", " B"},
      {"DRAM written", "dram__bytes_write.sum", " B"},
      {"bytes used of a load's 32-byte sector",
       "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio", ""},
      {"of a store's", "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio", ""},
      {"L1 hits", "l1tex__t_sector_hit_rate.pct", " %"},
      {"L2 hits", "lts__t_sector_hit_rate.pct", " %"},
      {"shared conflicts of loads", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", ""},
      {"of stores", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", ""},
      {"spilled", "ptxas.spill_store_bytes", " B a thread"}}},
};

const KernelProfile* Dominant(const Profile& profile) {
  const auto found = std::max_element(
      profile.kernels.begin(), profile.kernels.end(),
      [](const KernelProfile& a, const KernelProfile& b) { return a.time_us < b.time_us; });
  return found == profile.kernels.end() ? nullptr : &*found;
}

std::optional<double> Value(const KernelProfile* kernel, std::string_view metric) {
  if (kernel == nullptr) {
    return std::nullopt;
  }
  const auto found = kernel->metrics.find(std::string(metric));
  return found == kernel->metrics.end() ? std::nullopt : std::optional(found->second.value);
}

/// Three digits with the suffix that engineers use.
std::string Short(double value) {
  struct Suffix {
    double from, unit;
    const char* name;
  };

  // From where three digits would round up to a thousand of the smaller unit.
  constexpr Suffix kSuffixes[] = {{999.5e6, 1e9, "G"}, {999.5e3, 1e6, "M"}, {1e4, 1e3, "k"}};
  for (const Suffix& suffix : kSuffixes) {
    if (std::abs(value) >= suffix.from) {
      return fmt::format("{:.3g}{}", value / suffix.unit, suffix.name);
    }
  }
  // Three digits of a thousand and more would be 1.23e+03.
  const bool whole = value == std::floor(value) || std::abs(value) >= 999.5;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

}  // namespace

std::string FiguresText(const Profile& profile, const Profile* before) {
  const KernelProfile* const kernel = Dominant(profile);
  const KernelProfile* const was = before == nullptr ? nullptr : Dominant(*before);
  std::string text;
  for (const Line& line : kLines) {
    std::string figures;
    for (const Figure& figure : line.figures) {
      const std::optional<double> now = Value(kernel, figure.metric);
      const std::optional<double> then = Value(was, figure.metric);
      // A zero that was a zero says nothing: no tensor core, no spill.
      if (!now || (*now == 0 && then.value_or(0) == 0)) {
        continue;
      }
      const std::string shown = Short(*now);
      figures += fmt::format("{}{} {}", figures.empty() ? "" : ", ", figure.label, shown);
      if (then && Short(*then) != shown) {
        figures += fmt::format(" (was {})", Short(*then));
      }
      figures += figure.unit;
    }
    if (!figures.empty()) {
      text += fmt::format("  {:<20}{}\n", line.title, figures);
    }
  }
  return text.empty() ? text : "figures\n" + text;
}

}  // namespace kernelpro::report
