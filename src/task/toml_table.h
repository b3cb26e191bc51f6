// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "task/toml.h"

namespace kernelpro {

/// Typed access to one table of a document; every Error names the line and what is allowed there.
/// A view: the node and the source outlive it.
class TomlTable {
 public:
  /// kInvalidArgument when `node` is not a table or has a key that is not in `keys`.
  [[nodiscard]] static Result<TomlTable> Open(const TomlNode& node, const TomlSource& source,
                                              std::string_view where,
                                              std::initializer_list<std::string_view> keys);

  [[nodiscard]] const TomlNode* Find(std::string_view key) const { return node_->Find(key); }

  [[nodiscard]] std::uint32_t line() const { return node_->line; }

  [[nodiscard]] Error At(std::uint32_t line, std::string_view what,
                         std::string_view allowed = {}) const {
    return source_->At(ErrorCode::kInvalidArgument, line, what, allowed);
  }

  /// Required ones fail when the key is missing, the others give the default.
  [[nodiscard]] Result<const TomlNode*> Required(std::string_view key) const;
  [[nodiscard]] Result<std::string> Text(std::string_view key) const;
  [[nodiscard]] Result<std::string> Text(std::string_view key, std::string_view fallback) const;
  [[nodiscard]] Result<double> Number(std::string_view key) const;
  [[nodiscard]] Result<double> Number(std::string_view key, double fallback) const;
  /// One of `words`.
  [[nodiscard]] Result<std::string> Word(std::string_view key,
                                         std::span<const std::string_view> words) const;
  /// An array of strings; each element keeps its line.
  [[nodiscard]] Result<std::vector<const TomlNode*>> TextList(std::string_view key) const;
  /// The kind that a value must have.
  [[nodiscard]] Status Expect(const TomlNode& node, std::string_view key,
                              TomlNode::Kind kind) const;

 private:
  TomlTable(const TomlNode& node, const TomlSource& source, std::string_view where)
      : node_(&node), source_(&source), where_(where) {}

  const TomlNode* node_;
  const TomlSource* source_;
  std::string where_;
};

}  // namespace kernelpro
