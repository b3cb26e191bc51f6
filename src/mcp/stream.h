// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"

/// Lines over file descriptors that a second event can end.
namespace kernelpro::mcp {

/// Ends every wait for a stream, for good. Thread safe; also from a signal handler.
class Wake {
 public:
  [[nodiscard]] static Result<Wake> Create();
  Wake(Wake&& other) noexcept;
  Wake& operator=(Wake&&) = delete;
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;
  ~Wake();

  void Signal() const;

  /// Readable once signalled.
  [[nodiscard]] int fd() const { return fd_; }

 private:
  explicit Wake(int fd) : fd_(fd) {}

  int fd_;
};

/// Splits a stream into lines. For one thread.
class LineReader {
 public:
  enum class Event : std::uint8_t { kLine, kTooLong, kEnd };

  /// Lines of more than `limit` bytes are reported once and skipped.
  LineReader(int fd, const Wake& wake, std::size_t limit) : fd_(fd), wake_(wake), limit_(limit) {}

  /// The next line, without its end; kEnd at the end of the stream or when woken. What follows the
  /// last line end is no line: its writer was cut off. kIo when reading fails.
  [[nodiscard]] Result<Event> Next(std::string& line);

 private:
  [[nodiscard]] Result<bool> Fill();

  int fd_;
  const Wake& wake_;
  std::size_t limit_;
  std::string buffer_;
  std::size_t start_ = 0;    ///< of what was not handed out
  std::size_t scanned_ = 0;  ///< no line end before
  bool skipping_ = false;
};

/// Writes whole lines from several threads. After the first failure, or once woken with a reader
/// that does not read, nothing more is written. The descriptor's flags and the process's signal
/// handlers stay as they are.
class LineWriter {
 public:
  LineWriter(int fd, const Wake& wake) : fd_(fd), wake_(wake) {}

  /// `line` without line end. A failure wakes everybody, see status().
  void Write(std::string_view line);
  /// From now on lines are dropped.
  void Close();
  /// kIo when the stream broke.
  [[nodiscard]] Status status() const;

 private:
  [[nodiscard]] Status WriteAll(std::string_view bytes);

  int fd_;
  const Wake& wake_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  Status status_ = Ok();
};

}  // namespace kernelpro::mcp
