// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro::agents {

struct Comment {
  std::string text;    ///< one line of it, without its marks, trimmed
  bool alone = false;  ///< no code on its line
};

/// A source split into what the compiler reads and what it does not.
struct Lexed {
  std::string code;  ///< same length, comments and contents of literals blanked, line ends kept
  std::vector<Comment> comments;
};

[[nodiscard]] Lexed Lex(std::string_view source);

/// Whether `name` stands in `code` as a whole word.
[[nodiscard]] bool HasWord(std::string_view code, std::string_view name);

/// Whether `code` defines (not only declares or calls) a function of this name.
[[nodiscard]] bool Defines(std::string_view code, std::string_view function);

/// Whether every bracket of `code` is closed, and none that was not opened.
[[nodiscard]] bool Balanced(std::string_view code);

}  // namespace kernelpro::agents
