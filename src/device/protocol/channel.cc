// SPDX-License-Identifier: Apache-2.0
#include "device/protocol/channel.h"

#include <sys/socket.h>

#include <cerrno>

namespace kernelpro::protocol {

bool Channel::Send(const Frame& frame) {
  const std::vector<std::byte> bytes = EncodeFrame(frame);
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

std::optional<Frame> Channel::Receive() {
  std::vector<std::byte> chunk(256U << 10U);
  while (true) {
    if (auto frame = reader_.Next()) {
      return frame;
    }
    if (reader_.broken()) {
      return std::nullopt;
    }
    const ssize_t n = ::recv(fd_, chunk.data(), chunk.size(), 0);
    if (n > 0) {
      reader_.Feed(std::span(chunk).first(static_cast<std::size_t>(n)));
    } else if (n == 0 || errno != EINTR) {
      return std::nullopt;
    }
  }
}

}  // namespace kernelpro::protocol
