// SPDX-License-Identifier: Apache-2.0
// Kernel launches: <<<>>>, cudaLaunchKernel, cudaLaunchKernelExC.
#include <cstring>
#include <vector>

#include "device/protocol/cuda_error.h"
#include "device/runtime/client.h"
#include "device/runtime/registry.h"

namespace kernelpro::runtime {
namespace {

struct CallConfiguration {
  Dim3 grid{1, 1, 1};
  Dim3 block{1, 1, 1};
  std::size_t dynamic_shared = 0;
  Stream stream = nullptr;
};

/// Between <<<...>>> and the kernel's stub; a stack because an argument may launch a kernel itself.
thread_local std::vector<CallConfiguration> configurations;

std::vector<std::byte> PackParameters(const HostKernel& kernel, void** arguments) {
  std::vector<std::byte> block(kernel.parameter_bytes);
  for (std::size_t i = 0; arguments != nullptr && i < kernel.parameters.size(); ++i) {
    const KernelParameter& parameter = kernel.parameters[i];
    std::memcpy(block.data() + parameter.offset, arguments[i], parameter.bytes);
  }
  return block;
}

/// Always asks the GPU, also when the launch cannot work: the GPU keeps the record of failed
/// launches that the referee trusts.
CudaError Launch(const void* handle, const CallConfiguration& configuration, void** arguments,
                 bool unsupported_attributes) {
  const HostKernel* const kernel = Registry::Get().FindKernel(handle);
  const bool usable = kernel != nullptr && kernel->error == protocol::kSuccess;
  const std::vector<std::byte> parameters =
      usable ? PackParameters(*kernel, arguments) : std::vector<std::byte>();
  const auto reply = Ask(protocol::GpuOp::kLaunch,
                         {usable ? kernel->function : 0, configuration.grid.x, configuration.grid.y,
                          configuration.grid.z, configuration.block.x, configuration.block.y,
                          configuration.block.z, configuration.dynamic_shared,
                          AddressOf(configuration.stream), unsupported_attributes ? 1U : 0U},
                         parameters);
  if (kernel != nullptr && kernel->error != protocol::kSuccess &&
      reply.error == protocol::kErrorInvalidDeviceFunction) {
    return Report(kernel->error);
  }
  return Report(reply.error);
}

bool HasUnsupportedAttribute(const LaunchConfiguration& configuration) {
  for (std::uint32_t i = 0; i < configuration.attribute_count; ++i) {
    const std::uint32_t id = configuration.attributes[i].id;
    if (id != kAttributeIgnore && id != kAttributePriority) {
      return true;
    }
  }
  return false;
}

}  // namespace
}  // namespace kernelpro::runtime

using kernelpro::runtime::CudaError;
using kernelpro::runtime::Dim3;
using kernelpro::runtime::Kernel;
using kernelpro::runtime::LaunchConfiguration;
using kernelpro::runtime::Registry;
using kernelpro::runtime::Report;
using kernelpro::runtime::Stream;
namespace protocol = kernelpro::protocol;

KP_CUDA_API unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared,
                                                 void* stream) {
  kernelpro::runtime::configurations.push_back({grid, block, shared, stream});
  return 0;
}

KP_CUDA_API CudaError __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared,
                                                 void* stream) {
  auto& stack = kernelpro::runtime::configurations;
  if (stack.empty()) {
    return Report(protocol::kErrorMissingConfiguration);
  }
  *grid = stack.back().grid;
  *block = stack.back().block;
  *shared = stack.back().dynamic_shared;
  *static_cast<Stream*>(stream) = stack.back().stream;
  stack.pop_back();
  return protocol::kSuccess;
}

KP_CUDA_API CudaError __cudaGetKernel(Kernel* kernel, const void* host_function) {
  *kernel = Registry::Get().FindKernel(host_function);
  return *kernel == nullptr ? Report(protocol::kErrorInvalidDeviceFunction) : protocol::kSuccess;
}

KP_CUDA_API CudaError cudaGetKernel(Kernel* kernel, const void* host_function) {
  return __cudaGetKernel(kernel, host_function);
}

KP_CUDA_API CudaError cudaGetFuncBySymbol(void** function, const void* symbol) {
  return __cudaGetKernel(function, symbol);
}

KP_CUDA_API CudaError cudaLaunchKernel(const void* function, Dim3 grid, Dim3 block,
                                       void** arguments, std::size_t shared, Stream stream) {
  return kernelpro::runtime::Launch(function, {grid, block, shared, stream}, arguments, false);
}

KP_CUDA_ALIAS(cudaLaunchKernel, _ptsz);

KP_CUDA_API CudaError __cudaLaunchKernel(Kernel kernel, Dim3 grid, Dim3 block, void** arguments,
                                         std::size_t shared, Stream stream) {
  return kernelpro::runtime::Launch(kernel, {grid, block, shared, stream}, arguments, false);
}

KP_CUDA_ALIAS(__cudaLaunchKernel, _ptsz);

KP_CUDA_API CudaError cudaLaunchKernelExC(const LaunchConfiguration* configuration,
                                          const void* function, void** arguments) {
  if (configuration == nullptr) {
    return Report(protocol::kErrorInvalidValue);
  }
  return kernelpro::runtime::Launch(function,
                                    {configuration->grid, configuration->block,
                                     configuration->dynamic_shared, configuration->stream},
                                    arguments,
                                    kernelpro::runtime::HasUnsupportedAttribute(*configuration));
}

KP_CUDA_ALIAS(cudaLaunchKernelExC, _ptsz);
