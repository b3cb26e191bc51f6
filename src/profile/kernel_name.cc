// SPDX-License-Identifier: Apache-2.0
#include "profile/kernel_name.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace kernelpro {
namespace {

/// Beyond this a name is not compared part by part.
constexpr std::size_t kLongestName = 16384;

/// "(unsigned long long)", or an enumeration's type in its name spaces.
constexpr std::size_t kLongestCast = 200;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsNamePart(char c) {
  return IsDigit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Name spaces without a name, as the tools write them; the last one is what a cut name begins
/// with.
constexpr std::array<std::string_view, 4> kUnnamed = {
    "(anonymous namespace)::", "<unnamed>::", "unnamed>::", "(anonymous)::"};

/// "(int)" of "(int)4" and the like, at the beginning of `text`; 0: none.
std::size_t CastLength(std::string_view text) {
  if (!text.starts_with('(')) {
    return 0;
  }
  const std::size_t close = text.substr(0, kLongestCast).find(')');
  if (close == std::string_view::npos || close + 1 >= text.size() || close == 1) {
    return 0;
  }
  for (const char c : text.substr(1, close - 1)) {
    if (!IsNamePart(c) && c != ' ' && c != ':') {
      return 0;
    }
  }
  const char next = text[close + 1];
  return IsDigit(next) || next == '-' ? close + 1 : 0;
}

/// A literal at the beginning of `text` in one spelling ("4u" -> "4", "true" -> "1"), and how many
/// characters it took.
std::optional<std::pair<std::string, std::size_t>> Literal(std::string_view text) {
  for (const auto& [word, digit] : {std::pair{"true", "1"}, std::pair{"false", "0"}}) {
    const std::string_view spelled = word;
    if (text.starts_with(spelled) &&
        (text.size() == spelled.size() || !IsNamePart(text[spelled.size()]))) {
      return std::pair{std::string(digit), spelled.size()};
    }
  }
  std::size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) {
    ++digits;
  }
  if (digits == 0) {
    return std::nullopt;
  }
  std::size_t end = digits;
  while (end < text.size() &&
         (text[end] == 'u' || text[end] == 'l' || text[end] == 'U' || text[end] == 'L')) {
    ++end;
  }
  if (end < text.size() && IsNamePart(text[end])) {
    return std::nullopt;  // part of a name
  }
  return std::pair{std::string(text.substr(0, digits)), end};
}

/// One spelling of a demangled name without parameters. `whole`: its brackets are closed.
std::string Spell(std::string_view name, bool& whole) {
  std::string out;
  out.reserve(name.size());
  int depth = 0;
  while (!name.empty()) {
    std::size_t skip = 0;
    for (const std::string_view unnamed : kUnnamed) {
      if (name.starts_with(unnamed) && (unnamed != "unnamed>::" || out.empty())) {
        skip = unnamed.size();
        break;
      }
    }
    if (skip == 0 && depth > 0) {
      skip = CastLength(name);
    }
    if (skip != 0) {
      name.remove_prefix(skip);
      continue;
    }
    if (depth > 0 && (out.empty() || !IsNamePart(out.back()))) {
      if (const auto literal = Literal(name)) {
        out += literal->first;
        name.remove_prefix(literal->second);
        continue;
      }
    }
    const char c = name.front();
    name.remove_prefix(1);
    depth += c == '<' ? 1 : 0;
    depth -= c == '>' && depth > 0 ? 1 : 0;
    if (c != ' ') {
      out += c;
    } else if (!out.empty() && !name.empty() && IsNamePart(out.back()) && IsNamePart(name[0])) {
      out += ' ';  // "unsigned int"
    }
  }
  whole = depth == 0;
  return out;
}

/// What stands outside of angle brackets.
std::string WithoutArguments(std::string_view name) {
  std::string out;
  int depth = 0;
  for (const char c : name) {
    if (c == '>' && depth > 0) {
      --depth;
    } else if (c == '<') {
      ++depth;
    } else if (depth == 0) {
      out += c;
    }
  }
  return out;
}

/// Reads the function's own name out of a mangled one; a small part of the Itanium ABI's grammar.
class Mangled {
 public:
  explicit Mangled(std::string_view text) : rest_(text.substr(2)) {}

  KernelNameParts Read() {
    KernelNameParts parts;
    const bool nested = Take('N');
    bool arguments = false;
    while (!rest_.empty()) {
      if (nested && (rest_[0] == 'K' || rest_[0] == 'V' || rest_[0] == 'r' || rest_[0] == 'L')) {
        rest_.remove_prefix(1);
      } else if (IsDigit(rest_[0])) {
        const std::optional<std::string_view> word = Word();
        if (!word) {
          return {};
        }
        if (!word->starts_with("_GLOBAL__N")) {
          parts.qualified += (parts.qualified.empty() ? "" : "::") + std::string(*word);
          parts.function = *word;
        }
      } else if (Take('I')) {
        arguments = true;
        if (!SkipArguments()) {
          return {};
        }
      } else {
        break;
      }
      if (!nested && !rest_.empty() && rest_[0] != 'I') {
        break;
      }
    }
    if (nested && !Take('E')) {
      return {};
    }
    if (!arguments) {
      parts.templated = parts.qualified;
    }
    return parts;
  }

 private:
  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }

  /// "5scale"
  std::optional<std::string_view> Word() {
    std::size_t length = 0;
    while (!rest_.empty() && IsDigit(rest_[0])) {
      length = length * 10 + static_cast<std::size_t>(rest_[0] - '0');
      rest_.remove_prefix(1);
      if (length > rest_.size()) {
        return std::nullopt;
      }
    }
    const std::string_view word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return word;
  }

  /// After an 'I': to its 'E'.
  bool SkipArguments() {
    int depth = 1;
    while (depth > 0 && !rest_.empty()) {
      if (IsDigit(rest_[0])) {
        if (!Word()) {
          return false;
        }
        continue;
      }
      const char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == 'S') {  // a substitution: "S_", "S1_", "St"
        const std::size_t end = rest_.substr(0, 4).find('_');
        const bool numbered = end != std::string_view::npos;
        rest_.remove_prefix(numbered ? end + 1 : std::min<std::size_t>(1, rest_.size()));
      } else if (c == 'L' && !rest_.empty() && rest_[0] >= 'a' && rest_[0] <= 'z') {
        const std::size_t end = rest_.find('E');  // a literal of a built-in type: "Li128E"
        if (end == std::string_view::npos) {
          return false;
        }
        rest_.remove_prefix(end + 1);
      } else if (c == 'I' || c == 'N' || c == 'J' || c == 'F' || c == 'X') {
        ++depth;
      } else if (c == 'L') {  // of an enumeration: its type, then a number
        if (rest_.empty() || !IsDigit(rest_[0]) || !Word()) {
          return false;
        }
        const std::size_t end = rest_.find('E');
        if (end == std::string_view::npos) {
          return false;
        }
        rest_.remove_prefix(end + 1);
      } else if (c == 'E') {
        --depth;
      }
    }
    return depth == 0;
  }

  std::string_view rest_;
};

}  // namespace

std::string_view WithoutParameters(std::string_view name) {
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : 0;
    depth -= name[i] == '>' && depth > 0 ? 1 : 0;
    if (name[i] == '(' && depth == 0 && i > 0 && !name.substr(i).starts_with("(anonymous")) {
      name = name.substr(0, i);
      break;
    }
  }
  if (name.starts_with("void ")) {
    name.remove_prefix(5);
  }
  return Trim(name);
}

KernelNameParts PartsOfKernelName(std::string_view name) {
  KernelNameParts parts;
  name = Trim(name);
  if (name.empty() || name.size() > kLongestName) {
    return parts;
  }
  if (name.starts_with("_Z") && name.size() > 2) {
    return Mangled(name).Read();
  }
  bool whole = true;
  parts.templated = Spell(WithoutParameters(name), whole);
  parts.qualified = WithoutArguments(parts.templated);
  if (!whole) {
    parts.templated.clear();  // cut: what it had in common with another is not the whole name
  }
  const std::size_t colon = parts.qualified.rfind("::");
  parts.function = colon == std::string::npos ? parts.qualified : parts.qualified.substr(colon + 2);
  return parts;
}

}  // namespace kernelpro
