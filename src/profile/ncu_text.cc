// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "kernelpro/profile.h"
#include "profile/demangle.h"
#include "profile/dimension.h"
#include "profile/display_names.h"
#include "profile/metric_names.h"
#include "profile/metric_number.h"
#include "profile/ncu_log.h"
#include "profile/ruler.h"
#include "profile/text_file.h"

namespace kernelpro {
namespace {

constexpr std::size_t kLongestKey = 200;

struct Heading {
  std::string_view name;  ///< with parameters
  std::string_view grid, block, compute_capability;
};

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Splits "f(int) (1, 1, 1)x(32, 1, 1)" at the last ")x(": the name's own parentheses stand before.
void SplitShape(Heading& heading) {
  const std::string_view all = heading.name;
  const std::size_t by = all.rfind(")x(");
  if (by == std::string_view::npos || !all.ends_with(')')) {
    return;
  }
  const std::size_t open = all.rfind('(', by);
  if (open == std::string_view::npos) {
    return;
  }
  heading.grid = all.substr(open, by + 1 - open);
  heading.block = all.substr(by + 2);
  heading.name = Trim(all.substr(0, open));
}

/// Drops ", 2020-Jul-20 10:22:33" from the end of the name.
void DropDate(Heading& heading) {
  const std::size_t comma = heading.name.rfind(", ");
  if (comma == std::string_view::npos) {
    return;
  }
  const std::string_view date = heading.name.substr(comma + 2);
  if (date.size() >= 19 && IsDigits(date.substr(0, 4)) && date[4] == '-' &&
      date.find(':') != std::string_view::npos) {
    heading.name = heading.name.substr(0, comma);
  }
}

std::optional<Heading> ParseHeading(std::string_view line) {
  constexpr std::string_view kContext = ", Context ";
  constexpr std::string_view kStream = ", Stream ";
  constexpr std::string_view kCapability = ", CC ";
  line = Trim(line);
  const std::size_t context = line.rfind(kContext);
  if (context == std::string_view::npos || context == 0 || line.starts_with("==")) {
    return std::nullopt;
  }
  const std::string_view where = line.substr(context + kContext.size());
  const std::size_t stream = where.find(kStream);
  if (stream == std::string_view::npos || !IsDigits(where.substr(0, stream))) {
    return std::nullopt;
  }
  Heading heading;
  heading.name = Trim(line.substr(0, context));
  if (const std::size_t at = where.find(kCapability); at != std::string_view::npos) {
    const std::string_view rest = where.substr(at + kCapability.size());
    heading.compute_capability = rest.substr(0, rest.find(','));
  }
  SplitShape(heading);
  DropDate(heading);
  return heading.name.empty() ? std::nullopt : std::optional(heading);
}

/// One row of a table, not yet a number: how numbers are written is known at the end of the file.
struct Row {
  std::size_t kernel = 0;
  std::string_view section, name, unit, value;
};

/// Finds launches and their rows.
class Scanner {
 public:
  void Line(std::string_view line) {
    const std::string_view trimmed = Trim(line);
    if (auto heading = ParseHeading(line)) {
      pending_ = *heading;
      section_ = {};
      Leave();
      fresh_ = true;
    } else if (trimmed.starts_with(kSection)) {
      section_ = Trim(trimmed.substr(kSection.size()));
      Leave();
      fresh_ = true;
    } else if (auto ruler = Ruler::Parse(line)) {
      RulerLine(*std::move(ruler));
    } else if (ruler_) {
      TableLine(line);
    } else if (!trimmed.empty() && IsRule(trimmed)) {
      fresh_ = false;
    }
  }

  std::vector<Heading> headings;
  std::vector<Row> rows;

 private:
  static constexpr std::string_view kSection = "Section: ";

  static bool IsRule(std::string_view line) {
    return line.starts_with("OPT ") || line.starts_with("INF ") || line.starts_with("WRN ") ||
           line.starts_with("ERR ");
  }

  void Leave() {
    ruler_.reset();
    titles_ = false;
    in_table_ = false;
  }

  /// A table has one ruler above its titles, one below them and one at its end; in 2020 there were
  /// no titles. A rule may print tables of its own, with other titles.
  void RulerLine(Ruler ruler) {
    if (ruler_ && titles_ && !in_table_ && ruler.size() == 3) {
      in_table_ = true;
      ruler_ = std::move(ruler);
      return;
    }
    const bool ends = ruler_.has_value();
    Leave();
    if (!ends && ruler.size() == 3) {
      ruler_ = std::move(ruler);
    }
  }

  void TableLine(std::string_view line) {
    const auto cells = ruler_->Cells(line);
    if (!cells || line.starts_with("==")) {
      return;  // other output in between
    }
    const std::string_view name = (*cells)[0];
    if (!in_table_ && !titles_) {
      titles_ =
          name == "Metric Name" && (*cells)[1] == "Metric Unit" && (*cells)[2] == "Metric Value";
      if (titles_) {
        return;
      }
      if (!fresh_) {
        Leave();  // a rule's table
        return;
      }
      in_table_ = true;
    }
    fresh_ = false;
    if (name.empty() || (headings.empty() && !pending_)) {
      return;
    }
    if (pending_) {  // a launch begins with its first row: a heading alone says nothing
      headings.push_back(*std::exchange(pending_, std::nullopt));
    }
    rows.push_back({headings.size() - 1, section_, name, (*cells)[1], (*cells)[2]});
  }

  std::optional<Heading> pending_;
  std::string_view section_;
  std::optional<Ruler> ruler_;
  bool titles_ = false;    ///< the titles were seen
  bool in_table_ = false;  ///< rows follow
  bool fresh_ = false;     ///< right behind the section's name
};

/// "10.00 (5; 5)" -> "10.00": --print-metric-instances adds the parts.
std::string_view WithoutInstances(std::string_view value) {
  const std::size_t open = value.find(" (");
  return open != std::string_view::npos && value.ends_with(')') ? value.substr(0, open) : value;
}

/// "12,717" as the only form with a separator would be ambiguous, but this printer writes two
/// decimals, never three: a lone comma before three digits groups. A lone point may stand for
/// either, so it stays ambiguous.
NumberStyle::Kind StyleOf(const std::vector<Row>& rows) {
  NumberStyle style;
  bool has_point = false;
  for (const Row& row : rows) {
    const std::string_view value = WithoutInstances(row.value);
    style.Observe(value, row.unit);
    has_point = has_point || value.find('.') != std::string_view::npos;
  }
  if (style.kind() == NumberStyle::Kind::kAmbiguous && !has_point) {
    return NumberStyle::Kind::kPoint;
  }
  return style.kind();
}

void AddRow(const Row& row, NumberStyle::Kind style, KernelProfile& kernel) {
  const auto key = [&row](std::string_view unit) {
    return Printable(MetricKey(row.section, row.name, unit), kLongestKey);
  };
  if (IsMissingValue(row.value)) {
    kernel.missing.push_back(key(row.unit));
    return;
  }
  const auto number = ParseMetricNumber(WithoutInstances(row.value), style);
  if (!number) {
    kernel.texts[key(row.unit)] = Printable(row.value, kLongestKey);
    return;
  }
  const Metric metric = InBaseUnit(*number, row.unit);
  kernel.metrics[key(metric.unit)] = metric;
}

KernelProfile FromHeading(const Heading& heading) {
  KernelProfile kernel;
  kernel.mangled = Printable(heading.name, 2000);
  kernel.name = ReadableName(heading.name);
  kernel.time_provenance = Provenance::kMeasured;
  ParseDimension(heading.grid, kernel.grid);
  ParseDimension(heading.block, kernel.block);
  return kernel;
}

/// The headings of 2020 do not hold the shape; the launch statistics hold its size.
void ShapeFromStatistics(const Heading& heading, KernelProfile& kernel) {
  const auto size = [&kernel](std::string_view name) {
    const double value = kernel.Value(name).value_or(0);
    return value >= 1 && value <= UINT32_MAX ? static_cast<std::uint32_t>(value) : 1U;
  };
  if (heading.grid.empty()) {
    kernel.grid[0] = size(metric::kGridSize);
    kernel.block[0] = size(metric::kBlockSize);
  }
}

void Finish(const std::vector<Heading>& headings, Profile& profile) {
  double total = 0;
  for (std::size_t i = 0; i < headings.size(); ++i) {
    KernelProfile& kernel = profile.kernels[i];
    ShapeFromStatistics(headings[i], kernel);
    kernel.time_us = kernel.Value(metric::kDuration).value_or(0) * 1e-3;
    total += kernel.time_us;
    if (profile.device.empty() && !headings[i].compute_capability.empty()) {
      profile.device = fmt::format("GPU of compute capability {}",
                                   Printable(headings[i].compute_capability, 20));
    }
  }
  if (const auto& texts = profile.kernels.front().texts;
      texts.contains("device__attribute_display_name")) {
    profile.device = texts.at("device__attribute_display_name");
  }
  for (KernelProfile& kernel : profile.kernels) {
    kernel.time_share = total > 0 ? kernel.time_us / total : 1;
  }
}

/// What failed beside the launches that are there.
void AddErrors(std::string_view text, std::string_view label, Profile& profile) {
  constexpr std::size_t kMostErrors = 5;
  std::size_t number = 0;
  std::size_t errors = 0;
  for (const std::string_view line : Lines(text)) {
    ++number;
    if (line.starts_with("==ERROR==") && errors++ < kMostErrors) {
      profile.notes.push_back(
          fmt::format("{}:{}: ncu said:{}", label, number, Printable(line.substr(9), 300)));
    }
  }
}

}  // namespace

bool IsLaunchHeading(std::string_view line) {
  return ParseHeading(line).has_value();
}

Result<Profile> ParseNcuText(std::string_view text, std::string label) {
  Scanner scanner;
  for (const std::string_view line : Lines(text)) {
    scanner.Line(line);
  }
  if (scanner.rows.empty()) {
    return WhyNoProfile(text, label,
                        "no launch with a table of metrics in it, as Nsight Compute prints it; was "
                        "no kernel profiled, or did the profile go into a report file?");
  }
  const NumberStyle::Kind style = StyleOf(scanner.rows);
  if (style == NumberStyle::Kind::kAmbiguous || style == NumberStyle::Kind::kMixed) {
    return Fail(ErrorCode::kParse,
                fmt::format("{}: the numbers may mean two things ({}); print them again with "
                            "LC_ALL=C ncu --csv --page raw --print-units base",
                            label,
                            style == NumberStyle::Kind::kMixed ? "\"1,5\" and \"1.5\" both occur"
                                                               : "is \"117.344\" 117 or 117344?"));
  }
  Profile profile;
  for (const Heading& heading : scanner.headings) {
    profile.kernels.push_back(FromHeading(heading));
  }
  for (const Row& row : scanner.rows) {
    AddRow(row, style, profile.kernels[row.kernel]);
  }
  Finish(scanner.headings, profile);
  profile.notes.push_back(
      "Read from Nsight Compute's text output, which rounds values to two decimals of the unit "
      "printed; --csv --page raw --print-units base has all digits.");
  AddErrors(text, label, profile);
  profile.source = std::move(label);
  return profile;
}

Result<Profile> ReadNcuText(const std::filesystem::path& path) {
  KP_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return ParseNcuText(text, path.string());
}

}  // namespace kernelpro
