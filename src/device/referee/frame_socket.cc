// SPDX-License-Identifier: Apache-2.0
#include "device/referee/frame_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace kernelpro::referee {
namespace {

constexpr std::size_t kChunkBytes = 256U << 10U;

bool WaitFor(int fd, short events, Deadline deadline) {
  pollfd poll{fd, events, 0};
  while (true) {
    const int n = ::poll(&poll, 1, PollTimeout(deadline, std::chrono::hours(1)));
    if (n > 0) {
      return true;
    }
    if (n == 0 && std::chrono::steady_clock::now() >= deadline) {
      return false;
    }
    if (n < 0 && errno != EINTR) {
      return false;
    }
  }
}

ssize_t SendSome(int fd, std::span<const std::byte> bytes, int descriptor) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};  // sendmsg does not write to it
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
  }
  return ::sendmsg(fd, &message, MSG_NOSIGNAL);
}

}  // namespace

int PollTimeout(Deadline deadline, std::chrono::milliseconds most) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp(left, std::chrono::milliseconds(0), most).count());
}

FrameSocket::FrameSocket(int fd, std::uint32_t payload_limit)
    : fd_(fd), reader_(payload_limit), chunk_(kChunkBytes) {
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

FrameSocket::FrameSocket(FrameSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      closed_(other.closed_),
      reader_(std::move(other.reader_)),
      chunk_(std::move(other.chunk_)) {}

FrameSocket& FrameSocket::operator=(FrameSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(closed_, other.closed_);
  std::swap(reader_, other.reader_);
  std::swap(chunk_, other.chunk_);
  return *this;
}

FrameSocket::~FrameSocket() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

bool FrameSocket::Send(const protocol::Frame& frame, Deadline deadline, int descriptor) {
  const auto bytes = protocol::EncodeFrame(frame);
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = SendSome(fd_, std::span(bytes).subspan(sent), sent == 0 ? descriptor : -1);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      if (!WaitFor(fd_, POLLOUT, deadline)) {
        return false;
      }
    } else if (errno != EINTR) {
      closed_ = true;
      return false;
    }
  }
  return true;
}

void FrameSocket::Fill() {
  const ssize_t n = ::recv(fd_, chunk_.data(), chunk_.size(), MSG_DONTWAIT);
  if (n > 0) {
    reader_.Feed(std::span(chunk_).first(static_cast<std::size_t>(n)));
  } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
    closed_ = true;
  }
}

std::optional<protocol::Frame> FrameSocket::Wait(Deadline deadline) {
  while (true) {
    if (auto frame = reader_.Next()) {
      return frame;
    }
    if (closed_ || reader_.broken() || !WaitFor(fd_, POLLIN, deadline)) {
      return std::nullopt;
    }
    Fill();
  }
}

}  // namespace kernelpro::referee
