// SPDX-License-Identifier: Apache-2.0
#include "llm/sse.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace kernelpro::llm {
namespace {

constexpr std::string_view kMark = "\xef\xbb\xbf";

/// Two searches for one character are several times faster than one for either.
std::size_t LineEnd(std::string_view bytes) {
  const std::size_t feed = bytes.find('\n');
  return std::min(feed, bytes.substr(0, feed).find('\r'));
}

}  // namespace

Status SseParser::TooLong() const {
  return Fail(ErrorCode::kParse,
              fmt::format("an event of the answer's stream is longer than {} bytes", limit_));
}

std::string_view SseParser::WithoutMark(std::string_view bytes) {
  while (at_start_ && !bytes.empty()) {
    if (bytes.front() == kMark[mark_bytes_]) {
      bytes.remove_prefix(1);
      at_start_ = ++mark_bytes_ < kMark.size();
    } else {
      // What looked like a mark was text.
      line_.append(kMark.substr(0, mark_bytes_));
      at_start_ = false;
    }
  }
  return bytes;
}

Status SseParser::Feed(std::string_view bytes, const Sink& sink) {
  if (failed_) {
    return TooLong();
  }
  bytes = WithoutMark(bytes);
  while (!bytes.empty()) {
    if (after_return_) {
      after_return_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const std::size_t end = LineEnd(bytes);
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > limit_) {
      failed_ = true;
      return TooLong();
    }
    if (end == std::string_view::npos) {
      line_.append(piece);
      return Ok();
    }
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (line_.empty()) {
      KP_RETURN_IF_ERROR(Line(piece, sink));
    } else {
      line_.append(piece);
      const std::string line = std::exchange(line_, {});
      KP_RETURN_IF_ERROR(Line(line, sink));
    }
  }
  return Ok();
}

Status SseParser::Line(std::string_view line, const Sink& sink) {
  if (line.empty()) {
    return Dispatch(sink);
  }
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) {
    value.remove_prefix(1);
  }
  if (field == "event") {
    name_ = value;
  } else if (field == "data") {
    if (data_.size() + value.size() + 1 > limit_) {
      failed_ = true;
      return TooLong();
    }
    if (has_data_) {
      data_ += '\n';
    }
    data_ += value;
    has_data_ = true;
  }
  // "id" and "retry" are for streams that are taken up again, which an answer is not.
  return Ok();
}

Status SseParser::Dispatch(const Sink& sink) {
  const bool empty = data_.empty();
  const SseEvent event{name_.empty() ? "message" : std::exchange(name_, {}),
                       std::exchange(data_, {})};
  name_.clear();
  has_data_ = false;
  // The standard drops an event whose data is the empty string, whether or not it had a data line.
  return empty ? Ok() : sink(event);
}

}  // namespace kernelpro::llm
