// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "device/protocol/frame.h"

namespace kernelpro::referee {

using Deadline = std::chrono::steady_clock::time_point;

/// Milliseconds from now to the deadline for poll(), at least 0 and at most `most`.
[[nodiscard]] int PollTimeout(Deadline deadline, std::chrono::milliseconds most);

/// The referee's end of a socket pair: frames in both directions, never waiting past a deadline.
/// Owns the descriptor.
class FrameSocket {
 public:
  FrameSocket() : reader_(0) {}

  FrameSocket(int fd, std::uint32_t payload_limit);
  FrameSocket(FrameSocket&& other) noexcept;
  FrameSocket& operator=(FrameSocket&& other) noexcept;
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;
  ~FrameSocket();

  [[nodiscard]] int fd() const { return fd_; }

  /// The other side is gone, or talked nonsense.
  [[nodiscard]] bool closed() const { return closed_; }

  [[nodiscard]] bool broken() const { return reader_.broken(); }

  /// Sends a frame, with a descriptor when `descriptor` >= 0. False when the other side is gone or
  /// does not take it in time.
  [[nodiscard]] bool Send(const protocol::Frame& frame, Deadline deadline, int descriptor = -1);
  /// Takes in what is there without waiting. Descriptors that come along are dropped.
  void Fill();

  /// The next whole frame taken in.
  [[nodiscard]] std::optional<protocol::Frame> Next() { return reader_.Next(); }

  /// Waits for a frame.
  [[nodiscard]] std::optional<protocol::Frame> Wait(Deadline deadline);

 private:
  int fd_ = -1;
  bool closed_ = false;
  protocol::FrameReader reader_;
  std::vector<std::byte> chunk_;
};

}  // namespace kernelpro::referee
