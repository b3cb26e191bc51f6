// SPDX-License-Identifier: Apache-2.0
#include "device/runtime/registry.h"

#include <cstring>
#include <span>
#include <utility>

#include "device/protocol/cuda_error.h"
#include "device/runtime/client.h"

namespace kernelpro::runtime {
namespace {

using protocol::GpuOp;

/// Bytes of a fat binary from its own header: magic u32, version u16, header bytes u16, bytes u64.
std::uint64_t FatBinaryBytes(const std::byte* data) {
  std::uint16_t header = 0;
  std::uint64_t body = 0;
  std::memcpy(&header, data + 6, sizeof header);
  std::memcpy(&body, data + 8, sizeof body);
  return header + body;
}

}  // namespace

Registry& Registry::Get() {
  // Never destroyed: kernels may be launched from static destructors.
  static auto* const registry = new Registry;
  return *registry;
}

Image* Registry::AddImage(const FatBinaryWrapper* wrapper) {
  const std::lock_guard lock(mutex_);
  auto& image = images_.emplace_back(std::make_unique<Image>());
  image->wrapper = wrapper;
  return image.get();
}

void Registry::AddKernel(Image* image, const void* host_function, std::string name) {
  const std::lock_guard lock(mutex_);
  auto kernel = std::make_unique<HostKernel>();
  kernel->image = image;
  kernel->name = std::move(name);
  kernels_[host_function] = std::move(kernel);
}

void Registry::AddVariable(Image* image, const void* host_variable, std::string name) {
  const std::lock_guard lock(mutex_);
  auto variable = std::make_unique<HostVariable>();
  variable->image = image;
  variable->name = std::move(name);
  variables_[host_variable] = std::move(variable);
}

Image* Registry::FindImage(const void* handle) {
  const std::lock_guard lock(mutex_);
  for (const auto& image : images_) {
    if (image.get() == handle) {
      return image.get();
    }
  }
  return nullptr;
}

void Registry::Send(Image& image) {
  if (image.sent) {
    return;
  }
  image.sent = true;
  if (image.wrapper == nullptr || image.wrapper->magic != kFatBinaryWrapperMagic) {
    image.error = protocol::kErrorInvalidKernelImage;
    return;
  }
  const std::uint64_t bytes = FatBinaryBytes(image.wrapper->data);
  // Some room for the envelope.
  if (bytes > protocol::kRunnerPayloadLimit - 64U) {
    image.error = protocol::kErrorInvalidKernelImage;
    return;
  }
  const auto reply = Ask(GpuOp::kRegisterModule, {},
                         std::span(image.wrapper->data, static_cast<std::size_t>(bytes)));
  image.error = reply.error;
  image.module = reply.Value(0);
}

void Registry::Resolve(HostKernel& kernel) {
  if (kernel.found) {
    return;
  }
  kernel.found = true;
  Send(*kernel.image);
  if (kernel.image->error != protocol::kSuccess) {
    kernel.error = kernel.image->error;
    return;
  }
  const auto reply = Ask(GpuOp::kFindFunction, {kernel.image->module}, BytesOf(kernel.name));
  kernel.error = reply.error;
  kernel.function = reply.Value(0);
  for (std::size_t i = 1; i + 1 < reply.values.size(); i += 2) {
    const KernelParameter parameter{static_cast<std::uint32_t>(reply.values[i]),
                                    static_cast<std::uint32_t>(reply.values[i + 1])};
    kernel.parameters.push_back(parameter);
    kernel.parameter_bytes = parameter.offset + parameter.bytes;
  }
}

HostKernel* Registry::FindKernel(const void* handle) {
  const std::lock_guard lock(mutex_);
  const auto by_function = kernels_.find(handle);
  if (by_function != kernels_.end()) {
    Resolve(*by_function->second);
    return by_function->second.get();
  }
  for (const auto& [function, kernel] : kernels_) {
    if (kernel.get() == handle) {
      Resolve(*kernel);
      return kernel.get();
    }
  }
  return nullptr;
}

HostVariable* Registry::FindVariable(const void* host_variable) {
  const std::lock_guard lock(mutex_);
  const auto found = variables_.find(host_variable);
  if (found == variables_.end()) {
    return nullptr;
  }
  HostVariable& variable = *found->second;
  if (!variable.found) {
    variable.found = true;
    Send(*variable.image);
    variable.error = variable.image->error;
    if (variable.error == protocol::kSuccess) {
      const auto reply =
          Ask(GpuOp::kFindVariable, {variable.image->module}, BytesOf(variable.name));
      variable.error = reply.error;
      variable.address = reply.Value(0);
      variable.bytes = reply.Value(1);
    }
  }
  return &variable;
}

}  // namespace kernelpro::runtime

namespace {

using kernelpro::runtime::FatBinaryWrapper;
using kernelpro::runtime::Image;
using kernelpro::runtime::Registry;

}  // namespace

KP_CUDA_API void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(
      Registry::Get().AddImage(static_cast<const FatBinaryWrapper*>(wrapper)));
}

KP_CUDA_API void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

KP_CUDA_API void __cudaUnregisterFatBinary(void** /*handle*/) {}

KP_CUDA_API char __cudaInitModule(void** /*handle*/) {
  return 1;
}

KP_CUDA_API void __cudaRegisterFunction(void** handle, const char* host_function,
                                        char* /*device_function*/, const char* device_name,
                                        int /*thread_limit*/, void* /*tid*/, void* /*bid*/,
                                        void* /*block*/, void* /*grid*/, int* /*warp_size*/) {
  if (Image* const image = Registry::Get().FindImage(handle)) {
    Registry::Get().AddKernel(image, host_function, device_name);
  }
}

KP_CUDA_API void __cudaRegisterVar(void** handle, char* host_variable, char* /*device_address*/,
                                   const char* device_name, int /*external*/, std::size_t /*size*/,
                                   int /*constant*/, int /*global*/) {
  if (Image* const image = Registry::Get().FindImage(handle)) {
    Registry::Get().AddVariable(image, host_variable, device_name);
  }
}
