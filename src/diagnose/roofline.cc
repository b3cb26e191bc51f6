// SPDX-License-Identifier: Apache-2.0
#include "diagnose/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/bounds.h"
#include "diagnose/facts.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"
#include "profile/metric_names.h"

namespace kernelpro::diagnose {
namespace {

constexpr double kBusy = 0.60;  ///< a resource limits from here on

struct Named {
  std::string_view name;
  double use = 0;
};

std::vector<Named> Resources(const Shares& u) {
  return {{"DRAM", u.dram},
          {"L2", u.l2},
          {"L1", u.l1},
          {"the LSU pipe", u.lsu},
          {"the tensor pipe", u.tensor},
          {"the FMA pipe", u.fma},
          {"the ALU pipe", u.alu},
          {"the FP64 pipe", u.fp64},
          {"the special-function pipe", u.xu}};
}

class Classifier {
 public:
  Classifier(const KernelProfile& kernel, const Profile& profile, const Hardware& hardware,
             const Utilisation& use)
      : kernel_(kernel),
        profile_(profile),
        hardware_(hardware),
        raw_(use),
        use_(Normalised(use, hardware)),
        issue_(kernel.Value(metric::kIssueActive).value_or(use_.issue)) {}

  std::vector<ClassMembership> Run() {
    HostClasses();
    if (!Valid()) {
      return std::move(classes_);
    }
    LaunchClasses();
    MemoryClasses();
    ComputeClasses();
    LatencyClass();
    RoofClasses();
    std::erase_if(classes_, [](const ClassMembership& c) { return c.membership < kRouted; });
    const bool has_primary = std::ranges::any_of(
        classes_, [](const ClassMembership& c) { return c.id != "BALANCED" && c.id != "TAIL"; });
    if (!has_primary) {
      Mixed();
    }
    std::ranges::stable_sort(classes_, [](const ClassMembership& a, const ClassMembership& b) {
      return a.membership > b.membership;
    });
    return std::move(classes_);
  }

 private:
  void Add(std::string id, double membership, std::string evidence) {
    classes_.push_back({std::move(id), membership, std::move(evidence)});
  }

  bool Valid() {
    if (kernel_.time_us <= 0) {
      Add("UNKNOWN", 1, "the kernel's duration is missing, so nothing can be said about its limit");
      return false;
    }
    if (!raw_.dram && !raw_.l2 && !raw_.l1 && !raw_.issue && !raw_.fma && !raw_.sm) {
      Add("UNKNOWN", 1,
          "the time is known, but no utilisation: the profile has no hardware counters");
      return false;
    }
    for (const auto& [value, name] :
         {std::pair{raw_.dram, "DRAM"}, std::pair{raw_.l2, "L2"}, std::pair{raw_.l1, "L1"},
          std::pair{raw_.fma, "the FMA pipe"}, std::pair{raw_.issue, "instruction issue"}}) {
      if (value && *value > 1.05) {
        Add("INVALID", 1,
            fmt::format("{} at {:.2f} of its peak: counters and time are of different runs", name,
                        *value));
        return false;
      }
    }
    if (kernel_.time_provenance == Provenance::kMeasured && kernel_.time_us < 3) {
      Add("INVALID", 1,
          fmt::format("{:.1f} us is too short: the counters see mostly start and end",
                      kernel_.time_us));
      return false;
    }
    return true;
  }

  [[nodiscard]] std::optional<double> System(const std::string& name) const {
    const auto found = profile_.system.find(name);
    return found == profile_.system.end() ? std::nullopt : std::optional(found->second.value);
  }

  /// Of the whole run, from its timeline. Thresholds: docs/tools.md.
  void HostClasses() {
    const double idle = System("timeline.idle.pct").value_or(0) / 100;
    const bool graphs = System("timeline.graph_launches").value_or(0) > 0;
    const double kernels = System("timeline.kernels").value_or(0);
    if (kernels >= 2 && idle > (graphs ? 0.15 : 0.30)) {
      Add("HOST_BOUND", Ramp(idle, 0.15, 0.5),
          fmt::format("the GPU idles {} of the time between its first and its last kernel",
                      Percent(idle)));
    }
    const double median_us = System("timeline.kernel_median_ns").value_or(0) / 1000;
    const double launching = System("timeline.launch_api.pct").value_or(0) / 100;
    if (kernels >= 5 && (median_us < 10 || launching > 0.10)) {
      const double share = std::max(launching, System("timeline.launch_gap.pct").value_or(0) / 100);
      Add("LAUNCH_BOUND", std::max(median_us < 10 ? 0.4 : 0.0, Ramp(share, 0.05, 0.3)),
          fmt::format("{:.0f} kernels with a median of {:.1f} us; launching takes {} of the time",
                      kernels, median_us, Percent(share)));
    }
  }

  void LaunchClasses() {
    if (const auto overhead = kernel_.Value(metric::kModelLaunchOverheadPct);
        overhead && profile_.kernels.size() > 1) {
      Add("LAUNCH_BOUND", Ramp(*overhead / 100, 0.2, 0.6),
          fmt::format("launching takes {} of the {:.1f} us", Percent(*overhead / 100),
                      kernel_.time_us));
    }
    const double grid = GridSize(kernel_);
    const double sms = hardware_.sm_count;
    const auto waves = Waves(kernel_, hardware_);
    if (sms > 0 && grid < sms) {
      underfilled_ = 1 - grid / sms;
      Add("UNDERFILLED", underfilled_,
          fmt::format("{:.0f} blocks for {:.0f} multiprocessors", grid, sms));
    } else if (const auto active = kernel_.Value(metric::kCyclesActive);
               active && waves && *waves < 1 && kernel_.Value(metric::kCyclesElapsed)) {
      const double act = *active / std::max(1.0, Get(kernel_, metric::kCyclesElapsed));
      if (act < 0.8) {
        underfilled_ = 1 - act;
        Add("UNDERFILLED", underfilled_,
            fmt::format("multiprocessors are active {} of the time", Percent(act)));
      }
    }
    double loss = 0;
    if (waves && *waves >= 1 && *waves < 6) {
      loss = 1 - *waves / std::ceil(*waves);
    }
    const auto active = kernel_.Value(metric::kCyclesActive);
    const auto longest = kernel_.Value(metric::kCyclesActiveMax);
    const double skew = active && longest && *longest > 0 ? 1 - *active / *longest : 0;
    if (std::max(loss, skew) >= 0.05) {
      Add("TAIL", Ramp(std::max(loss, skew), 0.03, 0.3),
          loss >= skew ? fmt::format("{:.2f} waves of blocks", *waves)
                       : fmt::format("the busiest multiprocessor works {} longer than the average",
                                     Percent(skew)));
    }
  }

  void MemoryClasses() {
    const double others = MaxUse(WithoutDram());
    if (use_.dram >= kBusy && use_.dram >= others - 0.10) {
      Add("DRAM_BOUND", Ramp(use_.dram, 0.45, 0.8),
          fmt::format("DRAM at {:.2f} of what it can deliver", use_.dram));
    }
    if (use_.l2 >= kBusy && use_.dram < 0.6 * use_.l2) {
      Add("L2_BOUND", Ramp(use_.l2, 0.45, 0.8),
          fmt::format("L2 at {:.2f} of its bandwidth, DRAM only at {:.2f}", use_.l2, use_.dram));
    }
    if (const double l1 = std::max(use_.l1, use_.lsu); l1 >= kBusy) {
      Add("L1_SMEM_BOUND", Ramp(l1, 0.45, 0.8),
          fmt::format("the L1 and shared-memory data stage is busy {:.2f} of the time, its "
                      "instruction queue {:.2f}",
                      use_.l1, use_.lsu));
    }
  }

  void ComputeClasses() {
    TensorUnderused();
    if (use_.tensor >= kBusy) {
      Add("TENSOR_BOUND", Ramp(use_.tensor, 0.45, 0.85),
          fmt::format("the tensor pipe at {:.2f} of what it sustains", use_.tensor));
    }
    const std::array<Named, 4> pipes = {
        {{"fma", use_.fma}, {"alu", use_.alu}, {"fp64", use_.fp64}, {"xu", use_.xu}}};
    const Named pipe = *std::ranges::max_element(pipes, {}, &Named::use);
    if (!raw_.fma && !raw_.alu && raw_.sm.value_or(0) >= kBusy) {
      Add("COMPUTE_BOUND", Ramp(*raw_.sm, 0.45, 0.8),
          fmt::format("a unit of the multiprocessors is busy {:.2f} of the time (which one was not "
                      "collected)",
                      *raw_.sm));
    }
    if (pipe.use >= kBusy) {
      Add(fmt::format("COMPUTE_BOUND({})", pipe.name), Ramp(pipe.use, 0.45, 0.8),
          fmt::format("the {} pipe is busy {:.2f} of the time", pipe.name, pipe.use));
    }
    if (issue_ >= 0.80 && pipe.use < 0.80) {
      Add("ISSUE_BOUND", Ramp(issue_, 0.65, 0.9),
          fmt::format("schedulers issue in {:.2f} of all cycles", issue_));
    }
  }

  /// Tensor instructions are there and idle, or a contraction runs without any (SASS).
  void TensorUnderused() {
    const auto mma = kernel_.Value("sass.mma");
    if (!mma || use_.dram >= kBusy) {
      return;
    }
    if (*mma > 0 && raw_.tensor && use_.tensor < 0.4) {
      Add("TENSOR_UNDERUSED", 1 - use_.tensor / 0.4,
          fmt::format("tensor instructions are there, their pipe is busy {:.2f} of the time",
                      use_.tensor));
    }
    const auto warp = kernel_.Value("sass.mma_warp");
    const auto group = kernel_.Value("sass.mma_warpgroup");
    if (kernel_.Value("sass.arch").value_or(0) == 90 && warp && group && *warp > 0 && *group <= 0) {
      Add("TENSOR_UNDERUSED", 0.5,
          "warp-level tensor instructions only, on a GPU of capability 9.0");
    }
  }

  void LatencyClass() {
    Shares pipes = use_;
    pipes.lsu = 0;  // a queue, not a roof; L1_SMEM_BOUND judges it
    const double busiest = std::max({MaxUse(pipes), raw_.sm.value_or(0), raw_.memory.value_or(0)});
    const bool known =
        (raw_.dram || raw_.memory) && (raw_.fma || raw_.alu || raw_.issue || raw_.sm);
    if (!known) {
      return;
    }
    if (busiest >= kBusy || issue_ >= kBusy || underfilled_ >= kRouted) {
      return;
    }
    std::string evidence =
        fmt::format("nothing is busy: the busiest resource at {:.2f}{}", busiest,
                    raw_.issue ? fmt::format(", issue at {:.2f}", issue_) : std::string());
    const std::string kind = LatencyKind();
    Add(kind.empty() ? "LATENCY_BOUND" : fmt::format("LATENCY_BOUND({})", kind),
        Ramp(kBusy - busiest, 0, 0.4), std::move(evidence));
  }

  /// The largest group of stall reasons; empty without sampling or without a clear one.
  [[nodiscard]] std::string LatencyKind() const {
    const auto share = [&](std::string_view name) { return StallShare(kernel_, name).value_or(0); };
    const std::array<Named, 5> groups = {{
        {"memory", share(metric::kStallLongScoreboard)},
        {"smem", share(metric::kStallShortScoreboard) + share(metric::kStallMioThrottle)},
        {"sync", share(metric::kStallBarrier)},
        {"dependency", share(metric::kStallWait)},
        {"lsu-queue", share(metric::kStallLgThrottle)},
    }};
    const Named largest = *std::ranges::max_element(groups, {}, &Named::use);
    return largest.use >= 0.3 ? std::string(largest.name) : std::string();
  }

  void RoofClasses() {
    const auto balanced = [](double a, double b) {
      return a >= 0.45 && b >= 0.45 && std::abs(a - b) <= 0.10;
    };
    const double memory = std::max({use_.dram, use_.l2, use_.l1});
    const double math = std::max({use_.tensor, use_.fma, use_.alu, use_.fp64, use_.xu});
    if (balanced(memory, math)) {
      Add("BALANCED", 0.4,
          fmt::format("memory at {:.2f} and arithmetic at {:.2f} limit together", memory, math));
    }
    const auto floor = profile_.task.find("floor_us");
    if (floor != profile_.task.end() && floor->second.value > 0) {
      double total = 0;
      for (const KernelProfile& kernel : profile_.kernels) {
        total += kernel.time_us;
      }
      if (const double ratio = total / floor->second.value; ratio <= 1.15) {
        Add("AT_ROOF", 1, fmt::format("{:.2f} times the least time that the task needs", ratio));
        return;
      }
    }
    // Only pipes that do useful work: a full L1 may be full of replays.
    if (const double roof = std::max({use_.dram, use_.tensor, use_.fma}); roof >= 0.92) {
      Add("AT_ROOF", Ramp(roof, 0.85, 0.95),
          fmt::format("a limiting resource is busy {:.2f} of the time", roof));
    }
  }

  void Mixed() {
    std::vector<Named> all = Resources(use_);
    all.push_back({"instruction issue", issue_});
    std::ranges::stable_sort(all, [](const Named& a, const Named& b) { return a.use > b.use; });
    Add("MIXED", kRouted,
        fmt::format("no single limit: {} at {:.2f} and {} at {:.2f}", all[0].name, all[0].use,
                    all[1].name, all[1].use));
  }

  [[nodiscard]] Shares WithoutDram() const {
    Shares rest = use_;
    rest.dram = 0;
    return rest;
  }

  const KernelProfile& kernel_;
  const Profile& profile_;
  const Hardware& hardware_;
  const Utilisation& raw_;
  Shares use_;
  double issue_;
  double underfilled_ = 0;
  std::vector<ClassMembership> classes_;
};

}  // namespace

std::vector<ClassMembership> Classify(const KernelProfile& kernel, const Profile& profile,
                                      const Hardware& hardware, const Utilisation& use) {
  return Classifier(kernel, profile, hardware, use).Run();
}

}  // namespace kernelpro::diagnose
