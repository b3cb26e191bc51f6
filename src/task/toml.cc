// SPDX-License-Identifier: Apache-2.0
#include "task/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.h"

// The asserts of toml++ 3.3 and 3.4 fire on wrong input ("[)", "[,"); without them the same input
// is a parse error (its issue #294).
#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(x) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace kernelpro {
namespace {

constexpr std::size_t kMaxBytes = 256U << 10U;
constexpr int kMaxDots = 16;
constexpr std::size_t kMaxShownLine = 160;

/// What toml++ must not see: a non-ASCII byte in a bare key runs into undefined behaviour, and a
/// key of many thousand parts overflows the stack when its tables are destroyed.
class Prescan {
 public:
  explicit Prescan(std::string_view text) : text_(text) {}

  /// Line and reason of the first offence; line 0 when there is none.
  std::pair<std::uint32_t, std::string_view> Run() {
    while (at_ < text_.size() && reason_.empty()) {
      Step();
    }
    return {reason_.empty() ? 0U : line_, reason_};
  }

 private:
  void Step() {
    const char c = text_[at_];
    if (c == '"' || c == '\'') {
      String(c);
      return;
    }
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return;
    }
    if (static_cast<unsigned char>(c) >= 0x80) {
      reason_ = "only ASCII is allowed outside of strings and comments";
      return;
    }
    if (c == '.') {
      ++dots_;
      if (dots_ > kMaxDots) {
        reason_ = "a key with too many dots";
        return;
      }
    } else if (c == '=' || c == ',' || c == '[' || c == '{' || c == '\n') {
      dots_ = 0;
    }
    line_ += c == '\n' ? 1 : 0;
    ++at_;
  }

  void String(char quote) {
    const std::string triple(3, quote);
    const bool multi_line = text_.substr(at_).starts_with(triple);
    at_ += multi_line ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' && !multi_line) {
        return;  // unterminated; toml++ says so
      }
      if (c == '\\' && quote == '"' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') {
        at_ += 2;
        continue;
      }
      if (multi_line ? text_.substr(at_).starts_with(triple) : c == quote) {
        at_ += multi_line ? 3 : 1;
        // A multi-line string may end in up to two quotes of its own: """a""""" .
        for (int extra = 0; multi_line && extra < 2 && at_ < text_.size() && text_[at_] == quote;
             ++extra) {
          ++at_;
        }
        return;
      }
      line_ += c == '\n' ? 1 : 0;
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  int dots_ = 0;
  std::string_view reason_;
};

TomlNode Convert(const toml::node& node, const toml::source_position& position);

void Sort(TomlNode* table) {
  std::ranges::stable_sort(table->items, [](const TomlNode& a, const TomlNode& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
}

TomlNode ConvertTable(const toml::table& table) {
  TomlNode out;
  for (const auto& [key, value] : table) {
    TomlNode member = Convert(value, key.source().begin);
    member.key = std::string(key.str());
    out.items.push_back(std::move(member));
  }
  Sort(&out);
  return out;
}

TomlNode Convert(const toml::node& node, const toml::source_position& position) {
  TomlNode out;
  if (const auto* table = node.as_table()) {
    out = ConvertTable(*table);
  } else if (const auto* array = node.as_array()) {
    out.kind = TomlNode::Kind::kArray;
    for (const toml::node& item : *array) {
      out.items.push_back(Convert(item, item.source().begin));
    }
  } else if (const auto* text = node.as_string()) {
    out.kind = TomlNode::Kind::kString;
    out.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    out.kind = TomlNode::Kind::kInteger;
    out.integer = integer->get();
    out.number = static_cast<double>(out.integer);
  } else if (const auto* number = node.as_floating_point()) {
    out.kind = TomlNode::Kind::kFloat;
    out.number = number->get();
  } else if (const auto* boolean = node.as_boolean()) {
    out.kind = TomlNode::Kind::kBool;
    out.boolean = boolean->get();
  } else {
    out.kind = TomlNode::Kind::kDate;
  }
  out.line = position.line;
  out.column = position.column;
  return out;
}

}  // namespace

const TomlNode* TomlNode::Find(std::string_view name) const {
  const auto found = std::ranges::find(items, name, &TomlNode::key);
  return kind == Kind::kTable && found != items.end() ? &*found : nullptr;
}

std::string_view Describe(TomlNode::Kind kind) {
  switch (kind) {
    case TomlNode::Kind::kString:
      return "a string";
    case TomlNode::Kind::kInteger:
      return "a whole number";
    case TomlNode::Kind::kFloat:
      return "a number";
    case TomlNode::Kind::kBool:
      return "true or false";
    case TomlNode::Kind::kDate:
      return "a date or time";
    case TomlNode::Kind::kArray:
      return "an array";
    case TomlNode::Kind::kTable:
      return "a table";
  }
  return "a value";
}

TomlSource::TomlSource(std::string_view text, std::string_view shown_path) : path_(shown_path) {
  for (const std::string_view line : Lines(text.substr(0, kMaxBytes))) {
    lines_.emplace_back(line);
  }
}

Error TomlSource::At(ErrorCode code, std::uint32_t line, std::string_view what,
                     std::string_view allowed) const {
  std::string message = fmt::format("{}:{}: {}", path_, line, what);
  if (line >= 1 && line <= lines_.size()) {
    message += fmt::format("\n  {} | {}", line, Printable(lines_[line - 1], kMaxShownLine));
  }
  if (!allowed.empty()) {
    message += fmt::format("\n  {}", allowed);
  }
  return Fail(code, std::move(message));
}

Result<TomlNode> ParseToml(std::string_view text, const TomlSource& source) {
  if (text.size() > kMaxBytes) {
    return source.At(ErrorCode::kParse, 1,
                     fmt::format("the file is larger than {} KiB", kMaxBytes >> 10U));
  }
  if (const auto [line, reason] = Prescan(text).Run(); line != 0) {
    return source.At(ErrorCode::kParse, line, reason, "quote the text, or shorten the key");
  }
  const toml::parse_result result = toml::parse(text);
  if (!result) {
    return source.At(ErrorCode::kParse, result.error().source().begin.line,
                     Printable(result.error().description(), 300));
  }
  TomlNode root = ConvertTable(result.table());
  root.line = 1;
  return root;
}

}  // namespace kernelpro
