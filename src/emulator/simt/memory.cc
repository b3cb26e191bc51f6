// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace kernelpro::simt {
namespace {

constexpr std::uint64_t kAlignment = 2ULL << 20U;
constexpr std::uint64_t kGap = 4ULL << 30U;
constexpr std::uint64_t kFirstAddress = 0x10'0000'0000ULL;
constexpr std::uint64_t kEndAddress = 0x1'0000'0000'0000ULL;

std::uint64_t RoundUp(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

struct DeviceMemory::Table {
  std::uint64_t capacity = 0;
  std::uint64_t used = 0;
  std::uint64_t next = kFirstAddress;
  std::uint64_t generation = 0;
  /// Ascending by address, because addresses are never used twice: a stale pointer stays stale.
  std::vector<std::unique_ptr<Allocation>> entries;
  std::vector<bool> external;

  [[nodiscard]] Allocation* AtOrBelow(std::uint64_t address) const {
    auto it = std::upper_bound(
        entries.begin(), entries.end(), address,
        [](std::uint64_t a, const std::unique_ptr<Allocation>& e) { return a < e->address; });
    return it == entries.begin() ? nullptr : std::prev(it)->get();
  }

  void Unmap(Allocation& entry) {
    if (entry.host != nullptr && !external[entry.id]) {
      ::munmap(entry.host, std::max<std::uint64_t>(entry.bytes, 1));
    }
    entry.host = nullptr;
  }
};

DeviceMemory::DeviceMemory(std::uint64_t capacity_bytes) : table_(std::make_shared<Table>()) {
  table_->capacity = capacity_bytes;
}

DeviceMemory::~DeviceMemory() {
  for (const auto& entry : table_->entries) {
    table_->Unmap(*entry);
  }
}

Result<std::uint64_t> DeviceMemory::Allocate(std::uint64_t bytes, std::string name,
                                             std::byte* external) {
  if (bytes > table_->capacity - table_->used) {
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("cannot allocate {} bytes for '{}': {} of {} bytes of device memory are "
                    "in use",
                    bytes, name, table_->used, table_->capacity));
  }
  const std::uint64_t address = table_->next;
  const std::uint64_t next = RoundUp(address + bytes + kGap, kAlignment);
  if (next >= kEndAddress) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("cannot allocate '{}': the device's address space is used up after {} "
                            "allocations; start with a fresh device",
                            name, table_->entries.size()));
  }
  std::byte* host = external;
  if (host == nullptr) {
    void* mapped = ::mmap(nullptr, std::max<std::uint64_t>(bytes, 1), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {  // NOLINT: the macro casts
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("cannot map {} bytes for '{}': errno {}", bytes, name, errno));
    }
    host = static_cast<std::byte*>(mapped);
  }
  auto entry = std::make_unique<Allocation>();
  *entry = Allocation{.name = std::move(name),
                      .address = address,
                      .bytes = bytes,
                      .host = host,
                      .read_only = false,
                      .live = true,
                      .id = static_cast<std::uint32_t>(table_->entries.size())};
  table_->entries.push_back(std::move(entry));
  table_->external.push_back(external != nullptr);
  table_->next = next;
  table_->used += bytes;
  ++table_->generation;
  return address;
}

Status DeviceMemory::Free(std::uint64_t address) {
  Allocation* entry = table_->AtOrBelow(address);
  if (entry == nullptr || entry->address != address || !entry->live) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("0x{:x} is not the start of a live allocation", address));
  }
  table_->Unmap(*entry);
  entry->live = false;
  table_->used -= entry->bytes;
  ++table_->generation;
  return Ok();
}

Status DeviceMemory::SetReadOnly(std::uint64_t address, bool read_only) {
  Allocation* entry = table_->AtOrBelow(address);
  if (entry == nullptr || entry->address != address || !entry->live) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("0x{:x} is not the start of a live allocation", address));
  }
  entry->read_only = read_only;
  ++table_->generation;
  return Ok();
}

const Allocation* DeviceMemory::Find(std::uint64_t address) const {
  const Allocation* entry = table_->AtOrBelow(address);
  const bool inside = entry != nullptr && entry->live && address - entry->address < entry->bytes;
  return inside ? entry : nullptr;
}

const Allocation* DeviceMemory::Nearest(std::uint64_t address) const {
  return table_->AtOrBelow(address);
}

const Allocation* DeviceMemory::NextAbove(std::uint64_t address) const {
  for (const auto& entry : table_->entries) {
    if (entry->address > address && entry->live) {
      return entry.get();
    }
  }
  return nullptr;
}

Result<std::span<std::byte>> DeviceMemory::View(std::uint64_t address, std::uint64_t bytes) {
  Allocation* entry = table_->AtOrBelow(address);
  const bool inside = entry != nullptr && entry->live && address - entry->address <= entry->bytes &&
                      bytes <= entry->bytes - (address - entry->address);
  if (!inside) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("[0x{:x}, +{}) is not inside one allocation", address, bytes));
  }
  return std::span<std::byte>(entry->host + (address - entry->address), bytes);
}

std::vector<const Allocation*> DeviceMemory::Live() const {
  std::vector<const Allocation*> live;
  for (const auto& entry : table_->entries) {
    if (entry->live) {
      live.push_back(entry.get());
    }
  }
  return live;
}

std::uint64_t DeviceMemory::used_bytes() const {
  return table_->used;
}

std::uint64_t DeviceMemory::capacity_bytes() const {
  return table_->capacity;
}

std::uint64_t DeviceMemory::generation() const {
  return table_->generation;
}

std::weak_ptr<const void> DeviceMemory::alive() const {
  return table_;
}

}  // namespace kernelpro::simt
