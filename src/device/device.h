// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "emulator/model/model.h"
#include "emulator/simt/report.h"
#include "kernelpro/tool.h"

namespace kernelpro {

namespace cuda {
class CudaSession;
class Gpu;
}  // namespace cuda

struct DeviceInfo {
  std::string id;        ///< "emulator:h200"
  std::string title;     ///< "NVIDIA H200 SXM (emulated)"
  std::string arch;      ///< "sm_90"
  std::string spec;      ///< the emulator's data file for this GPU, or the nearest: "h200"
  bool emulated = true;  ///< times are modelled, counters counted
  bool calibrated = false;
  std::uint64_t l2_bytes = 0;
  Hardware hardware;  ///< peak and achievable rates, for floors and diagnosis
};

/// Who did what in one emulated kernel launch.
struct EmulatedLaunch {
  struct Instruction {
    std::string opcode;
    std::uint32_t file = 0, line = 0;  ///< CUDA source; file indexes `files`
  };

  simt::LaunchReport report;
  std::vector<Instruction> instructions;  ///< same index as report.instructions
  std::vector<std::string> files;
  model::ModelledTime time;
  model::KernelResources resources;
  bool resources_estimated = false;  ///< ptxas figures were not at hand
};

using BufferId = std::uint32_t;

struct BufferRequest {
  std::string name;
  std::uint64_t bytes = 0;
  bool read_only = false;  ///< kernels must not write it (enforced where the device can)
};

/// A pointer field of the argument block.
struct PointerSlot {
  std::uint32_t offset = 0;
  BufferId buffer = 0;
};

enum class CallMode : std::uint8_t {
  kCheck,  ///< whole, with every check the device has
  kTime,   ///< timing (emulator: sampled and modelled); outputs need not be complete
};

struct CallRequest {
  std::vector<std::byte> arguments;   ///< TaskArgs image
  std::vector<PointerSlot> pointers;  ///< filled in by the session
  CallMode mode = CallMode::kCheck;
  bool prepare = false;  ///< call kernelpro_prepare instead of kernelpro_run
  std::chrono::milliseconds wall_limit{20'000};
  std::uint64_t instruction_budget = 2'000'000'000ULL;  ///< emulator: warp instructions of the call
};

/// How one call into the candidate ended. What it computed is in the buffers.
struct CallOutcome {
  enum class End : std::uint8_t {
    kReturned,     ///< see cuda_error
    kLoadFailed,   ///< library or symbol could not be loaded
    kCrashed,      ///< runner died of a signal
    kExited,       ///< candidate called exit
    kTimedOut,     ///< wall limit, or instruction budget
    kForbidden,    ///< a system call that the sandbox denies (fork, exec, network ...)
    kOutOfMemory,  ///< host or device memory limit
    kDeviceFault,  ///< kernel did something illegal: faults
    kUnsupported,  ///< the emulator cannot run it: reason
    kDeviceLost,   ///< our device process died: an infrastructure failure
  };
  End end = End::kReturned;
  int cuda_error = 0;           ///< what kernelpro_run returned, or the first failed launch
  std::string cuda_error_name;  ///< "cudaErrorInvalidConfiguration"
  std::string reason;  ///< a sentence for a person when end != kReturned or cuda_error != 0
  std::vector<EmulatedLaunch> launches;
  std::uint64_t launches_left_out = 0;  ///< beyond 2,000 (or very large ones); their
                                        ///< time is in device_us
  std::vector<simt::Fault> faults;      ///< of all launches, fatal first
  double device_us = 0;  ///< sum over the launches of the call, on the device's own clock
  /// Copies between host and device inside the call: work that may have moved to the host.
  std::uint64_t host_to_device_bytes = 0, device_to_host_bytes = 0;
  std::string printed;  ///< candidate's and its kernels' output, printable, at most 64 KiB
};

/// One of the measures that keep a candidate from the rest of the machine.
struct SandboxMeasure {
  std::string name;  ///< "seccomp", "landlock", "user namespace", "no network", "rlimits"
  bool on = false;
  std::string detail;  ///< what it does; when off, why the machine does not allow it
};

/// One candidate loaded on a device: owns its runner process. Not thread safe. After an end other
/// than kReturned the session is dead: every later Call fails with kUnavailable; buffers stay
/// readable.
class Session {
 public:
  virtual ~Session() = default;
  /// Zero filled. kUnavailable: out of device memory.
  [[nodiscard]] virtual Result<BufferId> Allocate(const BufferRequest& request) = 0;
  [[nodiscard]] virtual Status Free(BufferId id) = 0;
  [[nodiscard]] virtual Status Write(BufferId id, std::uint64_t offset,
                                     std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Status Read(BufferId id, std::uint64_t offset,
                                    std::span<std::byte> bytes) = 0;
  /// False when the bands in front of or behind the buffer were changed.
  [[nodiscard]] virtual Result<bool> GuardsIntact(BufferId id) = 0;
  [[nodiscard]] virtual Result<CallOutcome> Call(const CallRequest& request,
                                                 const std::stop_token& stop) = 0;

  /// The session as one on a real GPU, where it can be timed; null on the emulator.
  [[nodiscard]] virtual cuda::CudaSession* cuda() { return nullptr; }

  /// What keeps this candidate in.
  [[nodiscard]] virtual std::vector<SandboxMeasure> sandbox() const { return {}; }
};

struct SessionRequest {
  std::filesystem::path library;                          ///< the candidate's .so
  std::map<std::string, model::KernelResources> kernels;  ///< ptxas figures by mangled name
  std::uint64_t host_memory_bytes = 4ULL << 30U;
  std::uint64_t device_memory_bytes = 1ULL << 30U;  ///< real GPU: for all buffers with their bands
  std::chrono::milliseconds start_limit{10'000};
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceInfo& info() const = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Session>> Open(const SessionRequest& request) = 0;

  /// A candidate will come soon: what can be started without it is started now. Optional.
  virtual void Prepare() {}

  /// The referee's side of a real GPU; null on the emulator.
  [[nodiscard]] virtual cuda::Gpu* gpu() { return nullptr; }
};

/// "auto", "emulator", "emulator:<gpu>", "cuda", "cuda:<n>". Auto takes a GPU when there is a
/// usable one, else the emulator. kInvalidArgument lists the choices, kUnavailable says what is
/// missing.
[[nodiscard]] Result<std::unique_ptr<Device>> OpenDevice(std::string_view choice);

}  // namespace kernelpro
