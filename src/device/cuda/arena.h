// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "device/cuda/gpu.h"
#include "device/device.h"

namespace kernelpro::cuda {

/// The memory that one candidate's process maps: buffers with a band of secret poison in front of
/// and behind each. One allocation, so that one IPC handle opens it.
class Arena {
 public:
  Arena(Memory memory, Rng patterns) : memory_(std::move(memory)), patterns_(patterns) {}

  struct Buffer {
    std::string name;
    std::uint64_t offset = 0;  ///< of its first byte in the arena; a multiple of 256
    std::uint64_t bytes = 0;
    std::uint64_t front_seed = 0, back_seed = 0;
  };

  /// Places a buffer and writes its bands. kUnavailable: the arena is full.
  [[nodiscard]] Result<BufferId> Place(const BufferRequest& request, MemoryKernels& kernels);
  void Remove(BufferId id);

  [[nodiscard]] const Buffer* Find(BufferId id) const;

  [[nodiscard]] DevicePointer Address(const Buffer& buffer) const {
    return memory_.address() + buffer.offset;
  }

  /// Both bands of a buffer.
  [[nodiscard]] std::vector<Band> Bands(const Buffer& buffer) const;

  [[nodiscard]] const Memory& memory() const { return memory_; }

  /// Bytes that a buffer of `bytes` takes.
  [[nodiscard]] static std::uint64_t Footprint(std::uint64_t bytes);

  /// New secrets and no buffers: for the next candidate.
  void Reset(Rng patterns);

 private:
  /// In front, and at least this much behind the last byte.
  static constexpr std::uint64_t kBandBytes = 4096;

  Memory memory_;
  Rng patterns_;
  std::map<BufferId, Buffer> buffers_;
  BufferId next_id_ = 1;
  std::uint64_t top_ = 0;
};

}  // namespace kernelpro::cuda
