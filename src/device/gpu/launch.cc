// SPDX-License-Identifier: Apache-2.0
// Kernel launches: what CUDA refuses is refused here, the rest runs in the interpreter.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "device/emulated_launch.h"
#include "device/gpu/emulated_gpu.h"
#include "device/protocol/cuda_error.h"

namespace kernelpro::gpu {
namespace {

using protocol::LaunchField;

constexpr std::uint64_t kMaxGridX = 0x7fffffff;
constexpr std::uint64_t kMaxGridYz = 65535;
constexpr std::uint64_t kMaxBlockZ = 64;

std::uint64_t Field(const protocol::GpuRequest& request, LaunchField field) {
  return request.Value(static_cast<std::size_t>(field));
}

std::uint32_t Narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX));
}

std::string Describe(const simt::Dim3& d) {
  return fmt::format("({}, {}, {})", d.x, d.y, d.z);
}

/// What cudaGetLastError says after a kernel that ended in this fault.
std::int32_t ErrorOf(const simt::Fault& fault) {
  switch (fault.kind) {
    case simt::FaultKind::kOutOfBounds:
    case simt::FaultKind::kWriteToReadOnly:
    case simt::FaultKind::kSharedOutOfBounds:
    case simt::FaultKind::kLocalOutOfBounds:
      return protocol::kErrorIllegalAddress;
    case simt::FaultKind::kMisaligned:
      return protocol::kErrorMisalignedAddress;
    case simt::FaultKind::kDeadlock:
    case simt::FaultKind::kBudget:
      return protocol::kErrorLaunchTimeout;
    case simt::FaultKind::kTrap:
      return fault.message.find("assert") == std::string::npos ? protocol::kErrorLaunchFailure
                                                               : protocol::kErrorAssert;
    case simt::FaultKind::kUnsupported:
      return protocol::kErrorNotSupported;
    default:
      return protocol::kErrorLaunchFailure;
  }
}

std::uint64_t WarpInstructions(const simt::LaunchReport& report) {
  std::uint64_t sum = 0;
  const auto add = [&sum](const std::vector<simt::InstructionCounters>& instructions) {
    for (const simt::InstructionCounters& counters : instructions) {
      sum += counters.warps;
    }
  };
  add(report.instructions);
  for (const simt::CalledFunction& function : report.called) {
    add(function.instructions);
  }
  return sum;
}

}  // namespace

protocol::GpuReply EmulatedGpu::Launch(const Request& request) {
  const LoadedFunction* const function = Function(Field(request, LaunchField::kFunction));
  LaunchShape shape;
  shape.grid = {Narrow(Field(request, LaunchField::kGridX)),
                Narrow(Field(request, LaunchField::kGridY)),
                Narrow(Field(request, LaunchField::kGridZ))};
  shape.block = {Narrow(Field(request, LaunchField::kBlockX)),
                 Narrow(Field(request, LaunchField::kBlockY)),
                 Narrow(Field(request, LaunchField::kBlockZ))};
  shape.dynamic_shared = Field(request, LaunchField::kDynamicShared);
  std::string why;
  const std::int32_t refused = CheckLaunch(request, function, shape, &why);
  if (refused != protocol::kSuccess) {
    const std::string name = function == nullptr ? "an unknown kernel" : function->ptx->name;
    const std::string text = fmt::format("launch of {} refused: {}", name, why);
    if (refused == protocol::kErrorNotSupported) {
      return Unsupported(refused, text);
    }
    return Failed(refused, text, true);
  }
  Reply reply;
  reply.error = Run(*function, shape, request);
  return reply;
}

std::int32_t EmulatedGpu::CheckLaunch(const Request& request, const LoadedFunction* function,
                                      const LaunchShape& shape, std::string* why) const {
  const simt::Dim3& grid = shape.grid;
  const simt::Dim3& block = shape.block;
  if (function == nullptr) {
    *why = "it is not a kernel of a module that could be loaded";
    return protocol::kErrorInvalidDeviceFunction;
  }
  if (!IsStream(Field(request, LaunchField::kStream))) {
    *why = "no such stream";
    return protocol::kErrorInvalidResourceHandle;
  }
  if (Field(request, LaunchField::kUnsupportedAttributes) != 0) {
    *why = "launch attributes (clusters, cooperative launch and the like) are not emulated";
    return protocol::kErrorNotSupported;
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > kMaxGridX || grid.y > kMaxGridYz ||
      grid.z > kMaxGridYz) {
    *why = fmt::format("grid {}: each side must be 1 to {}, {}, {}", Describe(grid), kMaxGridX,
                       kMaxGridYz, kMaxGridYz);
    return protocol::kErrorInvalidConfiguration;
  }
  if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > engine_.max_threads_per_cta ||
      block.y > engine_.max_threads_per_cta || block.z > kMaxBlockZ ||
      block.Count() > engine_.max_threads_per_cta) {
    *why = fmt::format("block {} has {} threads; 1 to {} are possible", Describe(block),
                       block.Count(), engine_.max_threads_per_cta);
    return protocol::kErrorInvalidConfiguration;
  }
  if (shape.dynamic_shared > function->max_dynamic_shared) {
    *why = fmt::format(
        "{} bytes of dynamic shared memory, allowed are {} (raise it with cudaFuncSetAttribute, "
        "cudaFuncAttributeMaxDynamicSharedMemorySize, up to {} less the static {})",
        shape.dynamic_shared, function->max_dynamic_shared, spec_.shared_per_cta_bytes,
        StaticShared(*function));
    return protocol::kErrorInvalidValue;
  }
  if (block.Count() > MaxThreads(*function)) {
    *why =
        fmt::format("block of {} threads; registers ({} a thread) or launch bounds allow {}",
                    block.Count(), function->resources.registers_per_thread, MaxThreads(*function));
    return protocol::kErrorLaunchOutOfResources;
  }
  if (model::ComputeOccupancy(spec_, ResourcesOf(*function),
                              static_cast<std::uint32_t>(block.Count()), shape.dynamic_shared)
          .ctas_per_sm == 0) {
    *why = "registers and shared memory of one block are more than a multiprocessor has";
    return protocol::kErrorLaunchOutOfResources;
  }
  if (request.bytes.size() != function->parameter_bytes) {
    *why = fmt::format("{} bytes of parameters, {} are declared", request.bytes.size(),
                       function->parameter_bytes);
    return protocol::kErrorInvalidValue;
  }
  return protocol::kSuccess;
}

std::int32_t EmulatedGpu::Run(const LoadedFunction& function, const LaunchShape& shape,
                              const Request& request) {
  simt::LaunchConfig config;
  config.kernel = function.ptx->name;
  config.grid = shape.grid;
  config.block = shape.block;
  config.dynamic_shared = shape.dynamic_shared;
  config.parameters = request.bytes;
  config.mode = mode_ == CallMode::kTime ? simt::Mode::kSample : simt::Mode::kCheck;
  config.instruction_budget = budget_left_;
  Result<EmulatedLaunch> launched =
      RunEmulatedLaunch({.spec = spec_,
                         .program = *function.module->program,
                         .kernel = *function.ptx,
                         .resources = ResourcesOf(function),
                         .resources_estimated = function.resources_estimated},
                        std::move(config), memory_);
  if (!launched) {
    NoteError(protocol::kErrorInvalidConfiguration, launched.error().message, true);
    return protocol::kErrorInvalidConfiguration;
  }
  const simt::LaunchReport& report = launched->report;
  budget_left_ -= std::min(budget_left_, WarpInstructions(report));
  for (const simt::Fault& fault : report.faults) {
    if (fault.fatal && sticky_ == protocol::kSuccess) {
      sticky_ = ErrorOf(fault);
      NoteError(sticky_, fault.message, true);
    }
  }
  clock_us_ += std::isfinite(launched->time.time_us) ? launched->time.time_us : 0;
  Record(std::move(launched).value());
  return sticky_;
}

void EmulatedGpu::Record(EmulatedLaunch launch) {
  // The first launch and the one with the fatal fault are kept whatever the others need.
  std::size_t instructions = launch.report.instructions.size();
  for (const simt::CalledFunction& function : launch.report.called) {
    instructions += function.instructions.size();
  }
  const bool full = report_.launches.size() >= protocol::kMostLaunchRecords ||
                    recorded_instructions_ + instructions > protocol::kMostInstructionRecords;
  if (full && !report_.launches.empty() && launch.report.Completed()) {
    ++report_.launches_left_out;
    return;
  }
  recorded_instructions_ += instructions;
  report_.launches.push_back(std::move(launch));
}

}  // namespace kernelpro::gpu
