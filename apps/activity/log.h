// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace kernelpro::activity {

/// One JSON object of one line, built field by field: {"t":"kernel","s":1,...}.
class Line {
 public:
  explicit Line(std::string_view type);
  Line& Text(std::string_view key, std::string_view value);
  Line& Number(std::string_view key, std::uint64_t value);
  Line& Triple(std::string_view key, std::int64_t x, std::int64_t y, std::int64_t z);
  /// The whole line with its line end.
  [[nodiscard]] std::string Finish() &&;

 private:
  void Key(std::string_view key);

  std::string text_;
};

/// The file of one traced process. Not thread safe: its owner locks. Records are bounded by a
/// limit, what comes after it is counted. Names are written once and then numbered.
class Log {
 public:
  /// A new file; when it is there already (another process of the same run wrote it) "PATH.PID" is.
  /// False when neither can be made.
  [[nodiscard]] bool Open(const std::string& path, std::uint64_t limit);

  /// A line that is no record (header, name, end): never dropped.
  void Meta(Line line) { buffer_ += std::move(line).Finish(); }

  /// True when one more record fits; else it is counted as dropped.
  [[nodiscard]] bool Admit();

  void Record(Line line) { buffer_ += std::move(line).Finish(); }

  /// The number of a name; writes the name when it is new.
  [[nodiscard]] std::uint32_t NameId(std::string_view name);

  /// Hands everything to the kernel: what was written then outlives a killed process.
  void Write();

  [[nodiscard]] std::uint64_t records() const { return records_; }

  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  /// False when the traced program closed our descriptor: its number may be its own by now.
  [[nodiscard]] bool StillOurs() const;

  int fd_ = -1;
  std::uint64_t device_ = 0, inode_ = 0;
  std::uint64_t limit_ = 0, records_ = 0, dropped_ = 0;
  std::string buffer_;
  std::unordered_map<std::string, std::uint32_t> names_;
};

}  // namespace kernelpro::activity
