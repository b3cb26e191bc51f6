// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kernelpro::llm {

/// One server-sent event. `name` is "message" when the server gave none.
struct SseEvent {
  std::string name;
  std::string data;
};

/// Cuts a stream of bytes into server-sent events as the WHATWG standard (HTML, "Server-sent
/// events") says: lines end with \n, \r\n or \r, lines with ':' first are comments, several data
/// lines are joined with \n, one byte order mark at the start is dropped, an event without data and
/// an event that the stream ends in are dropped. How the bytes are cut into pieces changes nothing.
class SseParser {
 public:
  /// An error of the sink stops the feeding and is returned.
  using Sink = std::function<Status(const SseEvent&)>;

  /// `limit`: bytes of a line, and of the data of an event.
  explicit SseParser(std::size_t limit = std::size_t{8} << 20U) : limit_(limit) {}

  /// kParse when a line or an event passes the limit; nothing more is read then.
  [[nodiscard]] Status Feed(std::string_view bytes, const Sink& sink);

 private:
  [[nodiscard]] std::string_view WithoutMark(std::string_view bytes);
  [[nodiscard]] Status TooLong() const;
  [[nodiscard]] Status Line(std::string_view line, const Sink& sink);
  [[nodiscard]] Status Dispatch(const Sink& sink);

  std::size_t limit_;
  std::string line_;  ///< what came of a line that has not ended
  std::string name_, data_;
  std::size_t mark_bytes_ = 0;  ///< of the byte order mark, seen so far
  bool at_start_ = true;
  bool has_data_ = false;
  bool after_return_ = false;  ///< the last byte was \r: a \n now belongs to the same line end
  bool failed_ = false;
};

}  // namespace kernelpro::llm
