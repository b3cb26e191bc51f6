// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro {

/// One value of a TOML document with the line that it stands on; members of a table are in order
/// of appearance, which the TOML libraries do not keep.
struct TomlNode {
  enum class Kind : std::uint8_t { kString, kInteger, kFloat, kBool, kDate, kArray, kTable };
  Kind kind = Kind::kTable;
  std::string key;         ///< of a table's member
  std::uint32_t line = 0;  ///< of the key, or of the value in an array; 1 is the first
  std::uint32_t column = 0;
  std::string text;             ///< kString
  std::int64_t integer = 0;     ///< kInteger
  double number = 0;            ///< kInteger and kFloat
  bool boolean = false;         ///< kBool
  std::vector<TomlNode> items;  ///< members of a table, elements of an array

  [[nodiscard]] const TomlNode* Find(std::string_view name) const;
};

/// "a string", "a whole number", ...
[[nodiscard]] std::string_view Describe(TomlNode::Kind kind);

/// The text of a document, to build messages that show the line they speak of:
///   task.toml:7: unknown key "flop"
///     7 | flop = "rows"
///     allowed here: name, axes, flops
class TomlSource {
 public:
  TomlSource(std::string_view text, std::string_view shown_path);

  [[nodiscard]] Error At(ErrorCode code, std::uint32_t line, std::string_view what,
                         std::string_view allowed = {}) const;

 private:
  std::vector<std::string> lines_;
  std::string path_;
};

/// kParse with line and reason. Any bytes are safe to pass; a document above 256 KiB is refused.
[[nodiscard]] Result<TomlNode> ParseToml(std::string_view text, const TomlSource& source);

}  // namespace kernelpro
