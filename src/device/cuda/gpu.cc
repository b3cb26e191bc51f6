// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpro::cuda {

Memory::Memory(Memory&& other) noexcept {
  *this = std::move(other);
}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Memory::~Memory() {
  if (address_ != 0 && gpu_->MakeCurrent().ok()) {
    (void)gpu_->driver().cuMemFree_v2(address_);
  }
}

Result<std::unique_ptr<Gpu>> Gpu::Open(int index) {
  std::unique_ptr<Gpu> gpu(new Gpu);
  KP_RETURN_IF_ERROR(gpu->Start(index));
  return gpu;
}

Status Gpu::Start(int index) {
  if (const std::string why = driver_.Open(); !why.empty()) {
    return Fail(ErrorCode::kUnavailable, why);
  }
  KP_RETURN_IF_ERROR(Check(driver_, driver_.cuInit(0), "start the CUDA driver"));
  int count = 0;
  KP_RETURN_IF_ERROR(Check(driver_, driver_.cuDeviceGetCount(&count), "count GPUs"));
  if (index < 0 || index >= count) {
    return Fail(count == 0 ? ErrorCode::kUnavailable : ErrorCode::kInvalidArgument,
                fmt::format("there is no GPU {}: this machine has {}", index, count));
  }
  KP_RETURN_IF_ERROR(Check(driver_, driver_.cuDeviceGet(&device_, index), "open the GPU"));
  std::array<char, 256> text{};
  KP_RETURN_IF_ERROR(
      Check(driver_, driver_.cuDeviceGetName(text.data(), static_cast<int>(text.size()), device_),
            "ask the GPU's name"));
  name_ = text.data();
  Uuid uuid{};
  KP_RETURN_IF_ERROR(Check(driver_, driver_.cuDeviceGetUuid(&uuid, device_), "ask the GPU's id"));
  uuid_ = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    uuid_ +=
        fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid.bytes[i]);
  }
  std::size_t total = 0;
  (void)driver_.cuDeviceTotalMem_v2(&total, device_);
  total_bytes_ = total;
  (void)driver_.cuDriverGetVersion(&cuda_version_);
  // Spinning answers some 50 us sooner than sleeping does; the window's end is seen by polling.
  (void)driver_.cuDevicePrimaryCtxSetFlags_v2(device_, kScheduleSpin);
  KP_RETURN_IF_ERROR(Check(driver_, driver_.cuDevicePrimaryCtxRetain(&context_, device_),
                           "make a context on the GPU"));
  KP_RETURN_IF_ERROR(MakeCurrent());
  KP_ASSIGN_OR_RETURN(MemoryKernels kernels,
                      MemoryKernels::Load(driver_, Attribute(kAttributeMultiprocessors)));
  kernels_ = std::make_unique<MemoryKernels>(kernels);
  std::array<char, 64> bus{};
  (void)driver_.cuDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device_);
  nvml_ = Nvml::Open(bus.data());
  KP_ASSIGN_OR_RETURN(
      flush_, Allocate(2 * std::max<std::uint64_t>(32U << 20U, static_cast<std::uint64_t>(
                                                                   Attribute(kAttributeL2Bytes)))));
  return Ok();
}

Status Gpu::MakeCurrent() const {
  return Check(driver_, driver_.cuCtxSetCurrent(context_), "use the referee's context");
}

int Gpu::Attribute(int which) const {
  int value = 0;
  (void)driver_.cuDeviceGetAttribute(&value, which, device_);
  return value;
}

std::uint64_t Gpu::FreeBytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  (void)driver_.cuMemGetInfo_v2(&free, &total);
  return free;
}

Result<Memory> Gpu::Allocate(std::uint64_t bytes) const {
  KP_RETURN_IF_ERROR(MakeCurrent());
  Memory memory;
  memory.gpu_ = this;
  memory.bytes_ = bytes;
  KP_RETURN_IF_ERROR(Check(driver_, driver_.cuMemAlloc_v2(&memory.address_, bytes),
                           fmt::format("allocate {} MiB on the GPU", bytes >> 20U).c_str()));
  return memory;
}

Status Gpu::Upload(DevicePointer to, std::span<const std::byte> bytes) const {
  return Check(driver_, driver_.cuMemcpyHtoD_v2(to, bytes.data(), bytes.size()), "copy to the GPU");
}

Status Gpu::Download(std::span<std::byte> bytes, DevicePointer from) const {
  return Check(driver_, driver_.cuMemcpyDtoH_v2(bytes.data(), from, bytes.size()),
               "copy from the GPU");
}

Status Gpu::CopyOnDevice(DevicePointer to, DevicePointer from, std::uint64_t bytes) const {
  return Check(driver_, driver_.cuMemcpyDtoD_v2(to, from, bytes), "copy on the GPU");
}

Status Gpu::Zero(DevicePointer to, std::uint64_t bytes) const {
  return Check(driver_, driver_.cuMemsetD8_v2(to, 0, bytes), "clear memory on the GPU");
}

Status Gpu::Synchronize() {
  KP_RETURN_IF_ERROR(kernels_->TakeFailure());
  return Check(driver_, driver_.cuCtxSynchronize(), "wait for the referee's kernels");
}

Status Gpu::FlushL2() {
  (void)driver_.cuCtxResetPersistingL2Cache();  // Not on every GPU; the write below is.
  KP_RETURN_IF_ERROR(Zero(flush_.address(), flush_.bytes()));
  return Synchronize();
}

}  // namespace kernelpro::cuda
