// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/chat.h"

namespace kernelpro::llm {

/// Dollars per million tokens.
struct Price {
  double input = 0;
  double cache_read = 0;
  double cache_write = 0;
  double output = 0;
};

[[nodiscard]] double Cost(const Price& price, const Usage& usage);

/// Prices by model, from src/llm/prices.toml (embedded) or a file of the user's in the same form,
/// which is looked at first. A name ending in '*' matches a prefix; the longest match wins.
class PriceTable {
 public:
  [[nodiscard]] static Result<PriceTable> BuiltIn();
  /// kParse, kInvalidArgument with file and line.
  [[nodiscard]] static Result<PriceTable> Parse(std::string_view toml, std::string_view shown_path);

  /// `provider` is "openai" or "anthropic". Nothing when the model is not in the table.
  [[nodiscard]] std::optional<Price> Find(std::string_view provider, std::string_view model) const;
  /// Entries of `other` come before ours.
  void Prefer(PriceTable other);

  /// The day the figures were looked up, ISO 8601; empty when the file does not say.
  [[nodiscard]] const std::string& as_of() const { return as_of_; }

 private:
  struct Entry {
    std::string provider, model;
    Price price;
  };

  std::vector<Entry> entries_;
  std::string as_of_;
};

}  // namespace kernelpro::llm
