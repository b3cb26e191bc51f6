// SPDX-License-Identifier: Apache-2.0
// Modules, kernels and variables of the emulated GPU.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "device/gpu/emulated_gpu.h"
#include "device/gpu/fat_binary.h"
#include "device/protocol/cuda_error.h"

namespace kernelpro::gpu {
namespace {

constexpr std::uint64_t kDefaultDynamicShared = 48U << 10U;
/// cudaFuncAttribute.
constexpr std::uint64_t kAttributeMaxDynamicShared = 8;
constexpr std::uint64_t kAttributeCarveout = 9;
constexpr std::size_t kMostModules = 256;

std::string TextOf(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

protocol::GpuReply EmulatedGpu::RegisterModule(const Request& request) {
  if (modules_.size() >= kMostModules) {
    return Failed(protocol::kErrorMemoryAllocation, "too many modules were registered");
  }
  auto text = ExtractPtx(request.bytes, spec_.compute_capability);
  if (!text) {
    return Unsupported(text.error().code == ErrorCode::kParse
                           ? protocol::kErrorInvalidKernelImage
                           : protocol::kErrorNoKernelImageForDevice,
                       text.error().message);
  }
  auto parsed = ptx::Parse(*text, fmt::format("module {}", modules_.size()));
  if (!parsed) {
    return Unsupported(protocol::kErrorInvalidPtx,
                       "the emulator cannot read this PTX: " + parsed.error().message);
  }
  auto loaded = std::make_unique<LoadedModule>();
  loaded->ptx = std::make_shared<const ptx::Module>(std::move(parsed).value());
  auto program = simt::Program::Create(loaded->ptx, memory_);
  if (!program) {
    return Unsupported(protocol::kErrorInvalidPtx,
                       "the emulator cannot prepare this module: " + program.error().message);
  }
  loaded->program = std::move(program).value();
  modules_.push_back(std::move(loaded));
  Reply reply;
  reply.values = {modules_.size()};  // Handle: index + 1
  return reply;
}

EmulatedGpu::LoadedFunction* EmulatedGpu::Function(std::uint64_t handle) {
  const auto found = functions_.find(handle);
  return found == functions_.end() ? nullptr : &found->second;
}

protocol::GpuReply EmulatedGpu::FindFunction(const Request& request) {
  const std::uint64_t module = request.Value(0);
  if (module == 0 || module > modules_.size()) {
    return Failed(protocol::kErrorInvalidResourceHandle, "no such module");
  }
  LoadedFunction loaded;
  loaded.module = modules_[static_cast<std::size_t>(module - 1)].get();
  const std::string name = TextOf(request.bytes);
  loaded.ptx = loaded.module->ptx->Find(name);
  if (loaded.ptx == nullptr || !loaded.ptx->is_entry) {
    return Failed(protocol::kErrorInvalidDeviceFunction,
                  fmt::format("the PTX has no kernel '{}'", name.substr(0, 200)));
  }
  if (const auto known = resources_.find(name); known != resources_.end()) {
    loaded.resources = known->second;
  }
  if (loaded.resources.registers_per_thread == 0) {
    loaded.resources = model::EstimateResources(*loaded.ptx);
    loaded.resources_estimated = true;
  }
  const std::uint64_t static_shared = StaticShared(loaded);
  loaded.max_dynamic_shared =
      kDefaultDynamicShared - std::min(kDefaultDynamicShared, static_shared);
  Reply reply;
  const std::uint64_t handle = next_handle_++;
  reply.values = {handle};
  for (const ptx::Parameter& parameter : loaded.ptx->parameters) {
    reply.values.push_back(parameter.offset);
    reply.values.push_back(parameter.bytes);
    loaded.parameter_bytes = std::max(loaded.parameter_bytes, parameter.offset + parameter.bytes);
  }
  functions_[handle] = std::move(loaded);
  return reply;
}

protocol::GpuReply EmulatedGpu::FindVariable(const Request& request) {
  const std::uint64_t module = request.Value(0);
  if (module == 0 || module > modules_.size()) {
    return Failed(protocol::kErrorInvalidResourceHandle, "no such module");
  }
  const LoadedModule& loaded = *modules_[static_cast<std::size_t>(module - 1)];
  const std::string name = TextOf(request.bytes);
  for (const ptx::Variable& variable : loaded.ptx->variables) {
    const std::uint64_t address =
        variable.name == name ? loaded.program->AddressOf(name) : std::uint64_t{0};
    if (address != 0) {
      Reply reply;
      reply.values = {address, variable.bytes};
      return reply;
    }
  }
  return Failed(protocol::kErrorInvalidSymbol,
                fmt::format("the PTX has no variable '{}' (unused ones are dropped by nvcc)",
                            name.substr(0, 200)));
}

std::uint64_t EmulatedGpu::StaticShared(const LoadedFunction& function) const {
  return std::max(function.module->program->StaticShared(function.ptx->name),
                  function.resources.static_shared_bytes);
}

std::uint64_t EmulatedGpu::MaxThreads(const LoadedFunction& function) const {
  const auto& bound = function.ptx->max_ntid;
  std::uint64_t threads = engine_.max_threads_per_cta;
  if (bound[0] != 0) {
    threads = std::min(threads,
                       std::uint64_t{bound[0]} * std::max(1U, bound[1]) * std::max(1U, bound[2]));
  }
  // Registers are handed out per warp in units of 256.
  constexpr std::uint64_t kUnit = 256;
  constexpr std::uint64_t kWarp = 32;
  const std::uint64_t per_warp =
      (function.resources.registers_per_thread * kWarp + kUnit - 1) / kUnit * kUnit;
  return per_warp == 0 ? threads : std::min(threads, spec_.registers_per_sm / per_warp * kWarp);
}

model::KernelResources EmulatedGpu::ResourcesOf(const LoadedFunction& function) const {
  model::KernelResources resources = function.resources;
  resources.static_shared_bytes = StaticShared(function);
  return resources;
}

protocol::GpuReply EmulatedGpu::FunctionInfo(const Request& request) {
  const LoadedFunction* const function = Function(request.Value(0));
  if (function == nullptr) {
    return Failed(protocol::kErrorInvalidDeviceFunction, "no such kernel");
  }
  using protocol::FunctionFigure;
  Reply reply;
  reply.values.resize(static_cast<std::size_t>(FunctionFigure::kCount));
  const auto set = [&](FunctionFigure which, std::uint64_t value) {
    reply.values[static_cast<std::size_t>(which)] = value;
  };
  std::uint64_t constant_bytes = 0;
  for (const ptx::Variable& variable : function->module->ptx->variables) {
    constant_bytes += variable.space == ptx::Space::kConst ? variable.bytes : 0;
  }
  const ptx::Module& module = *function->module->ptx;
  set(FunctionFigure::kStaticShared, StaticShared(*function));
  set(FunctionFigure::kConstantBytes, constant_bytes);
  set(FunctionFigure::kLocalBytes, function->resources.local_bytes_per_thread);
  set(FunctionFigure::kMaxThreads, MaxThreads(*function));
  set(FunctionFigure::kRegisters, function->resources.registers_per_thread);
  set(FunctionFigure::kMaxDynamicShared, function->max_dynamic_shared);
  set(FunctionFigure::kPreferredCarveout,
      static_cast<std::uint64_t>(std::int64_t{function->preferred_carveout}));
  set(FunctionFigure::kPtxVersion, module.version_major * 10U + module.version_minor);
  set(FunctionFigure::kBinaryVersion, spec_.compute_capability);
  return reply;
}

protocol::GpuReply EmulatedGpu::SetFunctionAttribute(const Request& request) {
  LoadedFunction* const function = Function(request.Value(0));
  if (function == nullptr) {
    return Failed(protocol::kErrorInvalidDeviceFunction, "no such kernel");
  }
  const std::uint64_t value = request.Value(2);
  switch (request.Value(1)) {
    case kAttributeMaxDynamicShared: {
      const std::uint64_t most = spec_.shared_per_cta_bytes;
      if (value > most || StaticShared(*function) > most - value) {
        return Failed(
            protocol::kErrorInvalidValue,
            fmt::format("cudaFuncSetAttribute asks for {} bytes of dynamic shared memory for {}; "
                        "a block can have {} bytes, {} of which are static",
                        value, function->ptx->name, most, StaticShared(*function)));
      }
      function->max_dynamic_shared = value;
      return {};
    }
    case kAttributeCarveout:
      function->preferred_carveout = static_cast<std::int32_t>(value);
      return {};
    default:
      return Failed(protocol::kErrorInvalidValue,
                    fmt::format("cudaFuncSetAttribute {} is not known to the emulated GPU",
                                request.Value(1)));
  }
}

protocol::GpuReply EmulatedGpu::Occupancy(const Request& request) {
  const LoadedFunction* const function = Function(request.Value(0));
  if (function == nullptr) {
    return Failed(protocol::kErrorInvalidDeviceFunction, "no such kernel");
  }
  const std::uint64_t threads = request.Value(1);
  const std::uint64_t shared = request.Value(2);
  Reply reply;
  reply.values = {0};
  if (threads == 0 || threads > UINT32_MAX) {
    return Failed(protocol::kErrorInvalidValue, "occupancy of a block without threads");
  }
  if (threads <= MaxThreads(*function) && shared <= spec_.shared_per_sm_bytes) {
    reply.values[0] = model::ComputeOccupancy(spec_, ResourcesOf(*function),
                                              static_cast<std::uint32_t>(threads), shared)
                          .ctas_per_sm;
  }
  return reply;
}

}  // namespace kernelpro::gpu
