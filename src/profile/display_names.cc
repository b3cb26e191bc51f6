// SPDX-License-Identifier: Apache-2.0
#include "profile/display_names.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "profile/metric_names.h"
#include "profile/metric_number.h"

namespace kernelpro {
namespace {

struct DisplayName {
  std::string_view display;
  std::string_view unit;  ///< in base units; empty: any
  std::string_view metric;
};

constexpr std::string_view kMemoryPct =
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
constexpr std::string_view kDramThroughputPct =
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";
constexpr std::string_view kSmPct = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr std::string_view kL1ThroughputPct = "l1tex__throughput.avg.pct_of_peak_sustained_active";
constexpr std::string_view kL2ThroughputPct = "lts__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr std::string_view kDramClock = "dram__cycles_elapsed.avg.per_second";

/// In the order of the sections. Names of 2020 stand behind those that replaced them.
constexpr DisplayName kDisplayNames[] = {
    {"Duration", "ns", metric::kDuration},
    {"Elapsed Cycles", "", metric::kCyclesElapsed},
    {"SM Frequency", "", metric::kClock},
    {"DRAM Frequency", "", kDramClock},
    {"Memory Frequency", "", kDramClock},
    {"SM Active Cycles", "", metric::kCyclesActive},
    {"Memory Throughput", "%", kMemoryPct},
    {"Memory [%]", "", kMemoryPct},
    {"Memory Throughput", "byte/s", "dram__bytes.sum.per_second"},
    {"DRAM Throughput", "%", kDramThroughputPct},
    {"SOL FB", "%", kDramThroughputPct},
    {"SOL DRAM", "%", kDramThroughputPct},
    {"Compute (SM) Throughput", "%", kSmPct},
    {"SM [%]", "", kSmPct},
    {"L1/TEX Cache Throughput", "%", kL1ThroughputPct},
    {"SOL L1/TEX Cache", "%", kL1ThroughputPct},
    {"SOL TEX", "%", kL1ThroughputPct},
    {"L2 Cache Throughput", "%", kL2ThroughputPct},
    {"SOL L2 Cache", "%", kL2ThroughputPct},
    {"SOL L2", "%", kL2ThroughputPct},

    {"Executed Ipc Active", "", "sm__inst_executed.avg.per_cycle_active"},
    {"Executed Ipc Elapsed", "", "sm__inst_executed.avg.per_cycle_elapsed"},
    {"Issued Ipc Active", "", "sm__inst_issued.avg.per_cycle_active"},
    {"Issue Slots Busy", "%", "sm__inst_issued.avg.pct_of_peak_sustained_active"},
    {"SM Busy", "%", "sm__instruction_throughput.avg.pct_of_peak_sustained_active"},

    {"Mem Busy", "%", "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Max Bandwidth", "%",
     "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Mem Pipes Busy", "%", "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"L1/TEX Hit Rate", "%", metric::kL1HitPct},
    {"L2 Hit Rate", "%", metric::kL2HitPct},

    {"Active Warps Per Scheduler", "", "smsp__warps_active.avg.per_cycle_active"},
    {"Eligible Warps Per Scheduler", "", metric::kWarpsEligible},
    {"Issued Warp Per Scheduler", "", metric::kIssueActive},
    {"No Eligible", "%", "smsp__issue_inst0.avg.pct_of_peak_sustained_active"},
    {"One or More Eligible", "%", "smsp__issue_active.avg.pct_of_peak_sustained_active"},

    {"Warp Cycles Per Issued Instruction", "", metric::kWarpLatency},
    {"Warp Cycles Per Executed Instruction", "",
     "smsp__average_warps_active_per_inst_executed.ratio"},
    {"Avg. Active Threads Per Warp", "", metric::kLanesActive},
    {"Avg. Not Predicated Off Threads Per Warp", "", metric::kLanesOn},

    {"Executed Instructions", "", metric::kInstructions},
    {"Issued Instructions", "", "smsp__inst_issued.sum"},
    {"Avg. Executed Instructions Per Scheduler", "", "smsp__inst_executed.avg"},
    {"Avg. Issued Instructions Per Scheduler", "", "smsp__inst_issued.avg"},

    {"Block Size", "", metric::kBlockSize},
    {"Grid Size", "", metric::kGridSize},
    {"Cluster Size", "", "launch__cluster_size"},
    {"Threads", "", "launch__thread_count"},
    {"# SMs", "", "launch__sm_count"},
    {"Registers Per Thread", "", metric::kRegisters},
    {"Waves Per SM", "", metric::kWaves},
    {"Function Cache Configuration", "", "launch__func_cache_config"},
    {"Cluster Scheduling Policy", "", "launch__cluster_scheduling_policy"},
    {"Shared Memory Configuration Size", "byte", "launch__shared_mem_config_size"},
    {"Driver Shared Memory Per Block", "", "launch__shared_mem_per_block_driver"},
    {"Dynamic Shared Memory Per Block", "", metric::kSharedDynamic},
    {"Static Shared Memory Per Block", "", metric::kSharedStatic},

    {"Theoretical Active Warps per SM", "", "sm__maximum_warps_avg_per_active_cycle"},
    {"Theoretical Occupancy", "%", metric::kWarpsMaximumPct},
    {"Achieved Occupancy", "%", metric::kWarpsActivePct},
    {"Achieved Active Warps Per SM", "", "sm__warps_active.avg.per_cycle_active"},
    {"Block Limit Registers", "", metric::kLimitRegisters},
    {"Block Limit Shared Mem", "", metric::kLimitShared},
    {"Block Limit Warps", "", metric::kLimitWarps},
    {"Block Limit SM", "", metric::kLimitBlocks},
    {"Block Limit Barriers", "", "launch__occupancy_limit_barriers"},
    {"Max Active Clusters", "", "launch__cluster_max_active"},
    {"Max Cluster Size", "", "launch__cluster_max_potential_size"},

    {"Branch Efficiency", "%", metric::kBranchesUniformPct},
};

}  // namespace

std::string MetricKey(std::string_view section, std::string_view name, std::string_view unit) {
  const std::string base = InBaseUnit(0, unit).unit;
  for (const DisplayName& known : kDisplayNames) {
    if (known.display == name && (known.unit.empty() || known.unit == base)) {
      return std::string(known.metric);
    }
  }
  // Metric names have no blanks; display names do, or stand in a section of their own.
  if (section.empty() || name.find("__") != std::string_view::npos ||
      section == "Command line profiler metrics") {
    return std::string(name);
  }
  return fmt::format("{}: {}", section, name);
}

}  // namespace kernelpro
