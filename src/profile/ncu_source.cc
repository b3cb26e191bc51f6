// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "kernelpro/profile.h"
#include "profile/kernel_name.h"
#include "profile/metric_number.h"

namespace kernelpro {
namespace {

/// Fewer samples than this are no shares.
constexpr double kFewSamples = 200;

struct Spelling {
  std::string_view column, reason;
};

/// What the source page and the sampling counters call differently from the stall metrics.
constexpr std::array<Spelling, 17> kSpellings = {{{"long_sb", "long_scoreboard"},
                                                  {"short_sb", "short_scoreboard"},
                                                  {"math", "math_pipe_throttle"},
                                                  {"math_throttle", "math_pipe_throttle"},
                                                  {"mio", "mio_throttle"},
                                                  {"lg", "lg_throttle"},
                                                  {"tex", "tex_throttle"},
                                                  {"imc", "imc_miss"},
                                                  {"no_inst", "no_instruction"},
                                                  {"no_instructions", "no_instruction"},
                                                  {"branch_resolve", "branch_resolving"},
                                                  {"dispatch", "dispatch_stall"},
                                                  {"sleep", "sleeping"},
                                                  {"warpgroup_arrive", "gmma"},
                                                  {"warpgroup_arrives", "gmma"},
                                                  {"warpgroup", "gmma"},
                                                  {"not_sel", "not_selected"}}};

/// Fields of one row; quotes may hold commas, quotes ("") and line ends.
class Rows {
 public:
  explicit Rows(std::string_view text) : text_(text) {}

  [[nodiscard]] std::size_t line() const { return row_line_; }

  /// False at the end. A quote that never ends takes the rest.
  bool Next(std::vector<std::string>& fields) {
    fields.clear();
    if (at_ >= text_.size()) {
      return false;
    }
    row_line_ = line_;
    std::string field;
    bool quoted = false;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      line_ += c == '\n' ? 1 : 0;
      if (quoted) {
        if (c != '"') {
          field += c;
        } else if (at_ < text_.size() && text_[at_] == '"') {
          field += text_[at_++];
        } else {
          quoted = false;
        }
      } else if (c == '"' && field.empty()) {
        quoted = true;
      } else if (c == ',') {
        fields.push_back(std::exchange(field, {}));
      } else if (c == '\n') {
        break;
      } else if (c != '\r') {
        field += c;
      }
    }
    fields.push_back(std::move(field));
    return true;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0, line_ = 1, row_line_ = 0;
};

/// "0x7f10", "/*0010*/", "16"
std::optional<std::uint64_t> Address(std::string_view text) {
  text = Trim(text);
  int base = 10;
  if (text.starts_with("/*") && text.ends_with("*/") && text.size() > 4) {
    text = text.substr(2, text.size() - 4);
    base = 16;
  } else if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

double Number(std::string_view text) {
  const std::optional<double> value = ParseMetricNumber(Trim(text), NumberStyle::Kind::kPoint);
  return value && *value > 0 ? *value : 0;
}

struct Columns {
  std::size_t address = 0, source = 0;
  std::optional<std::size_t> samples, line;
  std::vector<std::pair<std::size_t, std::string>> reasons;
  std::size_t count = 0;

  /// Nothing when the row is no header of a table of instructions.
  static std::optional<Columns> Of(const std::vector<std::string>& header) {
    std::map<std::string_view, std::size_t> by_name;
    for (std::size_t i = header.size(); i-- > 0;) {
      by_name[Trim(header[i])] = i;  // some names are there twice; the first is meant
    }
    const auto find = [&](std::initializer_list<std::string_view> names) {
      std::optional<std::size_t> found;
      for (const std::string_view name : names) {
        const auto at = by_name.find(name);
        if (!found && at != by_name.end()) {
          found = at->second;
        }
      }
      return found;
    };
    Columns columns;
    const auto address = find({"Address", "PC"});
    const auto source = find({"SASS", "Source"});
    if (!address || !source) {
      return std::nullopt;
    }
    columns.address = *address;
    columns.source = *source;
    columns.count = header.size();
    columns.line = find({"Line No", "Line"});
    columns.samples = find({"Warp Stall Sampling (All Samples)", "Warp Stall Sampling (All Cycles)",
                            "# Samples", "smsp__pcsamp_sample_count"});
    for (const auto& [name, index] : by_name) {
      if (std::string reason = StallReasonOf(name); !reason.empty()) {
        columns.reasons.emplace_back(index, std::move(reason));
      }
    }
    return columns;
  }
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view label) : rows_(text), label_(label) {}

  Result<std::vector<NcuSourceKernel>> Read() {
    std::vector<std::string> fields;
    while (rows_.Next(fields)) {
      ReadRow(fields);
    }
    EndKernel();
    if (!any_table_) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}: no table of instructions in it (columns \"Address\" and "
                              "\"Source\"); print it with ncu --import FILE --page source --csv "
                              "--print-source sass",
                              label_));
    }
    return std::move(kernels_);
  }

 private:
  void ReadRow(const std::vector<std::string>& fields) {
    if (fields.size() >= 2 && (fields[0] == "Kernel Name" || fields[0] == "Function Name") &&
        fields[1] != "Source") {
      // A page with several launches names each before its table; "Function Name" may follow.
      if (fields[0] == "Kernel Name" || columns_) {
        EndKernel();
      }
      if (name_.empty()) {
        name_ = Printable(fields[1], 2000);
      }
      return;
    }
    if (fields.size() >= 2 && (fields[0] == "File Path" || fields[0] == "File Name")) {
      file_ = Printable(fields[1], 1000);
      line_ = 0;
      return;
    }
    if (std::optional<Columns> columns = Columns::Of(fields)) {
      // Launches without names: each begins with a header of its own.
      if (columns_ && !kernel_.hot_spots.empty() && file_.empty()) {
        EndKernel();
      }
      columns_ = std::move(columns);
      any_table_ = true;
      return;
    }
    if (columns_) {
      ReadInstruction(fields);
    }
  }

  void ReadInstruction(const std::vector<std::string>& fields) {
    if (columns_->line && *columns_->line < fields.size()) {
      long long line = 0;
      if (ParseInteger(Trim(fields[*columns_->line]), &line) && line > 0 && line <= UINT32_MAX) {
        line_ = static_cast<std::uint32_t>(line);
      }
    }
    if (std::max(columns_->address, columns_->source) >= fields.size()) {
      return;
    }
    const std::optional<std::uint64_t> address = Address(fields[columns_->address]);
    const std::string_view instruction = Trim(fields[columns_->source]);
    if (!address || instruction.empty()) {
      return;  // a line of the source between its instructions
    }
    ++kernel_.instructions;
    first_ = first_ ? std::min(*first_, *address) : *address;
    HotSpot spot;
    double sum = 0;
    for (const auto& [column, reason] : columns_->reasons) {
      const double samples = column < fields.size() ? Number(fields[column]) : 0;
      if (samples > 0) {
        spot.stalls[reason] += samples;
        sum += samples;
      }
    }
    spot.samples = columns_->samples && *columns_->samples < fields.size()
                       ? Number(fields[*columns_->samples])
                       : sum;
    if (spot.samples <= 0) {
      return;
    }
    spot.address = *address;
    spot.instruction = Printable(instruction, 200);
    if (line_ != 0 && !file_.empty()) {
      spot.file = file_;
      spot.line = line_;
    }
    kernel_.samples += spot.samples;
    kernel_.hot_spots.push_back(std::move(spot));
  }

  void EndKernel() {
    if (columns_) {
      for (HotSpot& spot : kernel_.hot_spots) {
        spot.address -= *first_;
      }
      std::ranges::stable_sort(kernel_.hot_spots, std::ranges::greater(), &HotSpot::samples);
      kernel_.name = name_;
      kernels_.push_back(std::move(kernel_));
    }
    kernel_ = {};
    columns_.reset();
    first_.reset();
    name_.clear();
    file_.clear();
    line_ = 0;
  }

  Rows rows_;
  std::string_view label_;
  std::optional<Columns> columns_;
  std::optional<std::uint64_t> first_;
  bool any_table_ = false;
  std::string name_, file_;
  std::uint32_t line_ = 0;
  NcuSourceKernel kernel_;
  std::vector<NcuSourceKernel> kernels_;
};

void Add(const NcuSourceKernel& launch, KernelProfile& kernel) {
  std::map<std::uint64_t, std::size_t> by_address;
  for (std::size_t i = 0; i < kernel.hot_spots.size(); ++i) {
    by_address[kernel.hot_spots[i].address] = i;
  }
  for (const HotSpot& spot : launch.hot_spots) {
    const auto [found, is_new] = by_address.try_emplace(spot.address, kernel.hot_spots.size());
    if (is_new) {
      kernel.hot_spots.push_back(spot);
      continue;
    }
    HotSpot& known = kernel.hot_spots[found->second];
    known.samples += spot.samples;
    for (const auto& [reason, samples] : spot.stalls) {
      known.stalls[reason] += samples;
    }
  }
  std::ranges::stable_sort(kernel.hot_spots, std::ranges::greater(), &HotSpot::samples);
}

KernelProfile* PlaceOf(const NcuSourceKernel& launch, std::size_t names, Profile& profile) {
  if (profile.kernels.size() == 1 && names <= 1) {
    return &profile.kernels[0];
  }
  const KernelNameParts parts = PartsOfKernelName(launch.name);
  KernelProfile* place = nullptr;
  for (KernelProfile& kernel : profile.kernels) {
    if (kernel.mangled == launch.name) {
      return &kernel;
    }
    const KernelNameParts known = PartsOfKernelName(kernel.name);
    if (known.templated == parts.templated && !parts.templated.empty()) {
      if (place != nullptr) {
        return nullptr;  // overloads: it may be either
      }
      place = &kernel;
    }
  }
  return place;
}

}  // namespace

std::string StallReasonOf(std::string_view column) {
  column = Trim(column);
  constexpr std::string_view kCounter = "smsp__pcsamp_warps_issue_stalled_";
  constexpr std::string_view kColumn = "stall_";
  std::string_view reason;
  if (column.starts_with(kCounter)) {
    reason = column.substr(kCounter.size());
    if (reason.ends_with("_not_issued")) {
      return {};
    }
  } else if (column.starts_with(kColumn)) {
    reason = column.substr(kColumn.size());
  }
  if (reason.empty() || reason.find_first_of(" (") != std::string_view::npos) {
    return {};  // "stall_wait (Not Issued)"
  }
  for (const Spelling& spelling : kSpellings) {
    if (spelling.column == reason) {
      return std::string(spelling.reason);
    }
  }
  return Printable(reason, 40);
}

Result<std::vector<NcuSourceKernel>> ParseNcuSource(std::string_view text, std::string_view label) {
  return Reader(text, label).Read();
}

void AddHotSpots(const std::vector<NcuSourceKernel>& launches, Profile& profile) {
  std::map<std::string_view, std::size_t> names;
  for (const NcuSourceKernel& launch : launches) {
    names.try_emplace(launch.name, 0);
  }
  for (const NcuSourceKernel& launch : launches) {
    KernelProfile* const kernel = PlaceOf(launch, names.size(), profile);
    if (kernel == nullptr) {
      profile.notes.push_back(fmt::format(
          "Samples of \"{}\" were left out: no kernel of the profile is surely the one.",
          Printable(launch.name, 200)));
      continue;
    }
    Add(launch, *kernel);
  }
  for (const KernelProfile& kernel : profile.kernels) {
    double samples = 0;
    for (const HotSpot& spot : kernel.hot_spots) {
      samples += spot.samples;
    }
    if (samples > 0 && samples < kFewSamples) {
      profile.notes.push_back(
          fmt::format("Only {:.0f} samples of \"{}\" were taken: shares of instructions are rough.",
                      samples, kernel.name));
    }
  }
}

}  // namespace kernelpro
