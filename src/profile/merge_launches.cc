// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "kernelpro/profile.h"
#include "profile/ncu_csv.h"

namespace kernelpro {

Profile MergeLaunches(const Profile& profile) {
  struct Sum {
    double value = 0, weight = 0;
  };

  Profile merged = profile;
  merged.kernels.clear();
  std::vector<std::map<std::string, Sum>> sums;
  std::map<std::string, std::size_t> by_name;
  for (const KernelProfile& launch : profile.kernels) {
    const auto [found, is_new] = by_name.try_emplace(launch.mangled, merged.kernels.size());
    if (is_new) {
      merged.kernels.push_back(launch);
      merged.kernels.back().time_us = 0;
      merged.kernels.back().time_share = 0;
      sums.emplace_back();
    }
    KernelProfile& kernel = merged.kernels[found->second];
    kernel.time_us += launch.time_us;
    kernel.time_share += launch.time_share;
    const double weight = launch.time_us > 0 ? launch.time_us : 1;
    for (const auto& [name, value] : launch.metrics) {
      kernel.metrics.try_emplace(name, value);
      const bool adds = name.ends_with(".sum");
      Sum& sum = sums[found->second][name];
      sum.value += adds ? value.value : value.value * weight;
      sum.weight += adds ? 0 : weight;
    }
  }
  for (std::size_t i = 0; i < merged.kernels.size(); ++i) {
    for (const auto& [name, sum] : sums[i]) {
      merged.kernels[i].metrics[name].value = sum.weight > 0 ? sum.value / sum.weight : sum.value;
    }
    std::erase_if(merged.kernels[i].missing, [&](const std::string& name) {
      return merged.kernels[i].metrics.contains(name);
    });
  }
  std::ranges::stable_sort(merged.kernels, [](const KernelProfile& a, const KernelProfile& b) {
    return a.time_us > b.time_us;
  });
  return merged;
}

}  // namespace kernelpro
