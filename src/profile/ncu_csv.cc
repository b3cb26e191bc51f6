// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "base/text.h"
#include "kernelpro/profile.h"
#include "profile/csv_table.h"
#include "profile/demangle.h"
#include "profile/dimension.h"
#include "profile/display_names.h"
#include "profile/metric_names.h"
#include "profile/metric_number.h"
#include "profile/metric_series.h"
#include "profile/ncu_log.h"

namespace kernelpro {
namespace {

/// A value may take 2 bytes of a file and 250 in a Profile.
constexpr std::size_t kMostValues = 20'000'000;

using Fields = std::vector<std::string_view>;

struct Columns {
  std::optional<std::size_t> process, kernel, grid, block, cc, section, name, unit, value, rule;
  /// WIDE: the metric columns begin here, behind the launch's own.
  std::size_t first_metric = 0;
};

std::string_view Field(const Fields& row, std::optional<std::size_t> column) {
  return column && *column < row.size() ? row[*column] : std::string_view();
}

/// Trim() for text that mostly has no blanks around it.
std::string_view Bare(std::string_view text) {
  return text.empty() || (text.front() > ' ' && text.back() > ' ') ? text : Trim(text);
}

/// One pass over a log under one number style. A log may hold several tables, one after the other.
class Reader {
 public:
  Reader(std::string_view text, const std::string& label, NumberStyle::Kind style)
      : scanner_(text, label), label_(label), kind_(style) {}

  /// False: the log holds no table.
  Result<bool> Read() {
    if (!scanner_.FindHeader()) {
      return false;
    }
    Fields row;
    while (true) {
      KP_ASSIGN_OR_RETURN(const bool more, scanner_.Next(row));
      if (!more) {
        break;
      }
      if (row[0] == "ID" && row.size() > 1) {
        KP_RETURN_IF_ERROR(StartTable(row));
      } else {
        KP_RETURN_IF_ERROR(ReadRow(row));
      }
      if (values_ > kMostValues) {
        return Fail(ErrorCode::kParse,
                    fmt::format("{}:{}: more than {} values; profile fewer launches or metrics",
                                label_, scanner_.LineOf(scanner_.row_offset()), kMostValues));
      }
    }
    EndLaunch();
    if (profile_.kernels.empty()) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}:{}: the table has a header and no kernels; check the kernel "
                              "filter of the ncu command",
                              label_, scanner_.LineOf(table_offset_)));
    }
    return true;
  }

  /// How the numbers that were read are written.
  [[nodiscard]] NumberStyle::Kind style() const { return style_.kind(); }

  [[nodiscard]] Error AmbiguousNumbers() const {
    return Fail(
        ErrorCode::kParse,
        fmt::format("{}:{}: the numbers may mean two things ({}); print them again with "
                    "LC_ALL=C ncu --csv --print-units base",
                    label_, scanner_.LineOf(table_offset_),
                    style() == NumberStyle::Kind::kMixed ? "\"1,5\" and \"1.5\" both occur"
                                                         : "is \"117.344\" 117 or 117344?"));
  }

  Profile Finish() {
    double total = 0;
    for (KernelProfile& kernel : profile_.kernels) {
      kernel.time_us = kernel.Value(metric::kDuration).value_or(0) * 1e-3;
      total += kernel.time_us;
    }
    for (std::size_t i = 0; i < profile_.kernels.size(); ++i) {
      KernelProfile& kernel = profile_.kernels[i];
      kernel.time_share = total > 0 ? kernel.time_us / total : 1;
      if (rules_[i] > 0) {
        kernel.texts["ncu.rules"] = std::to_string(rules_[i]);
      }
    }
    profile_.source = label_;
    return std::move(profile_);
  }

 private:
  [[nodiscard]] bool Long() const { return columns_.name.has_value(); }

  Status StartTable(const Fields& header) {
    EndLaunch();
    table_offset_ = scanner_.row_offset();
    header_.assign(header.begin(), header.end());
    units_.clear();
    column_series_.clear();
    by_id_.clear();
    const auto column = [&](std::string_view name) -> std::optional<std::size_t> {
      const auto found = std::ranges::find(header_, name);
      return found == header_.end()
                 ? std::nullopt
                 : std::optional(static_cast<std::size_t>(found - header_.begin()));
    };
    columns_ = {column("Process ID"),
                column("Kernel Name"),
                column("Grid Size"),
                column("Block Size"),
                column("CC"),
                column("Section Name"),
                column("Metric Name"),
                column("Metric Unit"),
                column("Metric Value"),
                column("Rule Name"),
                0};
    if (!columns_.kernel) {
      return Fail(ErrorCode::kParse,
                  fmt::format("{}:{}: no column \"Kernel Name\"; this is not a table of "
                              "Nsight Compute's --csv",
                              label_, scanner_.LineOf(table_offset_)));
    }
    if (Long() && !columns_.value) {
      return Fail(ErrorCode::kParse, fmt::format("{}:{}: \"Metric Name\" without \"Metric Value\"",
                                                 label_, scanner_.LineOf(table_offset_)));
    }
    for (const std::string_view name :
         {"ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context",
          "Stream", "Block Size", "Grid Size", "Device", "CC"}) {
      columns_.first_metric = std::max(columns_.first_metric, column(name).value_or(0) + 1);
    }
    return Ok();
  }

  Status ReadRow(const Fields& row) {
    if (!Long() && Bare(row[0]).empty()) {
      return ReadUnits(row);
    }
    if (!GoToLaunch(row)) {
      return Ok();  // another program's output that begins with a quote
    }
    if (!Long()) {
      if (column_series_.empty()) {
        FindColumnSeries();
      }
      const std::size_t end = std::min(row.size(), header_.size());
      for (std::size_t i = columns_.first_metric; i < end; ++i) {
        Add(column_series_[i - columns_.first_metric], row[i]);
      }
      return Ok();
    }
    const std::string_view name = Bare(Field(row, columns_.name));
    if (name.empty()) {
      rules_[launch_] += Field(row, columns_.rule).empty() ? 0 : 1;
    } else {
      Add(series_.Find(Field(row, columns_.section), name, Bare(Field(row, columns_.unit))),
          Field(row, columns_.value));
    }
    return Ok();
  }

  void FindColumnSeries() {
    for (std::size_t i = columns_.first_metric; i < header_.size(); ++i) {
      column_series_.push_back(
          series_.Find("", Trim(header_[i]), i < units_.size() ? units_[i] : std::string_view()));
    }
  }

  /// The first row without an ID.
  Status ReadUnits(const Fields& row) {
    if (!units_.empty() || row.size() <= columns_.first_metric) {
      return Ok();
    }
    if (!by_id_.empty()) {
      return Fail(ErrorCode::kParse,
                  fmt::format("{}:{}: the row of units stands behind values; was the table sorted? "
                              "Print it again with ncu --csv --page raw",
                              label_, scanner_.LineOf(scanner_.row_offset())));
    }
    for (const std::string_view unit : row) {
      units_.emplace_back(Trim(unit));
    }
    return Ok();
  }

  /// Makes the row's launch the current one; false when the row is no launch's.
  bool GoToLaunch(const Fields& row) {
    const std::string_view process = Field(row, columns_.process);
    if (!by_id_.empty() && row[0] == id_ && process == process_) {
      return true;
    }
    long long id = 0;
    if (!ParseInteger(Trim(row[0]), &id)) {
      return false;
    }
    EndLaunch();
    id_ = row[0];
    process_ = process;
    const auto [found, is_new] =
        by_id_.try_emplace(std::pair(std::string(process), id), profile_.kernels.size());
    launch_ = found->second;
    if (is_new) {
      AddLaunch(row);
    }
    return true;
  }

  void AddLaunch(const Fields& row) {
    KernelProfile kernel;
    kernel.mangled = Printable(Field(row, columns_.kernel), 2000);
    kernel.name = ReadableName(Field(row, columns_.kernel));
    kernel.time_provenance = Provenance::kMeasured;
    ParseDimension(Field(row, columns_.grid), kernel.grid);
    ParseDimension(Field(row, columns_.block), kernel.block);
    if (profile_.device.empty() && !Field(row, columns_.cc).empty()) {
      profile_.device =
          fmt::format("GPU of compute capability {}", Printable(Field(row, columns_.cc), 20));
    }
    profile_.kernels.push_back(std::move(kernel));
    rules_.push_back(0);
  }

  void EndLaunch() {
    if (!profile_.kernels.empty()) {
      pending_.MoveInto(profile_.kernels[launch_].metrics, series_);
    }
  }

  void Add(std::size_t series, std::string_view printed) {
    ++values_;
    const std::string_view text = Bare(printed);
    KernelProfile& kernel = profile_.kernels[launch_];
    const MetricSeries& of = series_[series];
    const bool digit = !text.empty() && text.front() >= '0' && text.front() <= '9';
    if (!digit && IsMissingValue(text)) {
      kernel.missing.push_back(of.key);
      return;
    }
    const std::optional<double> number = style_.Read(text, of.unit, kind_);
    if (number && std::isfinite(*number * of.scale.value)) {
      pending_.Add(series, *number * of.scale.value);
      return;
    }
    if (of.name == "device__attribute_display_name") {
      profile_.device = Printable(text, 100);
    }
    kernel.texts[of.key] = Printable(text, 1000);  // CachePreferNone
  }

  CsvScanner scanner_;
  const std::string& label_;
  NumberStyle::Kind kind_;  ///< what the values are taken for
  NumberStyle style_;       ///< what they turn out to be
  std::size_t table_offset_ = 0;
  std::vector<std::string> header_, units_;
  Columns columns_;
  SeriesTable series_{MetricKey};
  std::vector<std::size_t> column_series_;  ///< WIDE: by column, from the first metric's
  PendingMetrics pending_;
  std::map<std::pair<std::string, long long>, std::size_t> by_id_;
  std::string id_, process_;        ///< of the current launch, as printed
  std::size_t launch_ = 0;          ///< its index
  std::vector<std::size_t> rules_;  ///< ncu's own rules, by launch
  std::size_t values_ = 0;
  Profile profile_;
};

}  // namespace

Result<Profile> ParseNcuCsv(std::string_view text, std::string label) {
  // The style shows only when all numbers are known. Most files are not inverted, so they are read
  // once.
  for (const auto kind : {NumberStyle::Kind::kPoint, NumberStyle::Kind::kInverted}) {
    Reader reader(text, label, kind);
    KP_ASSIGN_OR_RETURN(const bool has_table, reader.Read());
    if (!has_table) {
      return WhyNoProfile(
          text, label,
          "no table of Nsight Compute's --csv in it (a line that begins with \"ID\",); "
          "was no kernel profiled, or --csv left out?");
    }
    if (reader.style() == kind) {
      return reader.Finish();
    }
    if (reader.style() != NumberStyle::Kind::kInverted) {
      return reader.AmbiguousNumbers();
    }
  }
  return Fail(ErrorCode::kInternal, label + ": the number style changed between two readings");
}

Result<Profile> ReadNcuCsv(const std::filesystem::path& path) {
  constexpr std::uint64_t kLargestFile = 1ULL << 30U;
  KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestFile));
  return ParseNcuCsv(text, path.string());
}

}  // namespace kernelpro
