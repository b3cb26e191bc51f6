// SPDX-License-Identifier: Apache-2.0
#include "task/toml_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace kernelpro {

Result<TomlTable> TomlTable::Open(const TomlNode& node, const TomlSource& source,
                                  std::string_view where,
                                  std::initializer_list<std::string_view> keys) {
  TomlTable table(node, source, where);
  if (node.kind != TomlNode::Kind::kTable) {
    return table.At(node.line,
                    fmt::format("{} must be a table, it is {}", where, Describe(node.kind)),
                    fmt::format("with the keys: {}", fmt::join(keys, ", ")));
  }
  for (const TomlNode& member : node.items) {
    if (std::ranges::find(keys, member.key) == keys.end()) {
      return table.At(member.line,
                      fmt::format("unknown key \"{}\" in {}", Printable(member.key, 64), where),
                      fmt::format("allowed here: {}", fmt::join(keys, ", ")));
    }
  }
  return table;
}

Status TomlTable::Expect(const TomlNode& node, std::string_view key, TomlNode::Kind kind) const {
  const bool whole_for_real =
      kind == TomlNode::Kind::kFloat && node.kind == TomlNode::Kind::kInteger;
  if (node.kind != kind && !whole_for_real) {
    return At(node.line, fmt::format("\"{}\" of {} must be {}, it is {}", key, where_,
                                     Describe(kind), Describe(node.kind)));
  }
  return Ok();
}

Result<const TomlNode*> TomlTable::Required(std::string_view key) const {
  const TomlNode* node = Find(key);
  if (node == nullptr) {
    return At(line(), fmt::format("\"{}\" is missing in {}", key, where_));
  }
  return node;
}

Result<std::string> TomlTable::Text(std::string_view key) const {
  KP_ASSIGN_OR_RETURN(const TomlNode* node, Required(key));
  KP_RETURN_IF_ERROR(Expect(*node, key, TomlNode::Kind::kString));
  return node->text;
}

Result<std::string> TomlTable::Text(std::string_view key, std::string_view fallback) const {
  return Find(key) == nullptr ? Result<std::string>(std::string(fallback)) : Text(key);
}

Result<double> TomlTable::Number(std::string_view key) const {
  KP_ASSIGN_OR_RETURN(const TomlNode* node, Required(key));
  KP_RETURN_IF_ERROR(Expect(*node, key, TomlNode::Kind::kFloat));
  if (!std::isfinite(node->number)) {
    return At(node->line, fmt::format("\"{}\" of {} must be a finite number", key, where_));
  }
  return node->number;
}

Result<double> TomlTable::Number(std::string_view key, double fallback) const {
  return Find(key) == nullptr ? Result<double>(fallback) : Number(key);
}

Result<std::string> TomlTable::Word(std::string_view key,
                                    std::span<const std::string_view> words) const {
  KP_ASSIGN_OR_RETURN(std::string text, Text(key));
  if (std::ranges::find(words, text) == words.end()) {
    return At(Find(key)->line,
              fmt::format("\"{}\" of {}: \"{}\" is unknown", key, where_, Printable(text, 64)),
              fmt::format("allowed: {}", fmt::join(words, ", ")));
  }
  return text;
}

Result<std::vector<const TomlNode*>> TomlTable::TextList(std::string_view key) const {
  KP_ASSIGN_OR_RETURN(const TomlNode* node, Required(key));
  KP_RETURN_IF_ERROR(Expect(*node, key, TomlNode::Kind::kArray));
  std::vector<const TomlNode*> items;
  for (const TomlNode& item : node->items) {
    if (item.kind != TomlNode::Kind::kString) {
      return At(item.line, fmt::format("\"{}\" of {} must hold strings, this is {}", key, where_,
                                       Describe(item.kind)));
    }
    items.push_back(&item);
  }
  return items;
}

}  // namespace kernelpro
