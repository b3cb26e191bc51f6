// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernelpro/profile.h"

namespace kernelpro {

struct NumberShape;

/// How numbers are written in a file, learnt from all of them: Nsight Compute prints with the
/// separators of the user's locale.
class NumberStyle {
 public:
  enum class Kind : std::uint8_t {
    kPoint,      ///< 1,234.5 or 1234.5
    kInverted,   ///< 1.234,5
    kAmbiguous,  ///< only forms such as "117.344" that may be either
    kMixed,      ///< both conventions
  };

  void Observe(std::string_view value, std::string_view unit);

  /// Observe() and ParseMetricNumber() of one value at once, cheap for plain digits.
  [[nodiscard]] std::optional<double> Read(std::string_view value, std::string_view unit,
                                           Kind kind);
  [[nodiscard]] Kind kind() const;

 private:
  void Learn(const NumberShape& shape, std::string_view unit);

  bool point_ = false, inverted_ = false, unclear_ = false;
};

/// A finite number without a sign of doubt under `kind` (kPoint or kInverted); nothing for other
/// text.
[[nodiscard]] std::optional<double> ParseMetricNumber(std::string_view text,
                                                      NumberStyle::Kind kind);

/// True for "", "n/a", "nan", "inf" and their "(!) ..." forms: not collected.
[[nodiscard]] bool IsMissingValue(std::string_view text);

/// Units that Nsight Compute prints -> ns, byte, hz, byte/s, with the value scaled accordingly
/// (decimal prefixes); unknown units are kept as they are.
[[nodiscard]] Metric InBaseUnit(double value, std::string_view unit);

}  // namespace kernelpro
