// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/peer.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

namespace kernelpro::gpu {
namespace {

constexpr std::size_t kChunkBytes = 1U << 20U;
constexpr std::size_t kMostDescriptors = 4;  ///< in one message; we send one

}  // namespace

Peer::Peer(int fd, std::uint32_t payload_limit)
    : fd_(fd), reader_(payload_limit), chunk_(kChunkBytes) {
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

Peer::~Peer() {
  Close();
  for (const int fd : received_) {
    ::close(fd);
  }
}

void Peer::Close() {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

void Peer::Push(const protocol::Frame& frame) {
  const auto bytes = protocol::EncodeFrame(frame);
  out_.insert(out_.end(), bytes.begin(), bytes.end());
  Flush();
}

void Peer::Flush() {
  while (open() && wants_write()) {
    const ssize_t n = ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n > 0) {
      sent_ += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EINTR) {
      return;
    } else {
      Close();
    }
  }
  out_.clear();
  sent_ = 0;
}

void Peer::Fill(bool with_descriptors) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control{};
  iovec part{chunk_.data(), chunk_.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (with_descriptors) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  const ssize_t n = ::recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
  if (n > 0) {
    reader_.Feed(std::span(chunk_).first(static_cast<std::size_t>(n)));
    KeepDescriptors(message);
  } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
    Close();
  }
}

int Peer::TakeDescriptor() {
  if (received_.empty()) {
    return -1;
  }
  const int fd = received_.front();
  received_.pop_front();
  return fd;
}

void Peer::KeepDescriptors(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      received_.push_back(fd);
    }
  }
}

}  // namespace kernelpro::gpu
