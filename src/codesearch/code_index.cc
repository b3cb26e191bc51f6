// SPDX-License-Identifier: Apache-2.0
#include "codesearch/code_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "codesearch/source_tree.h"

namespace kernelpro::codesearch {
namespace {

constexpr std::size_t kLongestQuery = 1000;
constexpr std::size_t kMostHits = 1000;
constexpr std::size_t kLongestHit = 240;
constexpr std::size_t kLongestLine = 1000;
constexpr std::uint32_t kMostLines = 200;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return lower;
}

std::vector<std::string> Words(std::string_view query) {
  std::vector<std::string> words;
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  for (std::size_t at = query.find_first_not_of(kSpace); at != std::string_view::npos;
       at = query.find_first_not_of(kSpace, at)) {
    const std::size_t end = std::min(query.find_first_of(kSpace, at), query.size());
    words.push_back(Lower(query.substr(at, end - at)));
    at = end;
  }
  return words;
}

std::string_view WithoutReturn(std::string_view line) {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

/// One search over files that come in order.
class Finder {
 public:
  Finder(std::string_view query, std::size_t most)
      : query_(Trim(query)), words_(Words(query)), most_(most) {
    // The longest word first: it is likely the rarest.
    std::ranges::stable_sort(words_, std::ranges::greater{}, &std::string::size);
  }

  [[nodiscard]] bool empty() const { return words_.empty(); }

  /// No later file can change the result.
  [[nodiscard]] bool done() const { return whole_.size() == most_; }

  void Look(const std::string& path, std::string_view text) {
    const std::string lower = Lower(text);
    std::uint32_t line = 1;
    std::size_t counted = 0;
    for (std::size_t at = lower.find(words_[0]); at != std::string::npos && !done();) {
      const std::size_t begin = at == 0 ? 0 : lower.rfind('\n', at - 1) + 1;
      const std::size_t end = std::min(lower.find('\n', at), lower.size());
      line +=
          static_cast<std::uint32_t>(std::count(lower.begin() + static_cast<long>(counted),
                                                lower.begin() + static_cast<long>(begin), '\n'));
      counted = begin;
      const std::string_view low = std::string_view(lower).substr(begin, end - begin);
      if (std::ranges::all_of(words_, [&](const std::string& word) {
            return low.find(word) != std::string_view::npos;
          })) {
        Take(path, line, text.substr(begin, end - begin));
      }
      at = lower.find(words_[0], end);
    }
  }

  [[nodiscard]] std::vector<Hit> Take() && {
    for (Hit& hit : words_only_) {
      if (whole_.size() < most_) {
        whole_.push_back(std::move(hit));
      }
    }
    return std::move(whole_);
  }

 private:
  void Take(const std::string& path, std::uint32_t line, std::string_view text) {
    const bool whole = text.find(query_) != std::string_view::npos;
    std::vector<Hit>& hits = whole ? whole_ : words_only_;
    if (hits.size() < most_) {
      hits.push_back({path, line, Printable(WithoutReturn(text), kLongestHit)});
    }
  }

  std::string_view query_;
  std::vector<std::string> words_;
  std::size_t most_;
  std::vector<Hit> whole_, words_only_;
};

class FolderIndex : public CodeIndex {
 public:
  explicit FolderIndex(SourceTree tree) : tree_(std::move(tree)) {}

  [[nodiscard]] Result<std::vector<Hit>> Search(std::string_view query,
                                                std::size_t most) const override {
    Finder finder(query, std::min(most, kMostHits));
    if (finder.empty() || query.size() > kLongestQuery) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("a query has words, and at most {} bytes", kLongestQuery));
    }
    KP_ASSIGN_OR_RETURN(const std::vector<std::string> files, tree_.List());
    for (const std::string& path : files) {
      if (finder.done()) {
        break;
      }
      // One that is too large, binary, unreadable or gone by now is none of the index's.
      if (const Result<std::string> text = tree_.Read(path); text.ok()) {
        finder.Look(path, *text);
      }
    }
    return std::move(finder).Take();
  }

  [[nodiscard]] Result<std::string> Read(std::string_view path, std::uint32_t first,
                                         std::uint32_t last) const override {
    if (first == 0 || last < first) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("lines {} to {}: lines count from 1", first, last));
    }
    KP_ASSIGN_OR_RETURN(const std::string text, tree_.Read(path));
    const std::vector<std::string_view> lines = Lines(text);
    if (first > lines.size()) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} has {} lines", Printable(path, kLongestHit), lines.size()));
    }
    const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(last, lines.size()));
    const std::uint32_t shown = std::min(end - first + 1, kMostLines);
    std::string out;
    for (std::uint32_t i = first; i < first + shown; ++i) {
      out += fmt::format("{:>6}  {}\n", i, Printable(lines[i - 1], kLongestLine));
    }
    if (first + shown <= end) {
      out += fmt::format("[{} lines at a time; line {} is next]\n", kMostLines, first + shown);
    }
    return out;
  }

 private:
  SourceTree tree_;
};

}  // namespace

Result<std::unique_ptr<CodeIndex>> OpenFolder(const std::filesystem::path& root) {
  KP_ASSIGN_OR_RETURN(SourceTree tree, SourceTree::Open(root));
  // Now, not at the first search: a folder that is too large is the user's mistake.
  if (const auto files = tree.List(); !files.ok()) {
    return files.error();
  }
  return std::unique_ptr<CodeIndex>(std::make_unique<FolderIndex>(std::move(tree)));
}

}  // namespace kernelpro::codesearch
