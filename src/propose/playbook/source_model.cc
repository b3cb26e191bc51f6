// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/source_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpro::playbook {

SourceModel::SourceModel(std::string text, std::unique_ptr<Node> root, std::vector<Token> tokens)
    : text_(std::move(text)), root_(std::move(root)), tokens_(std::move(tokens)) {
  for (const Node* function : FindAll(*root_, NodeKind::kFunction)) {
    if (function->is_kernel && Body(*function) != nullptr) {
      kernels_.push_back(function);
    }
  }
  launches_ = FindAll(*root_, NodeKind::kLaunch);
}

std::vector<const Node*> SourceModel::LaunchesOf(const Node& kernel) const {
  std::vector<const Node*> found;
  for (const Node* launch : launches_) {
    if (launch->name == kernel.name) {
      found.push_back(launch);
    }
  }
  return found;
}

std::string_view SourceModel::Text(const Node& node) const {
  return std::string_view(text_).substr(node.begin, node.end - node.begin);
}

std::string_view SourceModel::Text(const Token& token) const {
  return std::string_view(text_).substr(token.begin, token.end - token.begin);
}

std::string SourceModel::Normalized(const Node& node) const {
  std::string result;
  bool after_word = false;
  for (std::size_t i = TokenAt(node.begin); i < tokens_.size() && tokens_[i].end <= node.end; ++i) {
    const Token& token = tokens_[i];
    if (token.kind == Token::Kind::kComment) {
      continue;
    }
    const bool word = token.kind != Token::Kind::kPunctuation;
    if (word && after_word) {
      result += ' ';
    }
    result += Text(token);
    after_word = word;
  }
  return result;
}

std::size_t SourceModel::TokenAt(std::uint32_t offset) const {
  const auto found = std::lower_bound(
      tokens_.begin(), tokens_.end(), offset,
      [](const Token& token, std::uint32_t wanted) { return token.begin < wanted; });
  return static_cast<std::size_t>(found - tokens_.begin());
}

std::uint32_t SourceModel::StatementEnd(const Node& statement) const {
  for (std::size_t i = TokenAt(statement.end); i < tokens_.size(); ++i) {
    if (tokens_[i].kind == Token::Kind::kComment) {
      continue;
    }
    return Text(tokens_[i]) == ";" ? tokens_[i].end : statement.end;
  }
  return statement.end;
}

std::string SourceModel::IndentOf(std::uint32_t offset) const {
  const std::size_t newline = offset == 0 ? std::string::npos : text_.rfind('\n', offset - 1);
  const std::size_t start = newline == std::string::npos ? 0 : newline + 1;
  std::size_t stop = start;
  while (stop < text_.size() && (text_[stop] == ' ' || text_[stop] == '\t')) {
    ++stop;
  }
  return text_.substr(start, stop - start);
}

bool SourceModel::UsesIdentifier(std::string_view name) const {
  return std::any_of(tokens_.begin(), tokens_.end(), [&](const Token& token) {
    return token.kind == Token::Kind::kIdentifier && Text(token) == name;
  });
}

std::string SourceModel::FreshName(std::string_view wish) const {
  std::string name(wish);
  for (int i = 2; UsesIdentifier(name); ++i) {
    name = fmt::format("{}_{}", wish, i);
  }
  return name;
}

}  // namespace kernelpro::playbook
