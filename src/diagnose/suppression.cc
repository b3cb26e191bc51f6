// SPDX-License-Identifier: Apache-2.0
#include "diagnose/suppression.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/bounds.h"
#include "diagnose/facts.h"
#include "diagnose/roofline.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

namespace kernelpro::diagnose {
namespace {

/// "occ.*" covers every occ tool.
bool Covers(std::string_view pattern, std::string_view id) {
  if (pattern.ends_with('*')) {
    return id.starts_with(pattern.substr(0, pattern.size() - 1));
  }
  return pattern == id;
}

struct FindingRule {
  std::string_view by, of, why;
};

constexpr std::array<FindingRule, 35> kFindingRules = {{
    {"mem.spill", "lat.ilp", "more accumulators need registers, and registers already spill"},
    {"mem.spill", "occ.registers", "fewer registers would spill more"},
    {"mem.local_array", "lat.ilp", "a local array stands in the way of registers"},
    {"mem.local_array", "occ.registers", "the array in local memory comes first"},
    {"mem.coalesce_ld", "mem.dram_roof", "the roof is reached with wasted bytes"},
    {"mem.coalesce_st", "mem.dram_roof", "the roof is reached with wasted bytes"},
    {"mem.coalesce_ld", "mem.inflight", "more loads in flight would fetch more waste"},
    {"mem.excess", "mem.dram_roof", "the roof is reached with bytes that the task does not need"},
    {"smem.bank", "smem.pressure", "conflicts explain the busy shared memory"},
    {"lat.barrier", "smem.pressure", "the exchange itself should go, not get faster"},
    {"par.cta_rate", "par.tail", "blocks are started too slowly for waves to matter"},
    {"par.cta_rate", "occ.achieved", "starting blocks is what keeps slots empty"},
    {"par.small_grid", "occ.achieved", "there are not enough blocks"},
    {"par.small_grid", "par.imbalance", "there are not enough blocks to balance"},
    {"par.tail", "occ.achieved", "the last wave explains it"},
    {"par.imbalance", "occ.achieved", "uneven blocks explain it"},
    {"par.imbalance", "par.tail", "block durations differ, so waves do not end together"},
    {"mem.spill", "lat.throttle", "the spills fill the queue"},
    {"mem.spill", "lat.long_scoreboard", "the spilled values are what it waits for"},
    {"mem.local_array", "lat.throttle", "the local array fills the queue"},
    {"mem.local_array", "lat.long_scoreboard", "the local array is what it waits for"},
    {"cmp.fp64", "cmp.sfu", "conversions to and from double keep the special-function pipe busy"},
    {"cmp.fp64", "cmp.convert", "the conversions are to and from double"},
    {"mem.coalesce_ld", "mem.align", "the loads are scattered, not shifted"},
    {"mem.aperture", "mem.dram_roof", "the bus is the limit, not DRAM"},
    {"mem.aperture", "mem.inflight", "the bus is the limit"},
    {"mem.aperture", "lat.long_scoreboard", "the bus is what it waits for"},
    {"mem.aperture", "occ.registers", "the bus is the limit"},
    {"mem.aperture", "mem.width", "the bus is the limit"},
    {"cmp.tensor_absent", "cmp.nonfused", "the loop will be rewritten for the tensor pipe"},
    {"cmp.tensor_absent", "cmp.sfu", "the loop will be rewritten for the tensor pipe"},
    {"cmp.tensor_absent", "smem.pressure", "the loop will be rewritten for the tensor pipe"},
    {"cmp.tensor_absent", "mem.l1_reuse", "tile for the tensor pipe at once"},
    {"cmp.wgmma_serial", "cmp.tensor_feed", "the groups wait for each other, not for data"},
    {"smem.bank", "lat.short_scoreboard", "the conflicts are what it waits for"},
}};

struct ClassRule {
  std::string_view by;
  double from = 0;
  std::string_view of, why;
};

constexpr std::array<ClassRule, 6> kClassRules = {{
    {"UNDERFILLED", kRouted, "occ.*", "most multiprocessors have no block at all"},
    {"UNDERFILLED", kRouted, "par.tail", "there is not even one full wave"},
    {"UNDERFILLED", kRouted, "lat.ilp", "more blocks come before more work per thread"},
    {"UNDERFILLED", kRouted, "lat.not_selected", "most multiprocessors have no block at all"},
    {"ISSUE_BOUND", 0.6, "occ.*", "schedulers always have a ready warp"},
    {"TENSOR_BOUND", 0.6, "occ.*", "the tensor pipe is busy at this occupancy"},
}};

/// Low occupancy, scattered side traffic and role branches are the design of such kernels.
bool IsWarpSpecialised(const KernelProfile& kernel) {
  const auto has = [&](std::string_view metric) { return Get(kernel, metric) > 0; };
  if (has("sass.setmaxnreg") || (has("sass.mma_warpgroup") && has("sass.tma"))) {
    return true;
  }
  return std::ranges::any_of(kernel.opcodes, [](const auto& entry) {
    return entry.first.starts_with("setmaxnreg") || entry.first.starts_with("USETMAXREG");
  });
}

class Suppressor {
 public:
  Suppressor(const ToolInput& input, std::vector<Finding>& findings)
      : input_(input), findings_(findings) {}

  std::vector<Suppressed> Run() {
    for (const ClassRule& rule : kClassRules) {
      if (Membership(input_.classes, rule.by) >= rule.from) {
        Remove(rule.of, rule.by, rule.why);
      }
    }
    for (const FindingRule& rule : kFindingRules) {
      if (Has(rule.by)) {
        Remove(rule.of, rule.by, rule.why);
      }
    }
    if (Normalised(input_.use, input_.hardware).dram >= 0.85) {
      Remove("lat.*", "DRAM_BOUND", "DRAM is full: there is no latency to hide");
      Remove("occ.*", "DRAM_BOUND", "DRAM is full: there is no latency to hide");
    }
    if (IsWarpSpecialised(input_.kernel)) {
      for (const std::string_view id : {"occ.*", "cmp.divergence", "mem.coalesce_*"}) {
        Remove(id, "warp specialisation",
               "the warps of this kernel play different roles by design");
      }
    }
    return std::move(suppressed_);
  }

 private:
  [[nodiscard]] bool Has(std::string_view id) const {
    return std::ranges::any_of(findings_, [&](const Finding& f) { return f.id == id; });
  }

  void Remove(std::string_view pattern, std::string_view by, std::string_view why) {
    std::erase_if(findings_, [&](const Finding& f) {
      if (!Covers(pattern, f.id)) {
        return false;
      }
      suppressed_.push_back({f.id, f.kernel, std::string(by), std::string(why)});
      return true;
    });
  }

  const ToolInput& input_;
  std::vector<Finding>& findings_;
  std::vector<Suppressed> suppressed_;
};

struct Precedence {
  std::string_view first, then;
};

/// The cure of `first` moves data or work to other places, so that `then` has to be measured anew.
constexpr std::array<Precedence, 53> kPrecedence = {{
    {"mem.coalesce_ld", "mem.coalesce_st"},
    {"mem.coalesce_ld", "cmp.issue"},
    {"mem.coalesce_ld", "mem.l1_reuse"},
    {"mem.coalesce_ld", "mem.excess"},
    {"mem.coalesce_ld", "par.*"},
    {"mem.coalesce_ld", "occ.*"},
    {"mem.coalesce_ld", "lat.*"},
    {"mem.coalesce_ld", "cmp.int"},
    {"mem.coalesce_ld", "cmp.sfu"},
    {"mem.coalesce_ld", "cmp.divergence"},
    {"mem.coalesce_ld", "cmp.nonfused"},
    {"mem.coalesce_st", "mem.excess"},
    {"mem.coalesce_st", "mem.inflight"},
    {"mem.coalesce_st", "par.tail"},
    {"mem.coalesce_st", "occ.*"},
    {"cmp.fp64", "lat.*"},
    {"cmp.fp64", "smem.*"},
    {"cmp.fp64", "occ.*"},
    {"cmp.fp64", "par.*"},
    {"cmp.fp64", "mem.width"},
    {"cmp.fp64", "mem.inflight"},
    {"cmp.fp64", "mem.excess"},
    {"cmp.fp64", "mem.l1_reuse"},
    {"cmp.fp64", "cmp.int"},
    {"cmp.fp64", "cmp.sfu"},
    {"cmp.fp64", "cmp.divergence"},
    {"cmp.fp64", "cmp.nonfused"},
    {"lat.barrier", "cmp.int"},
    {"lat.barrier", "cmp.sfu"},
    {"lat.barrier", "cmp.divergence"},
    {"lat.barrier", "cmp.nonfused"},
    {"lat.barrier", "mem.width"},
    {"lat.barrier", "par.cta_rate"},
    {"lat.barrier", "par.tail"},
    {"lat.barrier", "smem.bank"},
    {"lat.barrier", "cmp.issue"},
    {"cmp.fp64", "cmp.issue"},
    {"cmp.fp64", "cmp.convert"},
    {"mem.async", "lat.*"},
    {"mem.async", "occ.*"},
    {"mem.spill", "lat.*"},
    {"mem.local_array", "lat.*"},
    {"smem.bank", "lat.*"},
    {"mem.l2_reuse", "lat.*"},
    {"par.imbalance", "lat.*"},
    {"par.small_grid", "lat.*"},
    {"par.small_grid", "mem.inflight"},
    {"mem.aperture", "mem.*"},
    {"cmp.tensor_slow", "cmp.tensor_feed"},
    {"cmp.wgmma_serial", "lat.*"},
    {"mem.atomics", "mem.inflight"},
    {"mem.atomics", "lat.*"},
    {"mem.atomics", "par.cta_rate"},
}};

constexpr double kHostFirst = 0.6;          ///< membership from which kernels come later
constexpr double kLeastRankedBound = 0.01;  ///< findings without a bound still have an order
constexpr double kSure = 0.35;  ///< severity from which a finding goes before what it disturbs

}  // namespace

std::vector<Suppressed> Suppress(const ToolInput& input, std::vector<Finding>& findings) {
  return Suppressor(input, findings).Run();
}

void Rank(const std::vector<ClassMembership>& classes, std::vector<Finding>& findings) {
  const bool host =
      std::max(Membership(classes, "HOST_BOUND"), Membership(classes, "LAUNCH_BOUND")) > kHostFirst;
  std::vector<double> scores(findings.size());
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& f = findings[i];
    scores[i] = f.severity * std::max(f.expected, kLeastRankedBound) * f.time_share *
                (0.5 + 0.5 * f.confidence);
    scores[i] *= host && !f.id.starts_with("sys.") ? 1e-3 : 1;
  }
  // Two rounds: a finding that was put behind another takes along what stands behind it.
  for (int round = 0; round < 2; ++round) {
    for (const Precedence& rule : kPrecedence) {
      for (std::size_t i = 0; i < findings.size(); ++i) {
        const Finding& first = findings[i];
        if (first.id != rule.first || first.severity < kSure) {
          continue;
        }
        for (std::size_t j = 0; j < findings.size(); ++j) {
          const Finding& then = findings[j];
          if (then.kernel == first.kernel && then.id != first.id && Covers(rule.then, then.id)) {
            scores[j] = std::min(scores[j], 0.99 * scores[i]);
          }
        }
      }
    }
  }
  std::vector<std::size_t> order(findings.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<Finding> ranked;
  ranked.reserve(findings.size());
  for (const std::size_t i : order) {
    ranked.push_back(std::move(findings[i]));
  }
  findings = std::move(ranked);
}

}  // namespace kernelpro::diagnose
