// SPDX-License-Identifier: Apache-2.0
#include "profile/metric_number.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "kernelpro/profile.h"

namespace kernelpro {
namespace {

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

/// The shape of a number text: where its separators are.
struct Shape {
  bool is_number = false;
  std::size_t commas = 0, points = 0;
  bool comma_last = false;      ///< the last separator is a comma
  std::size_t last_group = 0;   ///< digits behind the last separator
  bool groups_of_three = true;  ///< between separators, and 1-3 digits in front
};

/// One run of digits has ended; the first may be short, the last is judged by `last_group`.
void EndGroup(Shape& shape, std::size_t digits, bool first) {
  const bool fits = first ? digits >= 1 && digits <= 3 : digits == 3;
  shape.groups_of_three = shape.groups_of_three && fits;
}

Shape ShapeOf(std::string_view text) {
  Shape shape;
  if (text.starts_with('-') || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  std::size_t digits = 0;
  bool first = true;
  for (const char c : text) {
    if (IsDigit(c)) {
      ++digits;
      continue;
    }
    if (c != ',' && c != '.') {
      return shape;
    }
    EndGroup(shape, digits, first);
    first = false;
    digits = 0;
    shape.comma_last = c == ',';
    (shape.comma_last ? shape.commas : shape.points) += 1;
  }
  shape.last_group = digits;
  shape.is_number = digits > 0 || shape.points + shape.commas > 0;
  return shape;
}

std::optional<double> ParseWithout(std::string_view text, char grouping, char decimal) {
  std::string plain;
  for (const char c : text) {
    if (c == grouping) {
      continue;
    }
    plain.push_back(c == decimal ? '.' : c);
  }
  double value = 0;
  if (!ParseDouble(plain, &value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

void NumberStyle::Observe(std::string_view value, std::string_view unit) {
  const Shape shape = ShapeOf(Trim(value));
  if (!shape.is_number || shape.commas + shape.points == 0) {
    return;
  }
  if (shape.commas > 0 && shape.points > 0) {
    (shape.comma_last ? inverted_ : point_) = true;
    return;
  }
  const bool by_comma = shape.commas > 0;
  const std::size_t separators = shape.commas + shape.points;
  if (separators > 1) {  // several of one kind group thousands
    (by_comma ? point_ : inverted_) = true;
    return;
  }
  const bool percent = unit == "%" && shape.last_group == 2;
  if (shape.last_group == 3 && shape.groups_of_three && !percent) {
    unclear_ = true;
    return;
  }
  (by_comma ? inverted_ : point_) = true;  // not a group of thousands, so a decimal separator
}

NumberStyle::Kind NumberStyle::kind() const {
  if (point_ && inverted_) {
    return Kind::kMixed;
  }
  if (inverted_) {
    return Kind::kInverted;
  }
  return unclear_ && !point_ ? Kind::kAmbiguous : Kind::kPoint;
}

std::optional<double> ParseMetricNumber(std::string_view text, NumberStyle::Kind kind) {
  text = Trim(text);
  const bool inverted = kind == NumberStyle::Kind::kInverted;
  const char grouping = inverted ? '.' : ',';
  const Shape shape = ShapeOf(text);
  if (!shape.is_number) {  // exponents, and text
    double value = 0;
    if (!text.empty() && (IsDigit(text.front()) || text.front() == '-') &&
        ParseDouble(text, &value)) {
      return value;
    }
    return std::nullopt;
  }
  return ParseWithout(text, grouping, inverted ? ',' : '.');
}

bool IsMissingValue(std::string_view text) {
  text = Trim(text);
  if (text.starts_with("(!)")) {
    text = Trim(text.substr(3));
  }
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  constexpr std::array<std::string_view, 5> kForms = {"", "n/a", "nan", "-nan", "inf"};
  return std::ranges::find(kForms, lower) != kForms.end();
}

Metric InBaseUnit(double value, std::string_view unit) {
  struct Unit {
    std::string_view name;
    double factor;
    std::string_view base;
  };

  constexpr std::array<Unit, 33> kUnits = {{
      {"ns", 1, "ns"},
      {"nsecond", 1, "ns"},
      {"us", 1e3, "ns"},
      {"usecond", 1e3, "ns"},
      {"ms", 1e6, "ns"},
      {"msecond", 1e6, "ns"},
      {"s", 1e9, "ns"},
      {"second", 1e9, "ns"},
      {"byte", 1, "byte"},
      {"Kbyte", 1e3, "byte"},
      {"Mbyte", 1e6, "byte"},
      {"Gbyte", 1e9, "byte"},
      {"Tbyte", 1e12, "byte"},
      {"byte/s", 1, "byte/s"},
      {"byte/second", 1, "byte/s"},
      {"Kbyte/s", 1e3, "byte/s"},
      {"Kbyte/second", 1e3, "byte/s"},
      {"Mbyte/s", 1e6, "byte/s"},
      {"Mbyte/second", 1e6, "byte/s"},
      {"Gbyte/s", 1e9, "byte/s"},
      {"Gbyte/second", 1e9, "byte/s"},
      {"Tbyte/s", 1e12, "byte/s"},
      {"Tbyte/second", 1e12, "byte/s"},
      {"hz", 1, "hz"},
      {"Khz", 1e3, "hz"},
      {"Mhz", 1e6, "hz"},
      {"Ghz", 1e9, "hz"},
      {"cycle/second", 1, "hz"},
      {"cycle/usecond", 1e6, "hz"},
      {"cycle/nsecond", 1e9, "hz"},
      {"byte/block", 1, "byte/block"},
      {"Kbyte/block", 1e3, "byte/block"},
      {"Mbyte/block", 1e6, "byte/block"},
  }};
  const auto found = std::ranges::find(kUnits, unit, &Unit::name);
  if (found == kUnits.end()) {
    return {value, std::string(unit), Provenance::kMeasured};
  }
  return {value * found->factor, std::string(found->base), Provenance::kMeasured};
}

}  // namespace kernelpro
