// SPDX-License-Identifier: Apache-2.0
#include "device/referee/guarded_buffer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace kernelpro::referee {

Result<GuardedBuffer> GuardedBuffer::Create(std::uint64_t bytes, const std::string& name,
                                            Rng pattern) {
  constexpr std::uint64_t kMostBytes = 1ULL << 46U;
  if (bytes > kMostBytes) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("buffer '{}' of {} bytes is larger than any memory", name, bytes));
  }
  GuardedBuffer buffer(pattern);
  buffer.bytes_ = bytes;
  const std::uint64_t rounded = (bytes + kBandBytes - 1) / kBandBytes * kBandBytes;
  buffer.mapping_bytes_ = kBandBytes + rounded + kBandBytes;
  buffer.fd_ = ::memfd_create("kernelpro-buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (buffer.fd_ < 0 || ::ftruncate(buffer.fd_, static_cast<off_t>(buffer.mapping_bytes_)) != 0 ||
      ::fcntl(buffer.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return Fail(ErrorCode::kUnavailable, fmt::format("no memory for buffer '{}' of {} bytes: {}",
                                                     name, bytes, ::strerrordesc_np(errno)));
  }
  void* const base = ::mmap(nullptr, static_cast<std::size_t>(buffer.mapping_bytes_),
                            PROT_READ | PROT_WRITE, MAP_SHARED, buffer.fd_, 0);
  if (base == MAP_FAILED) {
    return Fail(ErrorCode::kUnavailable, fmt::format("cannot map buffer '{}' of {} bytes: {}", name,
                                                     bytes, ::strerrordesc_np(errno)));
  }
  buffer.base_ = static_cast<std::byte*>(base);
  buffer.ForBands([](std::byte& band, std::byte expected) {
    band = expected;
    return true;
  });
  return buffer;
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : pattern_(other.pattern_),
      fd_(std::exchange(other.fd_, -1)),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_),
      mapping_bytes_(other.mapping_bytes_) {}

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(pattern_, other.pattern_);
  std::swap(fd_, other.fd_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  return *this;
}

GuardedBuffer::~GuardedBuffer() {
  if (base_ != nullptr) {
    ::munmap(base_, static_cast<std::size_t>(mapping_bytes_));
  }
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

template <class Visit>
bool GuardedBuffer::ForBands(Visit visit) const {
  Rng pattern = pattern_;
  const auto band = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) {
      // The top byte: SplitMix64's best mixed.
      constexpr unsigned kTopByte = 56;
      if (!visit(base_[i], static_cast<std::byte>(pattern.Next() >> kTopByte))) {
        return false;
      }
    }
    return true;
  };
  return band(0, kBandBytes) && band(kBandBytes + bytes_, mapping_bytes_);
}

bool GuardedBuffer::GuardsIntact() const {
  return ForBands([](const std::byte& band, std::byte expected) { return band == expected; });
}

}  // namespace kernelpro::referee
