// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
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
#include "profile/ncu_log.h"

namespace kernelpro {
namespace {

struct Columns {
  std::size_t id = 0;
  std::optional<std::size_t> kernel, grid, block, cc, section, name, unit, value;
};

std::string_view Field(const CsvRow& row, std::optional<std::size_t> column) {
  return column && *column < row.fields.size() ? std::string_view(row.fields[*column])
                                               : std::string_view();
}

class Reader {
 public:
  Reader(const CsvTable& table, std::string label) : table_(table), label_(std::move(label)) {}

  Result<Profile> Read() {
    KP_RETURN_IF_ERROR(FindColumns());
    KP_RETURN_IF_ERROR(LearnNumbers());
    for (const CsvRow& row : table_.rows) {
      ReadRow(row);
    }
    if (profile_.kernels.empty()) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}:{}: the table has a header and no kernels; check the kernel "
                              "filter of the ncu command",
                              label_, table_.header.line));
    }
    Finish();
    return std::move(profile_);
  }

 private:
  [[nodiscard]] bool Long() const { return columns_.name.has_value(); }

  Status FindColumns() {
    columns_.kernel = table_.Column("Kernel Name");
    columns_.grid = table_.Column("Grid Size");
    columns_.block = table_.Column("Block Size");
    columns_.cc = table_.Column("CC");
    columns_.section = table_.Column("Section Name");
    columns_.name = table_.Column("Metric Name");
    columns_.unit = table_.Column("Metric Unit");
    columns_.value = table_.Column("Metric Value");
    if (!columns_.kernel) {
      return Fail(ErrorCode::kParse,
                  fmt::format("{}:{}: no column \"Kernel Name\"; this is not a table of "
                              "Nsight Compute's --csv",
                              label_, table_.header.line));
    }
    if (Long() && !columns_.value) {
      return Fail(ErrorCode::kParse, fmt::format("{}:{}: \"Metric Name\" without \"Metric Value\"",
                                                 label_, table_.header.line));
    }
    if (!Long()) {
      for (const CsvRow& row : table_.rows) {
        if (Field(row, columns_.id).empty()) {
          units_ = &row;
          break;
        }
      }
      first_metric_ = FirstMetricColumn();
    }
    return Ok();
  }

  /// Metric columns follow the launch's own columns.
  [[nodiscard]] std::size_t FirstMetricColumn() const {
    std::size_t first = 0;
    for (const std::string_view name :
         {"ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context",
          "Stream", "Block Size", "Grid Size", "Device", "CC"}) {
      first = std::max(first, table_.Column(name).value_or(0) + 1);
    }
    return first;
  }

  [[nodiscard]] std::string_view UnitOf(const CsvRow& row, std::size_t column) const {
    if (Long()) {
      return Trim(Field(row, columns_.unit));
    }
    return units_ == nullptr ? std::string_view() : Trim(Field(*units_, column));
  }

  Status LearnNumbers() {
    NumberStyle style;
    for (const CsvRow& row : table_.rows) {
      if (&row == units_) {
        continue;
      }
      if (Long()) {
        style.Observe(Field(row, columns_.value), UnitOf(row, 0));
        continue;
      }
      for (std::size_t i = first_metric_; i < row.fields.size(); ++i) {
        style.Observe(row.fields[i], UnitOf(row, i));
      }
    }
    style_ = style.kind();
    if (style_ == NumberStyle::Kind::kAmbiguous || style_ == NumberStyle::Kind::kMixed) {
      return Fail(
          ErrorCode::kParse,
          fmt::format("{}:{}: the numbers may mean two things ({}); print them again with "
                      "LC_ALL=C ncu --csv --print-units base",
                      label_, table_.header.line,
                      style_ == NumberStyle::Kind::kMixed ? "\"1,5\" and \"1.5\" both occur"
                                                          : "is \"117.344\" 117 or 117344?"));
    }
    return Ok();
  }

  void ReadRow(const CsvRow& row) {
    long long id = 0;
    if (&row == units_ || !ParseInteger(Trim(Field(row, columns_.id)), &id)) {
      return;  // another program's output that begins with a quote
    }
    if (Long()) {
      const std::string_view name = Trim(Field(row, columns_.name));
      if (!name.empty()) {  // else a rule of ncu's own
        Add(Launch(id, row), Field(row, columns_.section), name, UnitOf(row, 0),
            Field(row, columns_.value));
      }
      return;
    }
    KernelProfile& kernel = Launch(id, row);
    for (std::size_t i = first_metric_;
         i < std::min(row.fields.size(), table_.header.fields.size()); ++i) {
      Add(kernel, "", Trim(table_.header.fields[i]), UnitOf(row, i), row.fields[i]);
    }
  }

  KernelProfile& Launch(long long id, const CsvRow& row) {
    const auto [found, is_new] = by_id_.try_emplace(id, profile_.kernels.size());
    if (is_new) {
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
    }
    return profile_.kernels[found->second];
  }

  void Add(KernelProfile& kernel, std::string_view section, std::string_view name,
           std::string_view unit, std::string_view text) {
    if (IsMissingValue(text)) {
      kernel.missing.push_back(Printable(MetricKey(section, name, unit), 200));
      return;
    }
    const std::optional<double> number = ParseMetricNumber(text, style_);
    if (!number) {  // text such as CachePreferNone
      if (name == "device__attribute_display_name") {
        profile_.device = Printable(text, 100);
      }
      return;
    }
    const Metric metric = InBaseUnit(*number, unit);
    kernel.metrics[Printable(MetricKey(section, name, metric.unit), 200)] = metric;
  }

  void Finish() {
    double total = 0;
    for (KernelProfile& kernel : profile_.kernels) {
      kernel.time_us = kernel.Value(metric::kDuration).value_or(0) * 1e-3;
      total += kernel.time_us;
    }
    for (KernelProfile& kernel : profile_.kernels) {
      kernel.time_share = total > 0 ? kernel.time_us / total : 1;
    }
    profile_.source = label_;
  }

  const CsvTable& table_;
  std::string label_;
  Columns columns_;
  const CsvRow* units_ = nullptr;
  std::size_t first_metric_ = 0;
  NumberStyle::Kind style_ = NumberStyle::Kind::kPoint;
  std::map<long long, std::size_t> by_id_;
  Profile profile_;
};

}  // namespace

Result<Profile> ParseNcuCsv(std::string_view text, std::string label) {
  KP_ASSIGN_OR_RETURN(const std::optional<CsvTable> table, FindCsvTable(text, label));
  if (!table) {
    return WhyNoProfile(
        text, label,
        "no table of Nsight Compute's --csv in it (a line that begins with \"ID\",); "
        "was no kernel profiled, or --csv left out?");
  }
  return Reader(*table, std::move(label)).Read();
}

Result<Profile> ReadNcuCsv(const std::filesystem::path& path) {
  KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseNcuCsv(text, path.string());
}

Profile MergeLaunches(const Profile& profile) {
  struct Sum {
    double value = 0, weight = 0;
  };

  Profile merged = profile;
  merged.kernels.clear();
  std::vector<std::map<std::string, Sum>> sums;
  std::map<std::string, std::size_t> by_name;
  for (const KernelProfile& launch : profile.kernels) {
    const auto [found, is_new] = by_name.try_emplace(launch.mangled, merged.kernels.size());
    if (is_new) {
      merged.kernels.push_back(launch);
      merged.kernels.back().time_us = 0;
      merged.kernels.back().time_share = 0;
      sums.emplace_back();
    }
    KernelProfile& kernel = merged.kernels[found->second];
    kernel.time_us += launch.time_us;
    kernel.time_share += launch.time_share;
    const double weight = launch.time_us > 0 ? launch.time_us : 1;
    for (const auto& [name, value] : launch.metrics) {
      kernel.metrics.try_emplace(name, value);
      const bool adds = name.ends_with(".sum");
      Sum& sum = sums[found->second][name];
      sum.value += adds ? value.value : value.value * weight;
      sum.weight += adds ? 0 : weight;
    }
  }
  for (std::size_t i = 0; i < merged.kernels.size(); ++i) {
    for (const auto& [name, sum] : sums[i]) {
      merged.kernels[i].metrics[name].value = sum.weight > 0 ? sum.value / sum.weight : sum.value;
    }
    std::erase_if(merged.kernels[i].missing, [&](const std::string& name) {
      return merged.kernels[i].metrics.contains(name);
    });
  }
  std::ranges::stable_sort(merged.kernels, [](const KernelProfile& a, const KernelProfile& b) {
    return a.time_us > b.time_us;
  });
  return merged;
}

}  // namespace kernelpro
