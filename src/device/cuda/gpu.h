// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/cuda/driver.h"
#include "device/cuda/memory_kernels.h"
#include "device/cuda/nvml.h"

namespace kernelpro::cuda {

class Gpu;

/// Device memory of the referee. Freed with the object; must not outlive its Gpu.
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  [[nodiscard]] DevicePointer address() const { return address_; }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  friend class Gpu;

  const Gpu* gpu_ = nullptr;
  DevicePointer address_ = 0;
  std::uint64_t bytes_ = 0;
};

/// One GPU as the referee uses it: its own context, memory that no candidate ever maps, its kernels
/// and the management library. Not thread safe.
class Gpu {
 public:
  /// kUnavailable says what the machine lacks; kInvalidArgument: no GPU of this number.
  [[nodiscard]] static Result<std::unique_ptr<Gpu>> Open(int index);

  [[nodiscard]] const Driver& driver() const { return driver_; }

  [[nodiscard]] MemoryKernels& kernels() { return *kernels_; }

  [[nodiscard]] const Nvml& nvml() const { return *nvml_; }

  [[nodiscard]] const std::string& name() const { return name_; }

  /// "GPU-...": what CUDA_VISIBLE_DEVICES takes.
  [[nodiscard]] const std::string& uuid() const { return uuid_; }

  /// "13000" of the CUDA version that the driver supports.
  [[nodiscard]] int cuda_version() const { return cuda_version_; }

  [[nodiscard]] int Attribute(int which) const;

  [[nodiscard]] std::uint64_t total_bytes() const { return total_bytes_; }

  [[nodiscard]] std::uint64_t FreeBytes() const;

  /// kUnavailable: out of device memory.
  [[nodiscard]] Result<Memory> Allocate(std::uint64_t bytes) const;
  [[nodiscard]] Status Upload(DevicePointer to, std::span<const std::byte> bytes) const;
  [[nodiscard]] Status Download(std::span<std::byte> bytes, DevicePointer from) const;
  [[nodiscard]] Status CopyOnDevice(DevicePointer to, DevicePointer from,
                                    std::uint64_t bytes) const;
  [[nodiscard]] Status Zero(DevicePointer to, std::uint64_t bytes) const;
  /// Waits for everything launched here.
  [[nodiscard]] Status Synchronize();
  /// Leaves nothing of anybody's data in the L2 cache: lines marked as persisting are demoted, and
  /// twice the cache's size is written. Waits.
  [[nodiscard]] Status FlushL2();
  /// Makes the referee's context the calling thread's.
  [[nodiscard]] Status MakeCurrent() const;

 private:
  Gpu() = default;

  [[nodiscard]] Status Start(int index);

  Driver driver_;
  int device_ = 0;
  Context context_ = nullptr;
  std::unique_ptr<MemoryKernels> kernels_;
  std::unique_ptr<Nvml> nvml_;
  std::string name_, uuid_;
  int cuda_version_ = 0;
  std::uint64_t total_bytes_ = 0;
  Memory flush_;
};

}  // namespace kernelpro::cuda
