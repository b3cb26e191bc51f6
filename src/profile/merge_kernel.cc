// SPDX-License-Identifier: Apache-2.0
#include "profile/merge_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernelpro/profile.h"

namespace kernelpro {
namespace {

template <class T>
void TakeIfEmpty(T&& from, T& into) {
  if (into.empty()) {
    into = std::forward<T>(from);
  }
}

int Rank(Provenance provenance) {
  switch (provenance) {
    case Provenance::kMeasured:
      return 2;
    case Provenance::kCounted:
      return 1;
    case Provenance::kModelled:
      return 0;
  }
  return 0;
}

bool IsUnit(const std::uint32_t (&dim)[3]) {
  return dim[0] == 1 && dim[1] == 1 && dim[2] == 1;
}

/// A launch shape is taken whole: "1, 1, 1" is what sources without launches have.
void MergeShape(const KernelProfile& from, KernelProfile& into) {
  if (IsUnit(into.grid) && IsUnit(into.block)) {
    std::ranges::copy(from.grid, into.grid);
    std::ranges::copy(from.block, into.block);
  }
}

/// The places that a disassembly knows, put on the instructions that were sampled.
void MergeHotSpots(std::vector<HotSpot>&& from, std::vector<HotSpot>& into) {
  if (into.empty()) {
    into = std::move(from);
    return;
  }
  std::unordered_map<std::uint64_t, std::size_t> by_address;
  for (std::size_t i = 0; i < from.size(); ++i) {
    by_address.try_emplace(from[i].address, i);
  }
  for (HotSpot& spot : into) {
    const auto found = by_address.find(spot.address);
    if (found == by_address.end()) {
      continue;
    }
    const HotSpot& known = from[found->second];
    if (spot.line == 0) {
      spot.file = known.file;
      spot.line = known.line;
    }
    if (spot.producer.empty()) {
      spot.producer = known.producer;
      spot.producer_address = known.producer_address;
      spot.producer_file = known.producer_file;
      spot.producer_line = known.producer_line;
      spot.distance = known.distance;
    }
  }
}

}  // namespace

void MergeMetrics(std::map<std::string, Metric>&& from, std::map<std::string, Metric>& into) {
  for (auto& [name, metric] : from) {
    const auto [found, is_new] = into.try_emplace(name, metric);
    if (!is_new && Rank(metric.provenance) > Rank(found->second.provenance)) {
      found->second = std::move(metric);
    }
  }
}

void MergeKernel(KernelProfile&& from, KernelProfile& into) {
  TakeIfEmpty(std::move(from.name), into.name);
  if (into.mangled.empty() || (from.mangled.starts_with("_Z") && !into.mangled.starts_with("_Z"))) {
    into.mangled = std::move(from.mangled);
  }
  MergeShape(from, into);
  const bool better = Rank(from.time_provenance) > Rank(into.time_provenance);
  if (from.time_us > 0 && (into.time_us <= 0 || better)) {
    into.time_us = from.time_us;
    into.time_provenance = from.time_provenance;
    into.time_share = from.time_share;
  }
  MergeMetrics(std::move(from.metrics), into.metrics);
  TakeIfEmpty(std::move(from.lines), into.lines);
  TakeIfEmpty(std::move(from.opcodes), into.opcodes);
  into.texts.merge(std::move(from.texts));
  MergeHotSpots(std::move(from.hot_spots), into.hot_spots);
  into.notes.insert(into.notes.end(), std::make_move_iterator(from.notes.begin()),
                    std::make_move_iterator(from.notes.end()));
  if (!into.hot_loop) {
    into.hot_loop = std::move(from.hot_loop);
  }
  into.missing.insert(into.missing.end(), std::make_move_iterator(from.missing.begin()),
                      std::make_move_iterator(from.missing.end()));
  std::ranges::sort(into.missing);
  const auto twice = std::ranges::unique(into.missing);
  into.missing.erase(twice.begin(), twice.end());
  std::erase_if(into.missing, [&](const std::string& name) { return into.metrics.contains(name); });
}

}  // namespace kernelpro
