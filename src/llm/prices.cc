// SPDX-License-Identifier: Apache-2.0
#include "llm/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "llm/price_data.h"
#include "task/toml.h"
#include "task/toml_table.h"

namespace kernelpro::llm {
namespace {

constexpr double kPerToken = 1e-6;
constexpr std::string_view kProviders[] = {"openai", "anthropic"};

Result<Price> ReadPrice(const TomlTable& table) {
  Price price;
  KP_ASSIGN_OR_RETURN(price.input, table.Number("input"));
  KP_ASSIGN_OR_RETURN(price.output, table.Number("output"));
  KP_ASSIGN_OR_RETURN(price.cache_read, table.Number("cache_read", price.input));
  KP_ASSIGN_OR_RETURN(price.cache_write, table.Number("cache_write", price.input));
  for (const double figure : {price.input, price.output, price.cache_read, price.cache_write}) {
    if (!std::isfinite(figure) || figure < 0) {
      return table.At(table.line(), "a price must be a number of dollars, 0 or more");
    }
  }
  return price;
}

}  // namespace

double Cost(const Price& price, const Usage& usage) {
  // A server whose parts are more than its whole is charged for the parts.
  const auto read = static_cast<double>(usage.cache_read);
  const auto written = static_cast<double>(usage.cache_write);
  const double plain = std::max(0.0, static_cast<double>(usage.input) - read - written);
  return kPerToken * (plain * price.input + read * price.cache_read + written * price.cache_write +
                      static_cast<double>(usage.output) * price.output);
}

Result<PriceTable> PriceTable::BuiltIn() {
  return Parse(EmbeddedPrices(), "prices.toml");
}

Result<PriceTable> PriceTable::Parse(std::string_view toml, std::string_view shown_path) {
  const TomlSource source(toml, shown_path);
  KP_ASSIGN_OR_RETURN(const TomlNode root, ParseToml(toml, source));
  KP_ASSIGN_OR_RETURN(const TomlTable top,
                      TomlTable::Open(root, source, "a price file", {"as_of", "model"}));
  PriceTable table;
  KP_ASSIGN_OR_RETURN(table.as_of_, top.Text("as_of", ""));
  KP_ASSIGN_OR_RETURN(const TomlNode* models, top.Required("model"));
  KP_RETURN_IF_ERROR(top.Expect(*models, "model", TomlNode::Kind::kArray));
  for (const TomlNode& node : models->items) {
    KP_ASSIGN_OR_RETURN(
        const TomlTable entry,
        TomlTable::Open(node, source, "[[model]]",
                        {"provider", "name", "input", "output", "cache_read", "cache_write"}));
    Entry made;
    KP_ASSIGN_OR_RETURN(made.provider, entry.Word("provider", kProviders));
    KP_ASSIGN_OR_RETURN(made.model, entry.Text("name"));
    KP_ASSIGN_OR_RETURN(made.price, ReadPrice(entry));
    table.entries_.push_back(std::move(made));
  }
  return table;
}

std::optional<Price> PriceTable::Find(std::string_view provider, std::string_view model) const {
  std::optional<Price> best;
  std::size_t best_length = 0;
  for (const Entry& entry : entries_) {
    const std::string_view name = entry.model;
    const bool prefix = name.ends_with('*');
    const bool fits = prefix ? model.starts_with(name.substr(0, name.size() - 1)) : model == name;
    // A whole name beats every prefix. Of equals the first wins: the user's file stands first.
    const std::size_t length = prefix ? name.size() : name.size() + 2;
    if (entry.provider == provider && fits && length > best_length) {
      best = entry.price;
      best_length = length;
    }
  }
  return best;
}

void PriceTable::Prefer(PriceTable other) {
  entries_.insert(entries_.begin(), std::make_move_iterator(other.entries_.begin()),
                  std::make_move_iterator(other.entries_.end()));
  if (!other.as_of_.empty()) {
    as_of_ = std::move(other.as_of_);
  }
}

}  // namespace kernelpro::llm
