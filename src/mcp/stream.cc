// SPDX-License-Identifier: Apache-2.0
#include "mcp/stream.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <system_error>
#include <utility>

namespace kernelpro::mcp {
namespace {

Error Failed(const char* what) {
  return Fail(ErrorCode::kIo, std::string(what) + ": " + std::generic_category().message(errno));
}

/// Keeps SIGPIPE from this thread. A signal that came meanwhile is taken away, unless somebody else
/// held it back before.
class NoBrokenPipeSignal {
 public:
  NoBrokenPipeSignal() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }

  NoBrokenPipeSignal(const NoBrokenPipeSignal&) = delete;
  NoBrokenPipeSignal& operator=(const NoBrokenPipeSignal&) = delete;

  ~NoBrokenPipeSignal() {
    const timespec now{};
    while (!was_pending_ && ::sigtimedwait(&set_, nullptr, &now) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace

Result<Wake> Wake::Create() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) {
    return Failed("eventfd");
  }
  return Wake(fd);
}

Wake::Wake(Wake&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Wake::~Wake() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

void Wake::Signal() const {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then it is readable already.
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof(one));
}

Result<bool> LineReader::Fill() {
  for (;;) {
    std::array<pollfd, 2> events{pollfd{fd_, POLLIN, 0}, pollfd{wake_.fd(), POLLIN, 0}};
    if (::poll(events.data(), events.size(), -1) < 0) {
      if (errno == EINTR) {
        continue;
      }
      return Failed("poll of the input");
    }
    if (events[1].revents != 0) {
      return false;
    }
    std::array<char, 65536> chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const ssize_t count = ::read(fd_, chunk.data(), chunk.size());
    if (count > 0) {
      buffer_.append(chunk.data(), static_cast<std::size_t>(count));
      return true;
    }
    if (count == 0) {
      return false;
    }
    if (errno != EINTR && errno != EAGAIN) {
      return Failed("read of the input");
    }
  }
}

Result<LineReader::Event> LineReader::Next(std::string& line) {
  for (;;) {
    const std::size_t end = buffer_.find('\n', scanned_);
    if (end != std::string::npos) {
      const std::size_t length = end - start_;
      const bool skipped = std::exchange(skipping_, false);
      if (!skipped && length <= limit_) {
        line.assign(buffer_, start_, length);
      }
      start_ = scanned_ = end + 1;
      if (skipped) {
        continue;
      }
      return length <= limit_ ? Event::kLine : Event::kTooLong;
    }
    scanned_ = buffer_.size();
    if (skipping_ || buffer_.size() - start_ > limit_) {
      buffer_.clear();
      start_ = scanned_ = 0;
      if (!std::exchange(skipping_, true)) {
        return Event::kTooLong;
      }
    } else if (start_ > 0) {
      buffer_.erase(0, start_);
      scanned_ -= start_;
      start_ = 0;
    }
    KP_ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) {
      return Event::kEnd;
    }
  }
}

void LineWriter::Write(std::string_view line) {
  const std::scoped_lock lock(mutex_);
  if (closed_) {
    return;
  }
  std::string bytes(line);
  bytes += '\n';
  const NoBrokenPipeSignal guard;
  if (Status written = WriteAll(bytes); !written.ok()) {
    status_ = std::move(written);
    closed_ = true;
    wake_.Signal();
  }
}

Status LineWriter::WriteAll(std::string_view bytes) {
  // A pipe that polls as writable takes this much without blocking; a write of more could block
  // where no wake ends it.
  constexpr std::size_t kPiece = 4096;
  bool is_socket = true;
  while (!bytes.empty()) {
    std::array<pollfd, 2> events{pollfd{fd_, POLLOUT, 0}, pollfd{wake_.fd(), POLLIN, 0}};
    if (::poll(events.data(), events.size(), -1) < 0) {
      if (errno == EINTR) {
        continue;
      }
      return Failed("poll of the output");
    }
    if (events[0].revents == 0) {
      closed_ = true;  // woken, and nobody reads
      return Ok();
    }
    ssize_t count = -1;
    if (is_socket) {
      count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      is_socket = count >= 0 || errno != ENOTSOCK;
    }
    if (!is_socket) {
      count = ::write(fd_, bytes.data(), std::min(bytes.size(), kPiece));
    }
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR && errno != EAGAIN) {
      return Failed("write to the client");
    }
  }
  return Ok();
}

void LineWriter::Close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
}

Status LineWriter::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

}  // namespace kernelpro::mcp
