// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro::diagnose {

/// A sentence with places for figures, parsed once: "{share:%} of warp time at {where}".
///
/// {NAME:FORM} is a number; FORM is `%` (0.43 -> "43 %"), `0`..`9` (decimals), `n` ("1.2 million"),
/// `B` ("3.4 MB"), `us` (microseconds -> "12.5 us"), `x` (ratio -> "1.43x"); without it two
/// significant decimals. {NAME} of a word (kernel, where, ...) is the word. `{{` is a brace. A
/// missing number is "unknown".
class Template {
 public:
  struct Values {
    std::function<std::optional<double>(std::string_view)> number;
    std::function<std::optional<std::string>(std::string_view)> word;
  };

  /// kParse: a brace that is not closed, or an unknown FORM.
  [[nodiscard]] static Result<Template> Parse(std::string_view text);

  [[nodiscard]] std::string Fill(const Values& values) const;

  [[nodiscard]] std::vector<std::string> names() const;

  [[nodiscard]] bool empty() const { return pieces_.empty(); }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  struct Piece {
    std::string text;  ///< literal, or the name of a place
    std::string form;
    bool place = false;
  };

  std::string text_;
  std::vector<Piece> pieces_;
};

/// "0.43" in a form of Template; for words of other tools too.
[[nodiscard]] std::string FormatFigure(double value, std::string_view form);

}  // namespace kernelpro::diagnose
