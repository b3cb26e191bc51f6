// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/memory.h"
#include "emulator/simt/report.h"

namespace kernelpro::simt {

/// The figures of the GPU that the engine needs; filled from model::GpuSpec.
struct EngineSpec {
  std::uint32_t sm_count = 132;
  std::uint32_t warps_per_sm = 64;
  std::uint32_t l1_bytes = 256U << 10U;  ///< L1 and shared memory together, per SM
  std::uint64_t l2_bytes = 50ULL << 20U;
  std::uint32_t max_shared_per_cta = 227U << 10U;
  std::uint32_t max_threads_per_cta = 1024;
  std::uint32_t max_threads_per_sm = 2048;
  std::uint32_t clock_mhz = 1980;
};

/// A module decoded for execution: handlers chosen, control flow analysed, shared memory laid out.
/// Immutable; may be shared.
class Program {
 public:
  /// Module-scope variables are allocated in `memory` and initialised. Opcodes without a handler
  /// are not an error here: they fault with kUnsupported when reached.
  [[nodiscard]] static Result<std::unique_ptr<Program>> Create(
      std::shared_ptr<const ptx::Module> module, DeviceMemory& memory);
  virtual ~Program() = default;
  [[nodiscard]] virtual const ptx::Module& module() const = 0;
  /// Device address of a module-scope variable; 0 when there is none of this name.
  [[nodiscard]] virtual std::uint64_t AddressOf(std::string_view symbol) const = 0;
  /// Static shared memory of a kernel in bytes.
  [[nodiscard]] virtual std::uint64_t StaticShared(std::string_view kernel) const = 0;
};

enum class Mode : std::uint8_t {
  kCheck,   ///< every CTA; bounds, alignment, barriers, plus shared-memory races and uninitialised
            ///< reads
  kCount,   ///< every CTA; bounds, alignment, barriers; counters
  kSample,  ///< counters from cohorts of CTAs that would share an SM; memory effects of those only
};

struct LaunchConfig {
  std::string_view kernel;
  Dim3 grid, block;
  std::uint64_t dynamic_shared = 0;
  std::vector<std::byte> parameters;  ///< laid out by ptx::Function::parameters
  Mode mode = Mode::kCount;
  std::uint32_t resident_ctas_per_sm =
      1;                      ///< from the occupancy calculation; cohort size and L1 share
  std::uint32_t cohorts = 2;  ///< kSample
  std::uint64_t l1_carveout_bytes = 0;  ///< shared memory in use per SM, taken from l1_bytes
  /// Warp-level instructions before the launch is stopped with kBudget.
  std::uint64_t instruction_budget = 4'000'000'000ULL;
};

/// Runs a launch to its end or first fatal fault. An Error means that the launch could not be
/// started (no such kernel, bad geometry, wrong parameter size) exactly where CUDA refuses it too;
/// what the kernel itself does wrong is in LaunchReport::faults. Deterministic: same inputs, same
/// report and memory.
[[nodiscard]] Result<LaunchReport> Launch(const Program& program, const LaunchConfig& config,
                                          const EngineSpec& spec, DeviceMemory& memory);

}  // namespace kernelpro::simt
