// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules/template.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "diagnose/facts.h"

namespace kernelpro::diagnose {
namespace {

bool IsForm(std::string_view form) {
  return form.empty() || form == "%" || form == "n" || form == "B" || form == "us" || form == "x" ||
         (form.size() == 1 && form[0] >= '0' && form[0] <= '9');
}

}  // namespace

std::string FormatFigure(double value, std::string_view form) {
  if (form == "%") {
    return Percent(value);
  }
  if (form == "n") {
    return Quantity(value);
  }
  if (form == "B") {
    return ByteText(value);
  }
  if (form == "us") {
    return fmt::format("{:.1f} us", value);
  }
  if (form == "x") {
    return fmt::format("{:.2f}x", value);
  }
  if (form.empty()) {
    return fmt::format("{:.4g}", value);
  }
  return fmt::format("{:.{}f}", value, form[0] - '0');
}

Result<Template> Template::Parse(std::string_view text) {
  Template result;
  result.text_ = text;
  std::string literal;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool doubled = i + 1 < text.size() && text[i + 1] == text[i];
    if ((text[i] == '{' || text[i] == '}') && doubled) {
      literal += text[i++];
      continue;
    }
    if (text[i] != '{') {
      literal += text[i];
      continue;
    }
    const std::size_t end = text.find('}', i);
    if (end == std::string_view::npos) {
      return Fail(ErrorCode::kParse,
                  fmt::format("'{{' is not closed in \"{}\"", Printable(text, 200)));
    }
    const std::string_view inside = text.substr(i + 1, end - i - 1);
    const std::size_t colon = inside.find(':');
    Piece place{std::string(Trim(inside.substr(0, colon))),
                colon == std::string_view::npos ? "" : std::string(inside.substr(colon + 1)), true};
    if (place.text.empty() || !IsForm(place.form)) {
      return Fail(ErrorCode::kParse,
                  fmt::format("{{{}}}: the form behind ':' is one of % 0..9 n B us x",
                              Printable(inside, 80)));
    }
    if (!literal.empty()) {
      result.pieces_.push_back({std::exchange(literal, {}), "", false});
    }
    result.pieces_.push_back(std::move(place));
    i = end;
  }
  if (!literal.empty()) {
    result.pieces_.push_back({std::move(literal), "", false});
  }
  return result;
}

std::string Template::Fill(const Values& values) const {
  std::string text;
  for (const Piece& piece : pieces_) {
    if (!piece.place) {
      text += piece.text;
    } else if (const std::optional<std::string> word = values.word(piece.text); word) {
      text += *word;
    } else {
      const std::optional<double> number = values.number(piece.text);
      text += number ? FormatFigure(*number, piece.form) : "unknown";
    }
  }
  return text;
}

std::vector<std::string> Template::names() const {
  std::vector<std::string> names;
  for (const Piece& piece : pieces_) {
    if (piece.place) {
      names.push_back(piece.text);
    }
  }
  return names;
}

}  // namespace kernelpro::diagnose
