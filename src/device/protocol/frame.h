// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// The envelope of every message between referee, emulated GPU and runner. Standard library only.
namespace kernelpro::protocol {

inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 16;
/// What one message of an untrusted runner may hold (a fat binary, a piece of a copy).
inline constexpr std::uint32_t kRunnerPayloadLimit = 64U << 20U;
/// Copies between host and emulated GPU travel in pieces of this size.
inline constexpr std::uint32_t kCopyPieceBytes = 1U << 20U;

struct Frame {
  std::uint16_t kind = 0;
  std::uint64_t sequence = 0;  ///< echoed by the answer
  std::vector<std::byte> payload;
};

/// payload size u32, version u16, kind u16, sequence u64, payload.
[[nodiscard]] std::vector<std::byte> EncodeFrame(const Frame& frame);

/// Cuts a byte stream into frames. Pure; any bytes are safe to feed. A frame that is too large or
/// of another version breaks the stream for good: there is no way to find the next one.
class FrameReader {
 public:
  explicit FrameReader(std::uint32_t payload_limit) : payload_limit_(payload_limit) {}

  void Feed(std::span<const std::byte> bytes);
  /// The next whole frame; nothing when more bytes are needed or the stream is broken.
  [[nodiscard]] std::optional<Frame> Next();

  [[nodiscard]] bool broken() const { return broken_; }

  /// Bytes of an unfinished frame are waiting.
  [[nodiscard]] bool pending() const { return at_ < buffer_.size(); }

 private:
  std::uint32_t payload_limit_;
  std::vector<std::byte> buffer_;
  std::size_t at_ = 0;
  bool broken_ = false;
};

}  // namespace kernelpro::protocol
