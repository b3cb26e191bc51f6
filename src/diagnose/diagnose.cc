// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "diagnose/bounds.h"
#include "diagnose/facts.h"
#include "diagnose/roofline.h"
#include "diagnose/suppression.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"
#include "profile/metric_names.h"

namespace kernelpro {
namespace {

using diagnose::Get;
using diagnose::kRouted;
using diagnose::Membership;

constexpr double kLeastSeverity = 0.25;
constexpr double kLeastBound = 0.02;
constexpr double kLeastTimeShare = 0.05;  ///< a smaller kernel is not worth a finding

/// Classes of the resources that are busiest when no class is clear.
std::vector<std::string_view> NearestClasses(const Utilisation& use, const Hardware& hardware) {
  const diagnose::Shares u = diagnose::Normalised(use, hardware);
  std::array<std::pair<double, std::string_view>, 5> near = {{
      {u.dram, "DRAM_BOUND"},
      {u.l2, "L2_BOUND"},
      {std::max(u.l1, u.lsu), "L1_SMEM_BOUND"},
      {std::max({u.fma, u.alu, u.fp64, u.xu}), "COMPUTE_BOUND"},
      {u.issue, "ISSUE_BOUND"},
  }};
  std::ranges::stable_sort(near, [](const auto& a, const auto& b) { return a.first > b.first; });
  return {near[0].second, near[1].second, "LATENCY_BOUND"};
}

bool IsCalled(const Tool& tool, const ToolInput& input) {
  const std::vector<std::string_view> classes = tool.classes();
  if (classes.empty() || Membership(input.classes, "UNKNOWN") > 0) {
    return true;  // nobody knows the class: the tool's own needs decide
  }
  std::vector<std::string_view> nearest;
  if (Membership(input.classes, "MIXED") > 0) {
    nearest = NearestClasses(input.use, input.hardware);
  }
  return std::ranges::any_of(classes, [&](std::string_view id) {
    return Membership(input.classes, id) >= kRouted ||
           std::ranges::find(nearest, id) != nearest.end();
  });
}

/// Readers that print a launch's shape beside its metrics keep it in the shape's own fields.
bool IsShape(const ToolInput& input, std::string_view need) {
  return (need == metric::kGridSize || need == metric::kBlockSize) &&
         diagnose::HasShape(input.kernel);
}

bool IsKnown(const ToolInput& input, std::string_view need) {
  if (need.starts_with("task.")) {
    return input.profile.task.contains(std::string(need.substr(5)));
  }
  return input.kernel.metrics.contains(std::string(need)) || IsShape(input, need) ||
         input.profile.system.contains(std::string(need));
}

/// The needs of a tool that the profile does not meet.
std::vector<std::string> Missing(const Tool& tool, const ToolInput& input) {
  std::vector<std::string> missing;
  for (const std::string_view need : tool.metrics()) {
    const bool met = std::ranges::any_of(
        Split(need, '|'), [&](std::string_view name) { return IsKnown(input, name); });
    if (!met) {
      missing.emplace_back(need);
    }
  }
  return missing;
}

/// Where a metric comes from, by its name and provenance.
std::string_view Tier(const ToolInput& input, std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kTiers = {{
      {"sass.", "disassembly"},
      {"ptxas.", "compiler log"},
      {"build.", "build"},
      {"timeline.", "activity trace"},
      {"nvml.", "power meter"},
      {"launch__", "launch figures"},
      {"task.", "task"},
  }};
  for (const auto& [prefix, tier] : kTiers) {
    if (name.starts_with(prefix)) {
      return tier;
    }
  }
  const auto found = input.kernel.metrics.find(std::string(name));
  if (found == input.kernel.metrics.end()) {
    return {};
  }
  return found->second.provenance == Provenance::kMeasured ? "hardware counters" : "emulation";
}

/// The tiers that a finding's needed metrics come from, in order of first use.
std::string RestsOn(const Tool& tool, const ToolInput& input) {
  std::vector<std::string_view> tiers;
  for (const std::string_view need : tool.metrics()) {
    for (const std::string_view name : Split(need, '|')) {
      const std::string_view tier = IsKnown(input, name) ? Tier(input, name) : std::string_view();
      if (!tier.empty() && std::ranges::find(tiers, tier) == tiers.end()) {
        tiers.push_back(tier);
      }
    }
  }
  return tiers.empty() ? "launch figures" : fmt::format("{}", fmt::join(tiers, ", "));
}

double TotalTime(const Profile& profile) {
  double total = 0;
  for (const KernelProfile& kernel : profile.kernels) {
    total += kernel.time_us;
  }
  return total;
}

double Floor(const Profile& profile) {
  const auto found = profile.task.find("floor_us");
  return found == profile.task.end() ? 0 : found->second.value;
}

/// No finding can promise more than the task's own floor leaves.
void CapByFloor(Finding& finding, const Profile& profile) {
  const double floor = Floor(profile);
  const double total = TotalTime(profile);
  if (floor > 0 && total > 0 && finding.time_share > 0) {
    const double left = std::max(0.0, 1 - floor / total) / finding.time_share;
    finding.bound = std::min(finding.bound, left);
    finding.expected = std::min(finding.expected, left);
  }
  finding.bound = std::clamp(finding.bound, 0.0, 0.999);
}

/// "You are at the roof" is worth saying although it promises nothing, and so is what a person has
/// asked the power meter for. Without a measured time nothing has a bound.
bool IsWorthSaying(const Finding& finding, bool timed) {
  return finding.severity >= kLeastSeverity &&
         (finding.expected >= kLeastBound || !timed || finding.id == "mem.dram_roof" ||
          finding.id == "lat.not_selected" || finding.id.starts_with("nrg."));
}

/// Tools of the whole run, or those of a kernel.
enum class Scope : std::uint8_t { kKernel, kProgram };

std::vector<Finding> RunTools(const ToolInput& input, const std::vector<const Tool*>& tools,
                              Scope scope, Diagnosis& diagnosis) {
  const bool timed = input.kernel.time_us > 0;
  std::vector<Finding> findings;
  for (const Tool* tool : tools) {
    if (tool->of_program() != (scope == Scope::kProgram) || !IsCalled(*tool, input)) {
      continue;
    }
    if (std::vector<std::string> missing = Missing(*tool, input); !missing.empty()) {
      diagnosis.not_run.push_back({std::string(tool->id()), input.kernel.name, std::move(missing)});
      continue;
    }
    std::optional<Finding> finding = tool->Examine(input);
    if (!finding) {
      continue;
    }
    finding->rests_on = RestsOn(*tool, input);
    if (finding->line == 0 && scope == Scope::kKernel && input.kernel.hot_loop) {
      finding->file = input.kernel.hot_loop->file;  // better than no place at all
      finding->line = input.kernel.hot_loop->line;
    }
    finding->expected = finding->bound;
    finding->bound = std::max(finding->bound, diagnose::Ceiling(finding->id, input));
    finding->bound = timed || scope == Scope::kProgram ? finding->bound : 0;
    if (scope == Scope::kKernel) {
      CapByFloor(*finding, input.profile);
    }
    if (IsWorthSaying(*finding, timed)) {
      findings.push_back(std::move(*finding));
    }
  }
  return findings;
}

void SayWhatIsFine(const KernelProfile& kernel, Diagnosis& diagnosis) {
  const diagnose::Access load = diagnose::Loads(kernel);
  const diagnose::Access store = diagnose::Stores(kernel);
  if (load.requests > 0 && load.bytes_per_sector >= 28 &&
      kernel.Value(metric::kLoadBytesPerSector)) {
    diagnosis.fine.push_back(fmt::format("global loads are coalesced ({:.0f} of 32 bytes a sector)",
                                         load.bytes_per_sector));
  }
  if (store.requests > 0 && store.bytes_per_sector >= 28 &&
      kernel.Value(metric::kStoreBytesPerSector)) {
    diagnosis.fine.push_back(fmt::format(
        "global stores are coalesced ({:.0f} of 32 bytes a sector)", store.bytes_per_sector));
  }
  const diagnose::Wavefronts w = diagnose::WavefrontsOf(kernel);
  if (w.shared > 0 && w.conflicts < 0.1 * w.shared) {
    diagnosis.fine.push_back(
        fmt::format("shared memory is almost free of bank conflicts ({} of "
                    "the wavefronts)",
                    diagnose::Percent(w.conflicts / w.shared)));
  }
  if (const auto spills = kernel.Value(metric::kSpillStores); spills && *spills <= 0) {
    diagnosis.fine.emplace_back("nothing spills");
  }
  if (const auto lanes = kernel.Value(metric::kLanesOn); lanes && *lanes >= 30) {
    diagnosis.fine.push_back(fmt::format("warps are full ({:.1f} of 32 lanes)", *lanes));
  }
}

const KernelProfile* DominantKernel(const Profile& profile) {
  const auto found = std::ranges::max_element(profile.kernels, {}, &KernelProfile::time_share);
  return found == profile.kernels.end() ? nullptr : &*found;
}

void DiagnoseKernel(const KernelProfile& kernel, const Profile& profile, const Hardware& hardware,
                    const std::vector<const Tool*>& tools, bool dominant, Diagnosis& diagnosis) {
  const Utilisation use = diagnose::UtilisationOf(kernel, profile, hardware);
  const std::vector<ClassMembership> classes = diagnose::Classify(kernel, profile, hardware, use);
  const ToolInput input{kernel, profile, hardware, use, classes};
  if (dominant) {
    diagnosis.classes = classes;
    std::ranges::move(RunTools(input, tools, Scope::kProgram, diagnosis),
                      std::back_inserter(diagnosis.findings));
  }
  if (Membership(classes, "INVALID") > 0) {
    return;
  }
  std::vector<Finding> findings = RunTools(input, tools, Scope::kKernel, diagnosis);
  std::ranges::move(diagnose::Suppress(input, findings), std::back_inserter(diagnosis.suppressed));
  std::ranges::move(findings, std::back_inserter(diagnosis.findings));
}

}  // namespace

Diagnosis Diagnose(const Profile& profile, const Hardware& hardware,
                   const std::vector<const Tool*>& tools) {
  Diagnosis diagnosis;
  diagnosis.floor_us = Floor(profile);
  const KernelProfile* dominant = DominantKernel(profile);
  for (const KernelProfile& kernel : profile.kernels) {
    if (kernel.time_share >= kLeastTimeShare) {
      DiagnoseKernel(kernel, profile, hardware, tools, &kernel == dominant, diagnosis);
    }
  }
  diagnose::Rank(diagnosis.classes, diagnosis.findings);
  if (dominant != nullptr) {
    SayWhatIsFine(*dominant, diagnosis);
  }
  return diagnosis;
}

Diagnosis Diagnose(const Profile& profile, const Hardware& hardware) {
  std::vector<const Tool*> tools;
  for (const std::unique_ptr<Tool>& tool : BuiltInTools()) {
    tools.push_back(tool.get());
  }
  return Diagnose(profile, hardware, tools);
}

}  // namespace kernelpro
