// SPDX-License-Identifier: Apache-2.0
// SEEN  62 % of the thread instructions are integer and bit operations (want < 35 %)
// DO    Replace the division by a compile-time extent.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

constexpr double kDivisionCost = 20;  ///< instructions of a 32-bit division by a run-time value

std::optional<Finding> Examine(const ToolInput& in) {
  const KernelProfile& k = in.kernel;
  const double divisions = Get(k, metric::kDivisions);
  const double extra = divisions * (kDivisionCost - 1);
  const double integer = Get(k, metric::kInteger) + Get(k, metric::kBit) + extra;
  const double all = ThreadInstructions(k) + extra;
  const double floats =
      Get(k, metric::kFadd) + Get(k, metric::kFmul) + Get(k, metric::kFfma) + Get(k, metric::kFp64);
  const double memory = Get(k, metric::kMemoryThreads);
  // Where nothing else is done, integers are the workload.
  const bool divides = divisions > 0 || Get(k, "sass.loop.divisions") > 0;
  if (all <= 0 || (floats + memory < 0.08 * all && !divides)) {
    return std::nullopt;
  }
  const double share = integer / all;
  const Shares use = Normalised(in.use, in.hardware);
  Finding f;
  f.severity =
      Ramp(share, 0.35, 0.65) * std::max(Ramp(IssueActive(in), 0.5, 0.85), Ramp(use.alu, 0.4, 0.7));
  if (f.severity <= 0) {
    return std::nullopt;
  }
  // With the divisions go the loads and branches around them.
  const double removable = divides ? std::min(1.0, 1.15 * share) : std::max(0.0, share - 0.2);
  f.bound = Cut(
      use,
      {.fma = removable, .alu = removable, .xu = divides ? removable : 0.0, .issue = removable});
  f.confidence = 0.6;
  const LineMetrics* line = WorstLine(k, [](const LineMetrics& l) {
    return Get(l, metric::kInteger) + Get(l, metric::kBit) +
           kDivisionCost * Get(l, metric::kDivisions);
  });
  SetWhere(f, line);
  f.seen = fmt::format(
      "{} of the thread instructions are integer and bit operations (want < 35 "
      "%); {} divisions or remainders by run-time values, about {:.0f} "
      "instructions each.",
      Percent(share), Quantity(divisions), kDivisionCost);
  f.why = fmt::format("Index arithmetic at {} takes the issue slots that the useful work needs.",
                      Place(line));
  const std::string first =
      divisions > 0 ? "Make the extents compile-time constants (template parameters), so that "
                      "divisions and remainders become shifts and multiplications; use a bit mask "
                      "for powers of two."
                    : "Advance pointers or offsets in the loop instead of computing them anew.";
  f.remedies = {first,
                divisions > 0 ? "Advance pointers or offsets in the loop instead of computing them "
                                "anew."
                              : "Compute offsets once per thread, outside the loop.",
                "Use 32-bit unsigned offsets from one 64-bit base.",
                "Walk several dimensions with nested loops."};
  f.check = fmt::format("metric {} should move {} -> under {}; correctness risk: index ranges.",
                        metric::kInteger, Quantity(Get(k, metric::kInteger)),
                        Quantity(Get(k, metric::kInteger) / 2));
  f.avoid = "Do not follow it where integers are the workload (hashing, sorting).";
  f.evidence = {{"integer_share", share}, {"divisions", divisions}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeCmpInt() {
  return MakeTool({.id = "cmp.int",
                   .title = "Index arithmetic overhead",
                   .classes = {"ISSUE_BOUND", "COMPUTE_BOUND", "MIXED", "BALANCED"},
                   .metrics = {metric::kInteger, metric::kBit,
                               "smsp__thread_inst_executed_pred_on.sum|"
                               "smsp__sass_thread_inst_executed_pred_on.sum"},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
