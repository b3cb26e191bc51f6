// SPDX-License-Identifier: Apache-2.0
#include "diagnose/h200_data.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "profile/metric_names.h"
#include "profile/ncu_csv.h"

namespace kernelpro::testing {
namespace {

nlohmann::json Json(const std::string& name) {
  std::ifstream in(std::string(KP_SOURCE_DIR) + "/tests/data/h200/" + name);
  return nlohmann::json::parse(in);
}

double LaneBytes(const std::string& name) {
  const std::set<std::string> vectors = {"copy4",     "copy_gs4", "add4",   "sm_warp4",
                                         "red_shfl4", "ln_one4",  "mm_r64", "mm_r128"};
  if (vectors.contains(name)) {
    return 16;
  }
  return name == "dfma" ? 8 : 4;
}

void AddFromSource(const std::string& name, KernelProfile& k) {
  const double bytes = 32 * LaneBytes(name);  // a full warp
  const auto add = [&](std::string_view metric, double value) {
    k.metrics[std::string(metric)] = {value, "", Provenance::kCounted};
  };
  const double loads = k.Value(metric::kLoadRequests).value();
  const double stores = k.Value(metric::kStoreRequests).value();
  if (loads > 0) {
    add(metric::kLoadBytesPerSector,
        std::min(32.0, loads * bytes / k.Value(metric::kLoadSectors).value()));
  }
  if (stores > 0) {
    add(metric::kStoreBytesPerSector,
        std::min(32.0, stores * bytes / k.Value(metric::kStoreSectors).value()));
  }
  add(metric::kLoadBytes, loads * bytes);
  const double memory = loads + stores + k.Value(metric::kSharedLoadsHw).value() +
                        k.Value(metric::kSharedStoresHw).value();
  if (name.starts_with("mm_")) {  // 2048 x 2048 x 2048
    add(metric::kFfma, 2048.0 * 2048 * 2048);
  }
  const bool wide = LaneBytes(name) >= 16;
  add(metric::kMemory32b, wide ? 0 : memory);
  add(metric::kMemory128b, wide ? memory : 0);
}

std::vector<H200Kernel> Load() {
  auto profile = ReadNcuCsv(std::string(KP_SOURCE_DIR) + "/tests/data/h200/ncu.csv");
  KP_CHECK(profile.ok()) << (profile.ok() ? "" : profile.error().message);
  const nlohmann::json names = Json("ncu.json");
  const nlohmann::json times = Json("times.json");
  KP_CHECK(names.size() == profile->kernels.size() && names.size() == times.size());
  std::vector<H200Kernel> kernels;
  for (std::size_t i = 0; i < names.size(); ++i) {
    H200Kernel kernel;
    kernel.name = names[i]["name"];
    KP_CHECK(times[i]["name"] == kernel.name);
    kernel.event_us = times[i]["us"];
    KernelProfile k = profile->kernels[i];
    k.time_us = kernel.event_us;
    k.time_share = 1;
    AddFromSource(kernel.name, k);
    kernel.profile.device = "H200";
    kernel.profile.source = "ncu";
    kernel.profile.kernels.push_back(std::move(k));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace

const std::vector<H200Kernel>& H200Kernels() {
  static const std::vector<H200Kernel> kKernels = Load();
  return kKernels;
}

const H200Kernel& H200(const std::string& name) {
  const auto found = std::ranges::find(H200Kernels(), name, &H200Kernel::name);
  KP_CHECK(found != H200Kernels().end()) << name;
  return *found;
}

Hardware H200Hardware() {
  Hardware hardware;
  hardware.name = "NVIDIA H200 SXM";
  hardware.sm_count = 132;
  hardware.clock_hz = 1.98e9;
  hardware.dram_bytes_per_s = 4.32e12;  // 0.9 of the peak
  hardware.dram_peak_bytes_per_s = 4.8e12;
  hardware.l2_bytes_per_s = 7.85e12;
  hardware.fp32_flops_per_s = 66.9e12;
  hardware.fp64_flops_per_s = 33.45e12;
  hardware.warps_per_sm = 64;
  hardware.cta_launches_per_s = 0.83 * 1.98e9;
  hardware.dram_latency_s = 690 / 1.98e9;
  return hardware;
}

}  // namespace kernelpro::testing
