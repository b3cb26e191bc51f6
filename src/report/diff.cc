// SPDX-License-Identifier: Apache-2.0
#include "report/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/text.h"

namespace kernelpro::report {
namespace {

using TextLines = std::vector<std::string_view>;

struct Edit {
  char kind = ' ';  ///< ' ' kept, '-' removed, '+' added
  std::string_view line;
};

/// Longest common subsequence by dynamic programming. Kernels have hundreds of lines, so the table
/// stays small; beyond the limit the whole text is replaced.
constexpr std::size_t kMostCells = 25'000'000;

std::vector<Edit> ReplaceAll(const TextLines& a, const TextLines& b) {
  std::vector<Edit> edits;
  for (const std::string_view line : a) {
    edits.push_back({'-', line});
  }
  for (const std::string_view line : b) {
    edits.push_back({'+', line});
  }
  return edits;
}

std::vector<Edit> Edits(const TextLines& a, const TextLines& b) {
  const std::size_t width = b.size() + 1;
  if ((a.size() + 1) * width > kMostCells) {
    return ReplaceAll(a, b);
  }
  std::vector<std::uint32_t> common((a.size() + 1) * width, 0);
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;) {
      common[i * width + j] =
          a[i] == b[j] ? common[(i + 1) * width + j + 1] + 1
                       : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  std::vector<Edit> edits;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      edits.push_back({' ', a[i]});
      ++i;
      ++j;
    } else if (j == b.size() ||
               (i < a.size() && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      edits.push_back({'-', a[i++]});
    } else {
      edits.push_back({'+', b[j++]});
    }
  }
  return edits;
}

/// [begin, end) of the edits that one hunk shows.
struct Hunk {
  std::size_t begin = 0, end = 0;
};

std::vector<Hunk> Hunks(const std::vector<Edit>& edits) {
  constexpr std::size_t kContext = 3;
  std::vector<Hunk> hunks;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    if (edits[i].kind == ' ') {
      continue;
    }
    const std::size_t begin = i >= kContext ? i - kContext : 0;
    const std::size_t end = std::min(edits.size(), i + kContext + 1);
    if (!hunks.empty() && begin <= hunks.back().end) {
      hunks.back().end = end;
    } else {
      hunks.push_back({begin, end});
    }
  }
  return hunks;
}

}  // namespace

std::string UnifiedDiff(std::string_view before, std::string_view after,
                        std::string_view before_label, std::string_view after_label) {
  const std::vector<Edit> edits = Edits(Lines(before), Lines(after));
  const std::vector<Hunk> hunks = Hunks(edits);
  if (hunks.empty()) {
    return {};
  }
  std::string text = fmt::format("--- {}\n+++ {}\n", before_label, after_label);
  std::size_t old_line = 1;
  std::size_t new_line = 1;
  std::size_t next = 0;
  const auto advance = [&](std::size_t to) {
    for (; next < to; ++next) {
      old_line += edits[next].kind == '+' ? 0 : 1;
      new_line += edits[next].kind == '-' ? 0 : 1;
    }
  };
  for (const Hunk& hunk : hunks) {
    advance(hunk.begin);
    const std::size_t old_begin = old_line;
    const std::size_t new_begin = new_line;
    advance(hunk.end);
    text += fmt::format("@@ -{},{} +{},{} @@\n", old_begin, old_line - old_begin, new_begin,
                        new_line - new_begin);
    for (std::size_t i = hunk.begin; i < hunk.end; ++i) {
      text += edits[i].kind;
      text += edits[i].line;
      text += '\n';
    }
  }
  return text;
}

}  // namespace kernelpro::report
