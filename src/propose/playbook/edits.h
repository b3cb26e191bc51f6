// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "propose/playbook/source_model.h"

namespace kernelpro::playbook {

/// Replacements on byte ranges of one text; everything else of the user's text stays as it is.
class Edits {
 public:
  void Replace(std::uint32_t begin, std::uint32_t end, std::string text) {
    edits_.push_back({begin, end, std::move(text)});
  }

  void Replace(const Node& node, std::string text) {
    Replace(node.begin, node.end, std::move(text));
  }

  /// Insertions at one place keep the order in which they were made.
  void Insert(std::uint32_t at, std::string text) { Replace(at, at, std::move(text)); }

  [[nodiscard]] bool empty() const { return edits_.empty(); }

  /// The edited text. Ranges must not overlap (KP_CHECK).
  [[nodiscard]] std::string Apply(std::string_view text) const;
  /// The edited part [begin, end) of the text; edits outside it are left out.
  [[nodiscard]] std::string ApplyWithin(std::string_view text, std::uint32_t begin,
                                        std::uint32_t end) const;

 private:
  struct Edit {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::string text;
  };

  std::vector<Edit> edits_;
};

/// The text of `node` with every reference to `variable` replaced.
[[nodiscard]] std::string Substituted(const SourceModel& model, const Node& node,
                                      const Node& variable, std::string_view replacement);

/// The text, in parentheses unless it is a single word, a literal, a call or already enclosed.
[[nodiscard]] std::string Parenthesized(std::string_view text);

/// Adds `indent` in front of every line but the first.
[[nodiscard]] std::string Indented(std::string_view text, std::string_view indent);

}  // namespace kernelpro::playbook
