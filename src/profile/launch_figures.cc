// SPDX-License-Identifier: Apache-2.0
#include "profile/launch_figures.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernelpro/profile.h"
#include "profile/metric_names.h"

namespace kernelpro {
namespace {

constexpr double kMostThreads = 1024;
constexpr double kMostBytes = 1 << 20;  ///< of shared memory: more than any GPU has

double Product(const std::uint32_t (&dim)[3]) {
  return double{1} * dim[0] * dim[1] * dim[2];
}

/// A launch shape of ones is that of a source without launches.
std::optional<double> Threads(const KernelProfile& kernel) {
  if (const auto threads = kernel.Value(metric::kBlockSize)) {
    return threads;
  }
  const double threads = Product(kernel.block);
  return threads * Product(kernel.grid) > 1 ? std::optional<double>(threads) : std::nullopt;
}

std::optional<double> Blocks(const KernelProfile& kernel) {
  if (const auto blocks = kernel.Value(metric::kGridSize)) {
    return blocks;
  }
  return Threads(kernel) ? std::optional<double>(Product(kernel.grid)) : std::nullopt;
}

struct Shared {
  double bytes = 0;
  bool only_static = false;
};

Shared SharedBytes(const KernelProfile& kernel) {
  if (const auto bytes = kernel.Value(metric::kSharedPerBlock)) {
    return {*bytes, false};
  }
  const auto fixed = kernel.Value(metric::kSharedStatic);
  const auto dynamic = kernel.Value(metric::kSharedDynamic);
  return {fixed.value_or(kernel.Value("ptxas.shared_bytes").value_or(0)) + dynamic.value_or(0),
          !dynamic};
}

class Adder {
 public:
  explicit Adder(KernelProfile& kernel) : kernel_(kernel) {}

  void Add(std::string_view name, double value, std::string_view unit) {
    if (!kernel_.metrics.contains(std::string(name))) {
      kernel_.metrics[std::string(name)] = {value, std::string(unit), Provenance::kCounted};
      added_ = true;
    }
  }

  [[nodiscard]] bool added() const { return added_; }

 private:
  KernelProfile& kernel_;
  bool added_ = false;
};

bool AddTo(const model::GpuSpec& spec, KernelProfile& kernel, bool& guessed) {
  const auto registers = kernel.Value(metric::kRegisters).has_value()
                             ? kernel.Value(metric::kRegisters)
                             : kernel.Value("ptxas.registers");
  const std::optional<double> threads = Threads(kernel);
  const Shared shared = SharedBytes(kernel);
  // Written so that figures which are no numbers fail too.
  if (!registers || !threads || !(*registers >= 1 && *registers <= 255) ||
      !(*threads >= 1 && *threads <= kMostThreads) ||
      !(shared.bytes >= 0 && shared.bytes <= kMostBytes)) {
    return false;
  }
  model::KernelResources resources;
  resources.registers_per_thread = static_cast<std::uint32_t>(*registers);
  resources.static_shared_bytes = static_cast<std::uint64_t>(shared.bytes);
  const model::Occupancy occupancy =
      model::ComputeOccupancy(spec, resources, static_cast<std::uint32_t>(*threads), 0);
  Adder adder(kernel);
  adder.Add(metric::kRegisters, *registers, "register/thread");
  adder.Add(metric::kBlockSize, *threads, "");
  adder.Add(metric::kLimitRegisters, occupancy.limit_registers, "block");
  adder.Add(metric::kLimitShared, occupancy.limit_shared, "block");
  adder.Add(metric::kLimitBlocks, occupancy.limit_ctas, "block");
  adder.Add(metric::kLimitWarps, occupancy.limit_warps, "block");
  adder.Add(metric::kWarpsMaximumPct, 100 * occupancy.theoretical, "%");
  const std::optional<double> blocks = Blocks(kernel);
  if (blocks && occupancy.ctas_per_sm > 0 && spec.sm_count > 0) {
    adder.Add(metric::kGridSize, *blocks, "");
    adder.Add(metric::kWaves, *blocks / (double{1} * spec.sm_count * occupancy.ctas_per_sm), "");
  }
  guessed = guessed || (adder.added() && shared.only_static);
  std::erase_if(kernel.missing,
                [&](const std::string& name) { return kernel.metrics.contains(name); });
  return adder.added();
}

}  // namespace

std::size_t AddLaunchFigures(const model::GpuSpec& spec, Profile& profile) {
  std::size_t kernels = 0;
  bool guessed = false;
  for (KernelProfile& kernel : profile.kernels) {
    kernels += AddTo(spec, kernel, guessed) ? 1 : 0;
  }
  if (guessed) {
    profile.notes.emplace_back(
        "Occupancy was computed without dynamic shared memory, which no source names: it may be "
        "lower.");
  }
  return kernels;
}

}  // namespace kernelpro
