// SPDX-License-Identifier: Apache-2.0
// Attributes and occupancy of kernels.
#include "device/protocol/cuda_error.h"
#include "device/runtime/client.h"
#include "device/runtime/registry.h"

using kernelpro::protocol::FunctionFigure;
using kernelpro::protocol::GpuOp;
using kernelpro::runtime::Ask;
using kernelpro::runtime::CudaError;
using kernelpro::runtime::FunctionAttributes;
using kernelpro::runtime::HostKernel;
using kernelpro::runtime::Registry;
using kernelpro::runtime::Report;
namespace protocol = kernelpro::protocol;

namespace {

/// The kernel, or nullptr with *error set.
const HostKernel* Find(const void* function, CudaError* error) {
  const HostKernel* const kernel = Registry::Get().FindKernel(function);
  *error = kernel == nullptr ? protocol::kErrorInvalidDeviceFunction : kernel->error;
  return *error == protocol::kSuccess ? kernel : nullptr;
}

}  // namespace

KP_CUDA_API CudaError cudaFuncGetAttributes(FunctionAttributes* attributes, const void* function) {
  CudaError error = protocol::kSuccess;
  const HostKernel* const kernel = Find(function, &error);
  if (kernel == nullptr) {
    return Report(error);
  }
  const auto reply = Ask(GpuOp::kFunctionInfo, {kernel->function});
  const auto figure = [&](FunctionFigure which) {
    return reply.Value(static_cast<std::size_t>(which));
  };
  *attributes = {};
  attributes->static_shared = figure(FunctionFigure::kStaticShared);
  attributes->constant_bytes = figure(FunctionFigure::kConstantBytes);
  attributes->local_bytes = figure(FunctionFigure::kLocalBytes);
  attributes->max_threads = static_cast<int>(figure(FunctionFigure::kMaxThreads));
  attributes->registers = static_cast<int>(figure(FunctionFigure::kRegisters));
  attributes->ptx_version = static_cast<int>(figure(FunctionFigure::kPtxVersion));
  attributes->binary_version = static_cast<int>(figure(FunctionFigure::kBinaryVersion));
  attributes->max_dynamic_shared = static_cast<int>(figure(FunctionFigure::kMaxDynamicShared));
  attributes->preferred_carveout =
      static_cast<int>(static_cast<std::int64_t>(figure(FunctionFigure::kPreferredCarveout)));
  return Report(reply.error);
}

KP_CUDA_API CudaError cudaFuncSetAttribute(const void* function, int attribute, int value) {
  CudaError error = protocol::kSuccess;
  const HostKernel* const kernel = Find(function, &error);
  if (kernel == nullptr) {
    return Report(error);
  }
  return Report(
      Ask(GpuOp::kFunctionSetAttribute, {kernel->function, static_cast<std::uint32_t>(attribute),
                                         static_cast<std::uint32_t>(value)})
          .error);
}

KP_CUDA_API CudaError cudaFuncSetCacheConfig(const void* function, int /*configuration*/) {
  CudaError error = protocol::kSuccess;
  (void)Find(function, &error);  // A preference that this GPU generation ignores.
  return Report(error);
}

KP_CUDA_API CudaError cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int block_threads, std::size_t dynamic_shared,
    unsigned /*flags*/) {
  CudaError error = protocol::kSuccess;
  const HostKernel* const kernel = Find(function, &error);
  if (kernel == nullptr) {
    return Report(error);
  }
  const auto reply =
      Ask(GpuOp::kOccupancy,
          {kernel->function, static_cast<std::uint32_t>(block_threads), dynamic_shared});
  *blocks = static_cast<int>(reply.Value(0));
  return Report(reply.error);
}

KP_CUDA_API CudaError cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                    const void* function,
                                                                    int block_threads,
                                                                    std::size_t dynamic_shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_threads,
                                                                dynamic_shared, 0);
}
