// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "device/protocol/control.h"
#include "device/protocol/gpu_request.h"
#include "emulator/model/model.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/engine.h"
#include "emulator/simt/memory.h"

namespace kernelpro::gpu {

/// One CUDA context on an emulated GPU: memory, modules, streams, events, the modelled clock, and
/// the record of the call in progress. Answers requests; does no I/O. Requests come from untrusted
/// code and are checked here: whatever they hold, the answer is a cudaError_t. Not thread safe.
class EmulatedGpu {
 public:
  /// `memory_bytes` may be less than the GPU has: the emulator backs it with host memory.
  EmulatedGpu(model::GpuSpec spec, std::uint64_t memory_bytes);

  // For the referee.
  void SetResources(std::map<std::string, model::KernelResources> resources);
  /// `base` is the start of the buffer in the caller's mapping. kUnavailable: out of device memory.
  [[nodiscard]] Result<std::uint64_t> AddBuffer(const protocol::AllocateMessage& request,
                                                std::byte* base);
  [[nodiscard]] Status RemoveBuffer(std::uint64_t address);
  void BeginCall(const protocol::BeginCallMessage& call);
  [[nodiscard]] protocol::CallReport EndCall();

  // For the runner.
  [[nodiscard]] protocol::GpuReply Handle(const protocol::GpuRequest& request);
  /// A request that came while no call was open.
  [[nodiscard]] protocol::GpuReply RefuseStray();
  void NoteMalformed();

 private:
  struct LoadedModule {
    std::shared_ptr<const ptx::Module> ptx;
    std::unique_ptr<simt::Program> program;
  };

  struct LoadedFunction {
    const LoadedModule* module = nullptr;
    const ptx::Function* ptx = nullptr;
    model::KernelResources resources;
    bool resources_estimated = false;
    std::uint32_t parameter_bytes = 0;
    std::uint64_t max_dynamic_shared = 0;  ///< without static; raised by cudaFuncSetAttribute
    std::int32_t preferred_carveout = -1;
  };

  struct StreamState {
    std::uint32_t flags = 0;
    std::uint32_t priority = 0;
  };

  struct EventState {
    bool recorded = false;
    double at_us = 0;
    bool timing = true;
  };

  struct LaunchShape {
    simt::Dim3 grid, block;
    std::uint64_t dynamic_shared = 0;
  };

  using Reply = protocol::GpuReply;
  using Request = protocol::GpuRequest;

  // modules.cc
  [[nodiscard]] Reply RegisterModule(const Request& request);
  [[nodiscard]] Reply FindFunction(const Request& request);
  [[nodiscard]] Reply FindVariable(const Request& request);
  [[nodiscard]] Reply FunctionInfo(const Request& request);
  [[nodiscard]] Reply SetFunctionAttribute(const Request& request);
  [[nodiscard]] Reply Occupancy(const Request& request);
  [[nodiscard]] LoadedFunction* Function(std::uint64_t handle);
  [[nodiscard]] std::uint64_t StaticShared(const LoadedFunction& function) const;
  [[nodiscard]] std::uint64_t MaxThreads(const LoadedFunction& function) const;
  [[nodiscard]] model::KernelResources ResourcesOf(const LoadedFunction& function) const;

  // launch.cc
  [[nodiscard]] Reply Launch(const Request& request);
  [[nodiscard]] std::int32_t CheckLaunch(const Request& request, const LoadedFunction* function,
                                         const LaunchShape& shape, std::string* why) const;
  [[nodiscard]] std::int32_t Run(const LoadedFunction& function, const LaunchShape& shape,
                                 const Request& request);
  void Record(EmulatedLaunch launch);

  // memory_operations.cc
  [[nodiscard]] Reply Malloc(const Request& request);
  [[nodiscard]] Reply Free(const Request& request);
  [[nodiscard]] Reply Memset(const Request& request);
  [[nodiscard]] Reply Write(const Request& request);
  [[nodiscard]] Reply Read(const Request& request);
  [[nodiscard]] Reply Copy(const Request& request);
  [[nodiscard]] Reply MemoryInfo() const;
  /// Host view for writing by host code; an empty span and *error set when it may not.
  [[nodiscard]] std::span<std::byte> Writable(std::uint64_t address, std::uint64_t bytes,
                                              std::string_view doing, std::int32_t* error);
  void SpendOnBytes(double bytes, double bytes_per_second, bool starts);

  // stream_operations.cc
  [[nodiscard]] Reply Stream(const Request& request);
  [[nodiscard]] Reply Event(const Request& request);
  [[nodiscard]] Reply DeviceInfo() const;
  [[nodiscard]] bool IsStream(std::uint64_t handle) const;

  [[nodiscard]] Reply Dispatch(const Request& request);
  /// Keeps the first sentence about each error of this call.
  void NoteError(std::int32_t error, std::string text, bool launch = false);
  [[nodiscard]] Reply Failed(std::int32_t error, std::string text, bool launch = false);
  /// The candidate needs what the emulator does not have.
  [[nodiscard]] Reply Unsupported(std::int32_t error, std::string text);

  model::GpuSpec spec_;
  simt::EngineSpec engine_;
  simt::DeviceMemory memory_;
  std::map<std::string, model::KernelResources> resources_;
  std::vector<std::unique_ptr<LoadedModule>> modules_;
  std::map<std::uint64_t, LoadedFunction> functions_;
  std::map<std::uint64_t, StreamState> streams_;
  std::map<std::uint64_t, EventState> events_;
  std::set<std::uint64_t> inputs_;  ///< buffers of the referee that must not be written
  std::map<std::uint64_t, std::uint64_t> candidate_allocations_;  ///< address -> bytes
  std::uint64_t next_handle_;
  double clock_us_ = 0;
  double call_start_us_ = 0;
  CallMode mode_ = CallMode::kCheck;
  std::uint64_t budget_left_ = 0;
  std::int32_t sticky_ = 0;
  std::uint64_t next_contiguous_ = 0;  ///< where a copy in pieces goes on
  protocol::CallReport report_;
  std::size_t recorded_instructions_ = 0;  ///< of report_.launches
};

}  // namespace kernelpro::gpu
