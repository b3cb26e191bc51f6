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

constexpr std::array<FindingRule, 12> kFindingRules = {{
    {"mem.spill", "lat.ilp", "more accumulators need registers, and registers already spill"},
    {"mem.spill", "occ.registers", "fewer registers would spill more"},
    {"mem.local_array", "lat.ilp", "a local array stands in the way of registers"},
    {"mem.local_array", "occ.registers", "the array in local memory comes first"},
    {"mem.coalesce_ld", "mem.dram_roof", "the roof is reached with wasted bytes"},
    {"mem.coalesce_st", "mem.dram_roof", "the roof is reached with wasted bytes"},
    {"mem.coalesce_ld", "mem.inflight", "more loads in flight would fetch more waste"},
    {"mem.coalesce_ld", "lat.long_scoreboard", "the scattered loads are what it waits for"},
    {"mem.excess", "mem.dram_roof", "the roof is reached with bytes that the task does not need"},
    {"smem.bank", "smem.pressure", "conflicts explain the busy shared memory"},
    {"lat.barrier", "smem.pressure", "the exchange itself should go, not get faster"},
    {"par.cta_rate", "par.tail", "blocks are started too slowly for waves to matter"},
}};

struct ClassRule {
  std::string_view by;
  double from = 0;
  std::string_view of, why;
};

constexpr std::array<ClassRule, 4> kClassRules = {{
    {"UNDERFILLED", kRouted, "occ.*", "most multiprocessors have no block at all"},
    {"UNDERFILLED", kRouted, "par.tail", "there is not even one full wave"},
    {"UNDERFILLED", kRouted, "lat.ilp", "more blocks come before more work per thread"},
    {"ISSUE_BOUND", 0.6, "occ.*", "schedulers always have a ready warp"},
}};

/// Low occupancy, scattered side traffic and role branches are the design of such kernels.
bool IsWarpSpecialised(const KernelProfile& kernel) {
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
constexpr std::array<Precedence, 37> kPrecedence = {{
    {"mem.coalesce_ld", "mem.coalesce_st"},
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
    {"mem.atomics", "mem.inflight"},
    {"mem.atomics", "lat.*"},
    {"mem.atomics", "par.cta_rate"},
}};

constexpr double kSure = 0.4;  ///< severity from which a finding goes before what it disturbs

}  // namespace

std::vector<Suppressed> Suppress(const ToolInput& input, std::vector<Finding>& findings) {
  return Suppressor(input, findings).Run();
}

void Rank(std::vector<Finding>& findings) {
  std::vector<double> scores(findings.size());
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& f = findings[i];
    scores[i] = f.severity * f.bound * f.time_share * (0.5 + 0.5 * f.confidence);
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
