// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/arena.h"

#include <fmt/format.h>

#include <algorithm>

namespace kernelpro::cuda {
namespace {

constexpr std::uint64_t kAlignment = 256;  // cudaMalloc's

std::uint64_t Up(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

std::uint64_t Arena::Footprint(std::uint64_t bytes) {
  return 2 * kBandBytes + Up(bytes);
}

Result<BufferId> Arena::Place(const BufferRequest& request, MemoryKernels& kernels) {
  const std::uint64_t need = Footprint(request.bytes);
  if (need > memory_.bytes() - top_) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("no room for buffer '{}' of {} bytes: {} of the {} MiB for this "
                            "candidate are in use",
                            request.name, request.bytes, top_ >> 20U, memory_.bytes() >> 20U));
  }
  Buffer buffer{.name = request.name,
                .offset = top_ + kBandBytes,
                .bytes = request.bytes,
                .front_seed = patterns_.Next(),
                .back_seed = patterns_.Next()};
  top_ += need;
  for (const Band& band : Bands(buffer)) {
    kernels.Poison(band.address, band.bytes, band.seed);
  }
  buffers_.emplace(next_id_, std::move(buffer));
  return next_id_++;
}

void Arena::Remove(BufferId id) {
  buffers_.erase(id);
  top_ = 0;
  for (const auto& [key, b] : buffers_) {
    top_ = std::max(top_, b.offset + Up(b.bytes) + kBandBytes);
  }
}

const Arena::Buffer* Arena::Find(BufferId id) const {
  const auto found = buffers_.find(id);
  return found == buffers_.end() ? nullptr : &found->second;
}

std::vector<Band> Arena::Bands(const Buffer& b) const {
  const DevicePointer address = Address(b);
  // Behind: from the very next byte on.
  return {{address - kBandBytes, kBandBytes, b.front_seed},
          {address + b.bytes, Up(b.bytes) - b.bytes + kBandBytes, b.back_seed}};
}

void Arena::Reset(Rng patterns) {
  patterns_ = patterns;
  buffers_.clear();
  top_ = 0;
}

}  // namespace kernelpro::cuda
