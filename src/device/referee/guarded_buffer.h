// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "base/rng.h"

namespace kernelpro::referee {

/// Memory that the referee and its emulated GPU share: a buffer between two bands of a secret
/// pattern. Owns mapping and descriptor.
class GuardedBuffer {
 public:
  /// Zero filled. kUnavailable when the machine has no memory for it.
  [[nodiscard]] static Result<GuardedBuffer> Create(std::uint64_t bytes, const std::string& name,
                                                    Rng pattern);
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer();

  [[nodiscard]] std::span<std::byte> bytes() const {
    return {base_ + kBandBytes, static_cast<std::size_t>(bytes_)};
  }

  [[nodiscard]] bool GuardsIntact() const;

  /// The memfd to give to the GPU: the buffer lies offset() into its mapping_bytes().
  [[nodiscard]] int fd() const { return fd_; }

  [[nodiscard]] std::uint64_t mapping_bytes() const { return mapping_bytes_; }

  [[nodiscard]] static std::uint64_t offset() { return kBandBytes; }

 private:
  /// One page in front; behind, at least one page after the last byte.
  static constexpr std::uint64_t kBandBytes = 4096;

  explicit GuardedBuffer(Rng pattern) : pattern_(pattern) {}

  /// Calls visit(band byte, expected byte) for both bands; stops at false.
  template <class Visit>
  bool ForBands(Visit visit) const;

  Rng pattern_;
  int fd_ = -1;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t mapping_bytes_ = 0;
};

}  // namespace kernelpro::referee
