// SPDX-License-Identifier: Apache-2.0
#include "profile/nsys_table.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "profile/csv_table.h"
#include "profile/ruler.h"

namespace kernelpro {
namespace {

/// Lines of other programs may be long; titles are not.
constexpr std::size_t kLongestTitles = 1000;

bool SameTitle(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

/// "Total Time (ns)" -> {"Total Time", "ns"}; "Time(%)" -> {"Time", "%"}.
NsysTable::Column ParseTitle(std::string_view cell) {
  cell = Trim(cell);
  const std::size_t open = cell.rfind('(');
  if (open == std::string_view::npos || open == 0 || !cell.ends_with(')')) {
    return {std::string(cell), {}};
  }
  return {std::string(Trim(cell.substr(0, open))),
          std::string(Trim(cell.substr(open + 1, cell.size() - open - 2)))};
}

template <class Cells>
std::vector<NsysTable::Column> ParseTitles(const Cells& cells) {
  std::vector<NsysTable::Column> columns;
  for (const auto& cell : cells) {
    columns.push_back(ParseTitle(cell));
  }
  return columns;
}

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/// The report that a line announces:
///   [6/8] Executing 'cuda_gpu_kern_sum' stats report
///   Processing [x.sqlite] with [/opt/.../reports/cuda_gpu_kern_sum.py]...
///   Running [/opt/.../reports/gpukernsum.py x.sqlite]...
///    ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):
std::optional<std::string> Announced(std::string_view line) {
  for (const auto& [before, after] :
       {std::pair<std::string_view, std::string_view>{"Executing '", "' stats report"},
        {"reports/", ".py"},
        {"(", "):"}}) {
    const std::size_t end = line.rfind(after);
    const std::size_t begin = end == std::string_view::npos ? end : line.rfind(before, end);
    if (begin == std::string_view::npos || (after == "):" && !line.starts_with(" ** "))) {
      continue;
    }
    const std::string_view name = line.substr(begin + before.size(), end - begin - before.size());
    if (!name.empty() && std::ranges::all_of(name, IsWord)) {
      return std::string(name);
    }
  }
  return std::nullopt;
}

/// The titles of a CSV table: the first cell is one that nsys begins its tables with.
std::optional<std::vector<NsysTable::Column>> CsvTitles(std::string_view line) {
  constexpr std::string_view kFirst[] = {"Time(%)", "Time (%)", "Start",  "\"Time",
                                         "\"Start", "Total (",  "Total,", "\"Total"};
  if (line.size() > kLongestTitles ||
      std::ranges::none_of(kFirst, [line](std::string_view s) { return line.starts_with(s); })) {
    return std::nullopt;
  }
  const auto fields = ParseCsvLine(line);
  if (!fields || fields->size() < 3) {
    return std::nullopt;
  }
  return ParseTitles(*fields);
}

std::size_t EmptyCells(const std::vector<std::string_view>& cells) {
  return static_cast<std::size_t>(std::ranges::count_if(cells, &std::string_view::empty));
}

class Finder {
 public:
  void Line(std::string_view line) {
    ++number_;
    if (Trim(line).empty()) {
      inside_ = false;
    } else if (auto report = Announced(line)) {
      report_ = *std::move(report);
      inside_ = false;
    } else if (auto ruler = Ruler::Parse(line); ruler && ruler->size() >= 3) {
      StartColumns(*std::move(ruler));
    } else if (auto titles = CsvTitles(line)) {
      Start(*std::move(titles), number_);
      ruler_.reset();
    } else if (inside_) {
      Row(line);
    }
    previous_ = line;
  }

  std::vector<NsysTable> tables;

 private:
  void Start(std::vector<NsysTable::Column> columns, std::size_t line) {
    tables.push_back({report_, line, std::move(columns), {}});
    inside_ = true;
  }

  void StartColumns(Ruler ruler) {
    const auto titles = ruler.Cells(previous_.size() <= kLongestTitles ? previous_ : "");
    inside_ = titles && std::ranges::none_of(*titles, &std::string_view::empty);
    if (inside_) {
      Start(ParseTitles(*titles), number_ - 1);
      ruler_ = std::move(ruler);
    }
  }

  void Row(std::string_view line) {
    NsysTable& table = tables.back();
    if (ruler_) {
      const auto cells = ruler_->Cells(line);
      // Copies in a trace have no shape, but most of the rest.
      if (cells && 3 * (cells->size() - EmptyCells(*cells)) >= cells->size()) {
        table.rows.emplace_back(cells->begin(), cells->end());
      }
      return;
    }
    auto fields = ParseCsvLine(line);
    if (fields && fields->size() == table.columns.size()) {
      table.rows.push_back(*std::move(fields));
    }
  }

  std::size_t number_ = 0;
  std::string report_;
  std::string_view previous_;
  bool inside_ = false;
  std::optional<Ruler> ruler_;  ///< of the table at hand; unset: it is CSV
};

}  // namespace

std::optional<std::size_t> NsysTable::Find(std::string_view title) const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (SameTitle(columns[i].title, title)) {
      return i;
    }
  }
  return std::nullopt;
}

NsysTableKind KindOfTable(const NsysTable& t) {
  const bool total = t.Find("Total Time") && t.Find("Time");
  if (t.Find("Start") && t.Find("Duration") && t.Find("Name")) {
    if (t.Find("GrdX")) {
      return NsysTableKind::kGpuTrace;
    }
    return t.Find("Result") ? NsysTableKind::kCallTrace : NsysTableKind::kOther;
  }
  if (total && t.Find("Instances") && t.Find("Name") && !t.Find("Source") && !t.Find("Range")) {
    return t.report.empty() || t.report.find("kern") != std::string::npos ? NsysTableKind::kKernels
                                                                          : NsysTableKind::kOther;
  }
  if (total && (t.Find("Num Calls") || t.Find("Calls")) && t.Find("Name")) {
    return NsysTableKind::kCalls;
  }
  const bool counted = t.Find("Count") || t.Find("Operations");
  if (counted && (t.Find("Operation") || t.Find("Name"))) {  // "Name" in 2020
    if (total) {
      return NsysTableKind::kCopyTimes;
    }
    return t.Find("Total") ? NsysTableKind::kCopySizes : NsysTableKind::kOther;
  }
  return NsysTableKind::kOther;
}

std::vector<NsysTable> FindNsysTables(std::string_view text) {
  Finder finder;
  for (const std::string_view line : Lines(text)) {
    finder.Line(line);
  }
  return std::move(finder.tables);
}

}  // namespace kernelpro
