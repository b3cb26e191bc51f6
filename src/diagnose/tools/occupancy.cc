// SPDX-License-Identifier: Apache-2.0
// SEEN  at most 12 % of the warps fit (want >= 50 %): registers allow 1 block, the rest 8
// DO    __launch_bounds__(256, 2)
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

struct Limit {
  std::string_view metric;
  std::string_view word;
};

constexpr std::array<Limit, 4> kLimits = {{{metric::kLimitRegisters, "registers"},
                                           {metric::kLimitShared, "shared memory"},
                                           {metric::kLimitWarps, "the block's warps"},
                                           {metric::kLimitBlocks, "the limit of blocks"}}};

/// A finding without advice when `own` is the tightest limit and more warps would help.
std::optional<Finding> Examine(const ToolInput& in, const Limit& own) {
  const KernelProfile& k = in.kernel;
  const double mine = Get(k, own.metric);
  double next = std::numeric_limits<double>::max();
  for (const Limit& other : kLimits) {
    if (other.metric != own.metric) {
      next = std::min(next, Get(k, other.metric));
    }
  }
  const double now = Get(k, metric::kWarpsMaximumPct) / 100;
  const Shares use = Normalised(in.use, in.hardware);
  const double sms = std::max<double>(1, in.hardware.sm_count);
  // A grid of just as many blocks as fit is made for this limit.
  const bool grid_is_smaller = GridSize(k) / sms < 0.99 * mine;
  if (mine <= 0 || mine >= next || now <= 0 || use.dram >= 0.7 || grid_is_smaller) {
    return std::nullopt;
  }
  const double target = std::min(1.0, now * next / mine);
  const double eligible = k.Value(metric::kWarpsEligible).value_or(0);
  const double relevance = Ramp(0.6 - IssueActive(in), 0, 0.4) * Ramp(1 - eligible, 0, 0.8);
  Finding f;
  f.severity = relevance * Ramp(0.8 - now, 0, 0.5);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  f.bound = OccupancyGain(use, now, target);
  f.confidence = 0.5;
  f.seen = fmt::format(
      "{} allow {:.0f} block{} on a multiprocessor, everything else {:.0f}: {} of "
      "the warps fit (want >= {}); schedulers issue in {} of the cycles.",
      own.word, mine, mine == 1 ? "" : "s", next, Percent(now), Percent(std::min(target, 0.5)),
      Percent(IssueActive(in)));
  f.why = "Too few warps are resident to cover the latency of the others.";
  f.check = fmt::format("metric {} should move {:.0f} -> {:.0f}; correctness risk: none.",
                        own.metric, mine, mine + 1);
  f.avoid =
      "Do not pay for warps with spills, nor in a kernel with many independent operations a "
      "thread: those run best at low occupancy.";
  f.evidence = {{"limit", mine}, {"next_limit", next}, {"occupancy", now}, {"target", target}};
  return f;
}

std::optional<Finding> ExamineRegisters(const ToolInput& in) {
  std::optional<Finding> f = Examine(in, kLimits[0]);
  if (f) {
    const double threads = BlockSize(in.kernel);
    const double blocks = f->evidence["limit"] + 1;
    // Registers are given to warps in units of 256, so to threads in units of 8.
    const double fits = std::max(
        16.0, std::floor(in.hardware.registers_per_sm / (blocks * std::max(1.0, threads)) / 8) * 8);
    f->seen += fmt::format(" One more block fits at {:.0f} registers a thread instead of {:.0f}.",
                           fits, Get(in.kernel, metric::kRegisters));
    f->remedies = {fmt::format("Cap the registers with __launch_bounds__({:.0f}, {:.0f}) and check "
                               "that nothing spills.",
                               threads, blocks),
                   "Use a smaller tile per thread, or unroll less.",
                   "Use 32-bit indices from one 64-bit base."};
  }
  return f;
}

std::optional<Finding> ExamineShared(const ToolInput& in) {
  std::optional<Finding> f = Examine(in, kLimits[1]);
  if (f) {
    const double blocks = f->evidence["limit"] + 1;
    f->seen += fmt::format(" One more block fits at {} of shared memory instead of {}.",
                           ByteText(in.hardware.shared_per_sm_bytes / blocks - 1024),
                           ByteText(Get(in.kernel, metric::kSharedPerBlock)));
    f->remedies = {"Use fewer pipeline stages or a smaller tile in shared memory.",
                   "Reuse one buffer for parts of the kernel that do not overlap.",
                   "Raise the shared-memory carve-out of the kernel."};
  }
  return f;
}

std::optional<Finding> ExamineWarps(const ToolInput& in) {
  std::optional<Finding> f = Examine(in, kLimits[2]);
  if (f) {
    f->remedies = {
        "Use a block size that divides the warps of a multiprocessor: 128, 256 or 512 "
        "threads.",
        "Split blocks of 1024 threads."};
  }
  return f;
}

std::optional<Finding> ExamineBlocks(const ToolInput& in) {
  std::optional<Finding> f = Examine(in, kLimits[3]);
  if (f) {
    f->remedies = {
        "Use at least 64, better 128 threads per block, so that the limit of blocks per "
        "multiprocessor no longer binds.",
        "Handle several rows or tiles per block."};
  }
  return f;
}

ToolSpec Spec(std::string_view id, std::string_view title,
              std::optional<Finding> (*examine)(const ToolInput&)) {
  return {.id = id,
          .title = title,
          .classes = {"LATENCY_BOUND", "DRAM_BOUND", "MIXED", "TAIL"},
          .metrics = {metric::kLimitRegisters, metric::kLimitShared, metric::kLimitWarps,
                      metric::kLimitBlocks, metric::kWarpsMaximumPct},
          .examine = examine};
}

}  // namespace

std::unique_ptr<Tool> MakeOccRegisters() {
  return MakeTool(Spec("occ.registers", "Occupancy limited by registers", &ExamineRegisters));
}

std::unique_ptr<Tool> MakeOccShared() {
  return MakeTool(Spec("occ.smem", "Occupancy limited by shared memory", &ExamineShared));
}

std::unique_ptr<Tool> MakeOccWarps() {
  return MakeTool(Spec("occ.shape", "Occupancy limited by the block's warps", &ExamineWarps));
}

std::unique_ptr<Tool> MakeOccCtas() {
  return MakeTool(Spec("occ.shape", "Occupancy limited by the number of blocks", &ExamineBlocks));
}

}  // namespace kernelpro::diagnose
