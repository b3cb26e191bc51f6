// SPDX-License-Identifier: Apache-2.0
#include "connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <thread>

namespace kernelpro::fake {
namespace {

constexpr std::size_t kHeadLimit = std::size_t{64} << 10U;
constexpr std::size_t kBodyLimit = std::size_t{64} << 20U;
/// How soon a stop is noticed.
constexpr int kPollMs = 20;

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

/// "POST /v1/messages HTTP/1.1\r\nHost: ...": false when it is something else.
bool ParseHead(std::string_view head, HttpRequest& request) {
  const std::size_t line_end = head.find("\r\n");
  const std::string_view line = head.substr(0, line_end);
  const std::size_t first = line.find(' ');
  const std::size_t second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos ||
      !line.substr(second + 1).starts_with("HTTP/1.")) {
    return false;
  }
  request.method = line.substr(0, first);
  request.target = line.substr(first + 1, second - first - 1);
  while (line_end != std::string_view::npos) {
    head.remove_prefix(head.find("\r\n") + 2);
    const std::string_view header = head.substr(0, head.find("\r\n"));
    const std::size_t colon = header.find(':');
    if (colon == std::string_view::npos) {
      return header.empty();
    }
    const std::size_t value = header.find_first_not_of(" \t", colon + 1);
    request.headers[Lower(header.substr(0, colon))] =
        value == std::string_view::npos ? "" : std::string(header.substr(value));
    if (head.find("\r\n") == std::string_view::npos) {
      break;
    }
  }
  return true;
}

}  // namespace

Connection::~Connection() {
  if (socket_ >= 0) {
    close(socket_);
  }
}

bool Connection::Fill() {
  std::array<char, 16384> bytes{};
  while (!stop_) {
    pollfd waited{socket_, POLLIN, 0};
    const int ready = poll(&waited, 1, kPollMs);
    if (ready == 0) {
      continue;
    }
    const ssize_t got = ready < 0 ? -1 : recv(socket_, bytes.data(), bytes.size(), 0);
    if (got <= 0) {
      return false;
    }
    buffer_.append(bytes.data(), static_cast<std::size_t>(got));
    return true;
  }
  return false;
}

std::optional<HttpRequest> Connection::Read() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (buffer_.size() > kHeadLimit || !Fill()) {
      return std::nullopt;
    }
  }
  HttpRequest request;
  if (!ParseHead(std::string_view(buffer_).substr(0, end), request)) {
    return std::nullopt;
  }
  buffer_.erase(0, end + 4);
  if (Lower(request.Header("expect")) == "100-continue" && !Send("HTTP/1.1 100 Continue\r\n\r\n")) {
    return std::nullopt;
  }
  if (!ReadBody(request)) {
    return std::nullopt;
  }
  return request;
}

bool Connection::ReadBody(HttpRequest& request) {
  if (Lower(request.Header("transfer-encoding")) == "chunked") {
    return ReadChunks(request.body);
  }
  const std::string length = request.Header("content-length");
  std::size_t size = 0;
  std::from_chars(length.data(), length.data() + length.size(), size);
  if (size > kBodyLimit) {
    return false;
  }
  while (buffer_.size() < size) {
    if (!Fill()) {
      return false;
    }
  }
  request.body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return true;
}

bool Connection::ReadChunks(std::string& body) {
  while (body.size() <= kBodyLimit) {
    std::size_t line = 0;
    while ((line = buffer_.find("\r\n")) == std::string::npos) {
      if (!Fill()) {
        return false;
      }
    }
    std::size_t size = 0;
    if (std::from_chars(buffer_.data(), buffer_.data() + line, size, 16).ec != std::errc()) {
      return false;
    }
    while (buffer_.size() < line + 4 + size) {
      if (!Fill()) {
        return false;
      }
    }
    body += buffer_.substr(line + 2, size);
    buffer_.erase(0, line + 4 + size);
    if (size == 0) {
      return true;
    }
  }
  return false;
}

bool Connection::Send(std::string_view bytes) const {
  while (!bytes.empty()) {
    pollfd waited{socket_, POLLOUT, 0};
    const int ready = poll(&waited, 1, kPollMs);
    if (stop_ || ready < 0) {
      return false;
    }
    if (ready == 0) {
      continue;
    }
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void Connection::Stall() const {
  while (!stop_) {
    pollfd waited{socket_, POLLIN, 0};
    if (poll(&waited, 1, kPollMs) != 0) {
      return;
    }
  }
}

void Connection::Reset() {
  // Without lingering a close is a reset.
  const linger none{1, 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close(socket_);
  socket_ = -1;
}

Connection::Played Connection::Play(const std::vector<Step>& steps) {
  Played played;
  for (const Step& step : steps) {
    switch (step.kind) {
      case Step::Kind::kSend:
        played.pieces += step.pieces;
        if (!Send(step.bytes)) {
          return played;
        }
        break;
      case Step::Kind::kWait:
        std::this_thread::sleep_for(step.wait);
        break;
      case Step::Kind::kStall:
        Stall();
        return played;
      case Step::Kind::kReset:
        Reset();
        return played;
      case Step::Kind::kClose:
        shutdown(socket_, SHUT_WR);
        Stall();
        played.all = true;
        return played;
    }
  }
  played.all = true;
  played.open = true;
  return played;
}

}  // namespace kernelpro::fake
