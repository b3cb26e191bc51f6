// SPDX-License-Identifier: Apache-2.0
#include "device/protocol/frame.h"

#include "device/protocol/bytes.h"

namespace kernelpro::protocol {

std::vector<std::byte> EncodeFrame(const Frame& frame) {
  ByteWriter out;
  out.U32(static_cast<std::uint32_t>(frame.payload.size()));
  out.U16(kVersion);
  out.U16(frame.kind);
  out.U64(frame.sequence);
  out.Raw(frame.payload);
  return out.Take();
}

void FrameReader::Feed(std::span<const std::byte> bytes) {
  if (broken_) {
    return;
  }
  // What was handed out goes, or a stream that always ends inside a frame would grow for ever.
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<Frame> FrameReader::Next() {
  const auto waiting = std::span<const std::byte>(buffer_).subspan(at_);
  if (broken_ || waiting.size() < kHeaderBytes) {
    return std::nullopt;
  }
  ByteReader header(waiting.first(kHeaderBytes));
  const std::uint32_t size = header.U32();
  const std::uint16_t version = header.U16();
  Frame frame;
  frame.kind = header.U16();
  frame.sequence = header.U64();
  if (version != kVersion || size > payload_limit_) {
    broken_ = true;
    buffer_.clear();
    at_ = 0;
    return std::nullopt;
  }
  if (waiting.size() - kHeaderBytes < size) {
    return std::nullopt;
  }
  const auto payload = waiting.subspan(kHeaderBytes, size);
  frame.payload.assign(payload.begin(), payload.end());
  at_ += kHeaderBytes + size;
  return frame;
}

}  // namespace kernelpro::protocol
