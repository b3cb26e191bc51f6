// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace kernelpro::simt {

/// One allocation of emulated global memory.
struct Allocation {
  std::string name;
  std::uint64_t address = 0;  ///< device address, 2 MiB aligned, >= 4 GiB from its neighbours
  std::uint64_t bytes = 0;
  std::byte* host = nullptr;  ///< backing store, `bytes` long (mmap'ed on demand, zero filled)
  bool read_only = false;     ///< kernels that write it are stopped
  bool live = true;           ///< false once freed (host is then nullptr)
  std::uint32_t id = 0;       ///< dense, for per-allocation tables
};

/// The global memory of one emulated GPU. Device addresses are not host addresses: nothing but this
/// table leads from one to the other, so an overrun can never land in a neighbour. Not thread safe.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::uint64_t capacity_bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// kUnavailable when the capacity (the GPU's memory size) would be exceeded. With `external` the
  /// caller's mapping (of at least `bytes`) is the backing store and stays the caller's.
  [[nodiscard]] Result<std::uint64_t> Allocate(std::uint64_t bytes, std::string name,
                                               std::byte* external = nullptr);
  /// kInvalidArgument when `address` is not the start of a live allocation.
  [[nodiscard]] Status Free(std::uint64_t address);
  [[nodiscard]] Status SetReadOnly(std::uint64_t address, bool read_only);

  /// The live allocation that holds `address`, or nullptr.
  [[nodiscard]] const Allocation* Find(std::uint64_t address) const;
  /// The nearest allocation at or below `address` (live or freed), for messages; or nullptr.
  [[nodiscard]] const Allocation* Nearest(std::uint64_t address) const;
  /// The nearest live allocation that starts above `address`, for messages; or nullptr.
  [[nodiscard]] const Allocation* NextAbove(std::uint64_t address) const;
  /// Host view of [address, address + bytes); kInvalidArgument when not inside one allocation.
  [[nodiscard]] Result<std::span<std::byte>> View(std::uint64_t address, std::uint64_t bytes);

  [[nodiscard]] std::vector<const Allocation*> Live() const;
  [[nodiscard]] std::uint64_t used_bytes() const;
  [[nodiscard]] std::uint64_t capacity_bytes() const;
  /// Increases whenever the table changes (cached lookups).
  [[nodiscard]] std::uint64_t generation() const;
  /// Expires with this object: for owners of allocations that may outlive it.
  [[nodiscard]] std::weak_ptr<const void> alive() const;

 private:
  struct Table;
  /// Shared only so that alive() can be watched.
  std::shared_ptr<Table> table_;
};

}  // namespace kernelpro::simt
