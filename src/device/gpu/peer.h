// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "device/protocol/frame.h"

struct msghdr;

namespace kernelpro::gpu {

/// One of the two that the emulated GPU talks to: frames in both directions, never blocking. Owns
/// the descriptor.
class Peer {
 public:
  Peer(int fd, std::uint32_t payload_limit);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] int fd() const { return fd_; }

  [[nodiscard]] bool open() const { return fd_ >= 0; }

  /// What came is not our protocol.
  [[nodiscard]] bool broken() const { return reader_.broken(); }

  /// Answers are waiting because the other side does not read.
  [[nodiscard]] bool wants_write() const { return sent_ < out_.size(); }

  void Close();
  void Push(const protocol::Frame& frame);
  void Flush();
  /// Reads what is there, at most one chunk. Descriptors are kept only where they are expected.
  void Fill(bool with_descriptors);

  [[nodiscard]] std::optional<protocol::Frame> Next() { return reader_.Next(); }

  /// The oldest descriptor that came, or -1. The caller's to close.
  [[nodiscard]] int TakeDescriptor();

 private:
  void KeepDescriptors(msghdr& message);

  int fd_;
  protocol::FrameReader reader_;
  std::vector<std::byte> chunk_;
  std::vector<std::byte> out_;
  std::size_t sent_ = 0;
  std::deque<int> received_;
};

}  // namespace kernelpro::gpu
