// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "kernelpro/profile.h"
#include "profile/metric_names.h"
#include "profile/metric_sets.h"

namespace kernelpro::metric_sets {
namespace {

struct PackRow {
  Pack pack;
  std::string_view name;
  std::array<std::string_view, 5> groups;
};

/// "duration" is in every pack: it says whether two runs of the program are alike.
constexpr std::array<PackRow, 10> kPacks = {{
    {Pack::kFirst, "first", {"roofline", "launch", "shared"}},
    {Pack::kMemory, "memory", {"duration", "l1", "l2", "aperture"}},
    {Pack::kLatency, "latency", {"duration", "scheduler", "stall6", "icache", "latency"}},
    {Pack::kCompute, "compute", {"duration", "tensor", "pipes", "divergence"}},
    {Pack::kParallel, "parallel", {"duration", "balance", "cta_launch"}},
    {Pack::kAtomics, "atomics", {"duration", "atomics"}},
    {Pack::kTma, "tma", {"duration", "tma"}},
    {Pack::kSass, "sass", {"duration", "sass"}},
    {Pack::kSampling, "sampling", {"duration", "samples"}},
    {Pack::kStalls, "stalls", {"duration", "stall6", "stalls"}},
}};

bool Asked(std::span<const Pack> packs, std::string_view group) {
  return std::ranges::any_of(kPacks, [&](const PackRow& row) {
    return std::ranges::find(packs, row.pack) != packs.end() &&
           std::ranges::find(row.groups, group) != row.groups.end();
  });
}

std::vector<std::string> Collect(std::span<const Pack> packs, Arch arch, std::optional<How> how) {
  const auto bit = static_cast<std::uint8_t>(1U << static_cast<unsigned>(arch));
  std::vector<std::string> names;
  std::unordered_set<std::string_view> seen;
  for (const Group& group : Groups()) {
    if ((how && group.how != *how) || !Asked(packs, group.name)) {
      continue;
    }
    for (const Entry& entry : group.entries) {
      if ((entry.archs & bit) != 0 && seen.insert(entry.name).second) {
        names.emplace_back(entry.name);
      }
    }
  }
  return names;
}

/// The largest of these percentages as a fraction; 0 when none was collected.
double Busiest(const KernelProfile& kernel, std::initializer_list<std::string_view> names) {
  double busiest = 0;
  for (const std::string_view name : names) {
    busiest = std::max(busiest, kernel.Value(name).value_or(0) / 100);
  }
  return busiest;
}

/// Blocks are few, or the SMs are not busy alike.
bool Uneven(const KernelProfile& kernel) {
  const double active = kernel.Value(metric::kCyclesActive).value_or(0);
  const double active_max = kernel.Value(metric::kCyclesActiveMax).value_or(0);
  const double elapsed = kernel.Value(metric::kCyclesElapsed).value_or(0);
  return kernel.Value(metric::kWaves).value_or(1e9) < 6 ||
         (active > 0 && elapsed > 0 && active / elapsed < 0.85) ||
         (active_max > 0 && 1 - active / active_max >= 0.03);
}

/// False only where a disassembly was read and has none of these instructions.
bool MayHave(const KernelProfile& kernel, std::initializer_list<std::string_view> counts) {
  return !kernel.Value("sass.instructions") ||
         std::ranges::any_of(
             counts, [&](std::string_view count) { return kernel.Value(count).value_or(0) > 0; });
}

}  // namespace

Arch ArchOf(std::uint32_t compute_capability) {
  if (compute_capability < 90) {
    return Arch::kSm80;
  }
  return compute_capability < 100 ? Arch::kSm90 : Arch::kSm100;
}

std::string_view ChipOf(Arch arch) {
  switch (arch) {
    case Arch::kSm80:
      return "GA100";
    case Arch::kSm90:
      return "GH100";
    case Arch::kSm100:
      return "GB100";
  }
  return {};
}

std::string_view Name(Pack pack) {
  for (const PackRow& row : kPacks) {
    if (row.pack == pack) {
      return row.name;
    }
  }
  return {};
}

std::vector<std::string> Metrics(std::span<const Pack> packs, Arch arch) {
  return Collect(packs, arch, std::nullopt);
}

std::vector<std::string> Metrics(std::span<const Pack> packs, Arch arch, How how) {
  return Collect(packs, arch, how);
}

std::vector<Pack> EveryPack() {
  std::vector<Pack> packs;
  packs.reserve(kPacks.size());
  for (const PackRow& row : kPacks) {
    packs.push_back(row.pack);
  }
  return packs;
}

std::vector<Pack> PacksAfter(const KernelProfile& first) {
  const double memory = Busiest(first, {metric::kDramPct, metric::kL2Pct, metric::kL2XbarPct,
                                        metric::kL1Pct, metric::kLsuPct});
  const double compute = Busiest(first, {metric::kTensorPct, metric::kFmaPct, metric::kAluPct,
                                         metric::kFp64Pct, metric::kXuPct});
  const double issue = first.Value(metric::kIssueActive).value_or(0);
  // Nothing is busy: an access pattern is as likely the reason as a latency.
  const bool latent = memory < 0.65 && compute < 0.65 && issue < 0.65;
  std::vector<Pack> packs;
  if (memory >= 0.4 || latent) {
    packs.push_back(Pack::kMemory);
  }
  if (latent || (memory < 0.65 && issue < 0.8)) {
    packs.push_back(Pack::kLatency);
  }
  if (compute >= 0.4 || issue >= 0.6) {
    packs.push_back(Pack::kCompute);
  }
  if (Uneven(first)) {
    packs.push_back(Pack::kParallel);
  }
  if (MayHave(first, {"sass.atom", "sass.red"})) {
    packs.push_back(Pack::kAtomics);
  }
  if (first.Value("sass.tma").value_or(0) > 0) {
    packs.push_back(Pack::kTma);
  }
  packs.push_back(Pack::kSass);
  return packs;
}

}  // namespace kernelpro::metric_sets
