// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "diagnose/rules/formula.h"
#include "kernelpro/tool.h"

namespace kernelpro::diagnose {

/// The names that a rule may use beside metrics. Prefix or name, and what it is:
///   u.R, n.R      utilisation of resource R, 0..1: against the peak, against what it sustains
///   I, U          issue slots used; the largest n.R
///   T             seconds that the kernel ran, launch cost left out
///   stall.REASON  share of the warp latency ("stall.long_scoreboard"), from counters or sampling
///   class.ID      membership ("class.LATENCY_BOUND")
///   task.NAME     "task.compulsory_bytes", "task.flops", "task.floor_us" of this kernel
///   hw.NAME       sm_count, clock_hz, dram_bytes_per_s, ...
///   grid, block, warps, time_us, share, waves_of_blocks
///   system names  "timeline.idle.pct", "nvml.power", "build.arch"
[[nodiscard]] std::optional<double> ScopeValue(const ToolInput& input, std::string_view name);

/// True when ScopeValue gives the name a meaning for some profile: catches misspelt names in rules.
/// Metric names ("a__b.c", "sass.x", ...) always pass.
[[nodiscard]] bool IsScopeName(std::string_view name);

/// Rule values by name, over ScopeValue.
[[nodiscard]] FormulaScope MakeScope(const ToolInput& input,
                                     const std::map<std::string, std::optional<double>>& values);

}  // namespace kernelpro::diagnose
