// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "device/protocol/frame.h"

namespace kernelpro::protocol {

/// A frame at a time over a blocking socket, for the runner's side. Does not own the descriptor.
/// Not thread safe.
class Channel {
 public:
  Channel(int fd, std::uint32_t payload_limit) : fd_(fd), reader_(payload_limit) {}

  /// False when the other side is gone.
  [[nodiscard]] bool Send(const Frame& frame);
  /// Nothing when the other side is gone or talks nonsense.
  [[nodiscard]] std::optional<Frame> Receive();

 private:
  int fd_;
  FrameReader reader_;
};

}  // namespace kernelpro::protocol
