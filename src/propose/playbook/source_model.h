// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "propose/playbook/ast.h"

namespace kernelpro::playbook {

/// One candidate, parsed: its text, its tokens and the tree of what the candidate itself wrote
/// (nothing of the headers). Immutable.
class SourceModel {
 public:
  SourceModel(std::string text, std::unique_ptr<Node> root, std::vector<Token> tokens);

  [[nodiscard]] const std::string& text() const { return text_; }

  [[nodiscard]] const Node& root() const { return *root_; }

  [[nodiscard]] const std::vector<Token>& tokens() const { return tokens_; }

  /// __global__ functions with a body.
  [[nodiscard]] const std::vector<const Node*>& kernels() const { return kernels_; }

  /// All kernel launches, or those of one kernel.
  [[nodiscard]] const std::vector<const Node*>& launches() const { return launches_; }

  [[nodiscard]] std::vector<const Node*> LaunchesOf(const Node& kernel) const;

  [[nodiscard]] std::string_view Text(const Node& node) const;
  [[nodiscard]] std::string_view Text(const Token& token) const;
  /// The text without blanks and comments: equal for expressions that differ in layout only.
  [[nodiscard]] std::string Normalized(const Node& node) const;

  /// Index of the first token at or after `offset`.
  [[nodiscard]] std::size_t TokenAt(std::uint32_t offset) const;
  /// Where a statement ends, its semicolon included.
  [[nodiscard]] std::uint32_t StatementEnd(const Node& statement) const;
  /// The blanks that a line starts with.
  [[nodiscard]] std::string IndentOf(std::uint32_t offset) const;
  /// An identifier starting with `wish` that the candidate does not use yet.
  [[nodiscard]] std::string FreshName(std::string_view wish) const;
  [[nodiscard]] bool UsesIdentifier(std::string_view name) const;

 private:
  std::string text_;
  std::unique_ptr<Node> root_;
  std::vector<Token> tokens_;
  std::vector<const Node*> kernels_;
  std::vector<const Node*> launches_;
};

}  // namespace kernelpro::playbook
