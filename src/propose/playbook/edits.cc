// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/edits.h"

#include <algorithm>
#include <cctype>

#include "base/check.h"

namespace kernelpro::playbook {
namespace {

/// "(a) + (b)" starts and ends with parentheses and is not enclosed.
bool Enclosed(std::string_view text) {
  if (text.empty() || text.front() != '(') {
    return false;
  }
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : 0;
    depth -= text[i] == ')' ? 1 : 0;
    if (depth == 0) {
      return i + 1 == text.size();
    }
  }
  return false;
}

}  // namespace

std::string Edits::Apply(std::string_view text) const {
  return ApplyWithin(text, 0, static_cast<std::uint32_t>(text.size()));
}

std::string Edits::ApplyWithin(std::string_view text, std::uint32_t begin,
                               std::uint32_t end) const {
  std::vector<Edit> sorted;
  for (const Edit& edit : edits_) {
    if (edit.begin >= begin && edit.end <= end) {
      sorted.push_back(edit);
    }
  }
  std::ranges::stable_sort(sorted, [](const Edit& a, const Edit& b) {
    return a.begin < b.begin || (a.begin == b.begin && a.end < b.end);
  });
  std::string result;
  std::uint32_t at = begin;
  for (const Edit& edit : sorted) {
    KP_CHECK(edit.begin >= at) << "overlapping edits at byte " << edit.begin;
    result += text.substr(at, edit.begin - at);
    result += edit.text;
    at = edit.end;
  }
  result += text.substr(at, end - at);
  return result;
}

std::string Substituted(const SourceModel& model, const Node& node, const Node& variable,
                        std::string_view replacement) {
  Edits edits;
  Walk(node, [&](const Node& n) {
    if (n.Is(NodeKind::kReference) && n.decl == &variable) {
      edits.Replace(n, std::string(replacement));
    }
    return true;
  });
  return edits.ApplyWithin(model.text(), node.begin, node.end);
}

std::string Parenthesized(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ':';
  });
  if (plain || Enclosed(text)) {
    return std::string(text);
  }
  return "(" + std::string(text) + ")";
}

std::string Indented(std::string_view text, std::string_view indent) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') {
      result += indent;
    }
  }
  return result;
}

}  // namespace kernelpro::playbook
