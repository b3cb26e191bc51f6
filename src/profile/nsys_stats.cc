// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "kernelpro/profile.h"
#include "profile/api_call.h"
#include "profile/demangle.h"
#include "profile/metric_names.h"
#include "profile/nsys.h"
#include "profile/nsys_number.h"
#include "profile/nsys_table.h"

namespace kernelpro {
namespace {

using Row = std::vector<std::string>;
using Kind = NsysTableKind;

constexpr std::size_t kLongestName = 2000;
/// Further ones are left out, which a note says: a launch takes a kilobyte.
constexpr std::size_t kMostKernels = 100'000;
constexpr std::size_t kMostEvents = 2'000'000;
/// Times are whole nanoseconds in an int64.
constexpr double kLatestNs = 9e18;

/// "cuda..." and "cuLaunchKernel", not "cuserid".
bool IsCudaCall(std::string_view name) {
  return name.starts_with("cuda") ||
         (name.starts_with("cu") && name.size() > 2 && name[2] >= 'A' && name[2] <= 'Z');
}

std::optional<std::int64_t> WholeNanoseconds(std::optional<double> value) {
  return value && *value < kLatestNs ? std::optional(std::llround(*value)) : std::nullopt;
}

/// Digits that would have a separator if numbers had some.
bool IsLongNumber(std::string_view text) {
  return text.size() > 3 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

class StatsReader {
 public:
  explicit StatsReader(const std::vector<NsysTable>& tables) : tables_(tables) {
    for (const NsysTable& table : tables) {
      const Kind kind = KindOfTable(table);
      traced_ = traced_ || kind == Kind::kGpuTrace;
      plain_summary_ =
          plain_summary_ || (kind == Kind::kKernels && !table.Find("GridXYZ").has_value());
    }
  }

  /// "1,049" alone groups, for nsys writes one decimal or three. "1.049" is a decimal where larger
  /// whole numbers stand without separators.
  Status LearnNumbers(std::string_view label) {
    NumberStyle style;
    bool has_point = false;
    bool has_comma = false;
    bool ungrouped = false;
    std::size_t rows = 0;
    for (const NsysTable& table : tables_) {
      if (KindOfTable(table) == Kind::kOther) {
        continue;
      }
      rows += table.rows.size();
      if (rows > kMostEvents) {
        return Fail(ErrorCode::kParse,
                    fmt::format("{}: more than {} events; record a shorter part of the program "
                                "(nsys profile --duration, or cudaProfilerStart and Stop)",
                                label, kMostEvents));
      }
      for (const Row& row : table.rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
          const std::string& title = table.columns[i].title;
          if (title == "Name" || title == "Operation" || title == "Device") {
            continue;
          }
          style.Observe(row[i], table.columns[i].unit);
          has_point = has_point || row[i].find('.') != std::string::npos;
          has_comma = has_comma || row[i].find(',') != std::string::npos;
          ungrouped = ungrouped || IsLongNumber(row[i]);
        }
      }
    }
    style_ = style.kind();
    if (style_ == NumberStyle::Kind::kAmbiguous &&
        ((!has_point && !ungrouped) || (!has_comma && ungrouped))) {
      style_ = NumberStyle::Kind::kPoint;
    }
    if (style_ == NumberStyle::Kind::kAmbiguous || style_ == NumberStyle::Kind::kMixed) {
      return Fail(ErrorCode::kParse, fmt::format("{}: the numbers may mean two things; print them "
                                                 "again with LC_ALL=C nsys stats --format csv",
                                                 label));
    }
    return Ok();
  }

  Profile Read() {
    for (const NsysTable& table : tables_) {
      const NsysColumns columns(table, style_);
      const Kind kind = KindOfTable(table);
      for (const Row& row : table.rows) {
        if (kind == Kind::kGpuTrace) {
          AddGpuEvent(columns, row);
        } else if (kind == Kind::kCallTrace) {
          AddCall(columns, row);
        } else if (kind == Kind::kKernels && !traced_ && !Repeated(table)) {
          AddKernel(columns, row);
        } else if (!traced_) {
          AddCounts(kind, columns, row);
        }
      }
    }
    Finish();
    return std::move(profile_);
  }

 private:
  /// cuda_gpu_kern_gb_sum has the kernels of cuda_gpu_kern_sum once more, by grid and block.
  [[nodiscard]] bool Repeated(const NsysTable& table) const {
    return plain_summary_ && table.Find("GridXYZ").has_value();
  }

  static KernelProfile Named(std::string_view name) {
    KernelProfile kernel;
    kernel.mangled = Printable(name, kLongestName);
    kernel.name = KernelName(name);
    kernel.time_provenance = Provenance::kMeasured;
    return kernel;
  }

  void Keep(KernelProfile kernel) {
    ++kernels_;
    if (profile_.kernels.size() < kMostKernels) {
      profile_.kernels.push_back(std::move(kernel));
    }
  }

  static void Set(KernelProfile& kernel, std::string_view metric, double value,
                  std::string_view unit) {
    kernel.metrics[std::string(metric)] = {value, std::string(unit), Provenance::kMeasured};
  }

  void AddKernel(const NsysColumns& columns, const Row& row) {
    const auto total = columns.Nanoseconds(row, {"Total Time"});
    const auto instances = columns.Number(row, {"Instances"});
    const std::string_view name = columns.Text(row, "Name");
    if (!total || !instances || name.empty()) {
      return;  // other output that happens to fit the columns
    }
    KernelProfile kernel = Named(name);
    kernel.time_us = *total * 1e-3;
    Set(kernel, metric::kDuration, *total, "ns");
    Set(kernel, "timeline.instances", *instances, "");
    const auto optional = [&](std::string_view metric,
                              std::initializer_list<std::string_view> titles) {
      if (const auto value = columns.Nanoseconds(row, titles)) {
        Set(kernel, metric, *value, "ns");
      }
    };
    optional("timeline.kernel_average_ns", {"Avg", "Average"});
    optional("timeline.kernel_median_ns", {"Med", "Median"});
    optional("timeline.kernel_min_ns", {"Min", "Minimum"});
    optional("timeline.kernel_max_ns", {"Max", "Maximum"});
    Shape(columns.Text(row, "GridXYZ"), kernel.grid);
    Shape(columns.Text(row, "BlockXYZ"), kernel.block);
    cut_names_ = cut_names_ || name.ends_with("\xE2\x80\xA6");
    Count("timeline.kernels", *instances);
    Keep(std::move(kernel));
  }

  /// "  16    1    1"
  static void Shape(std::string_view text, std::uint32_t (&dim)[3]) {
    std::uint32_t values[3] = {};
    std::size_t count = 0;
    for (const std::string_view part : Split(text, ' ')) {
      long long value = 0;
      if (part.empty()) {
        continue;
      }
      if (count == 3 || !ParseInteger(part, &value) || value < 1 || value > UINT32_MAX) {
        return;
      }
      values[count++] = static_cast<std::uint32_t>(value);
    }
    if (count == 3) {
      std::ranges::copy(values, dim);
    }
  }

  void Count(std::string_view metric, double value, std::string_view unit = "") {
    Metric& sum = profile_.system[std::string(metric)];
    sum.value += value;
    sum.unit = unit;
    sum.provenance = Provenance::kMeasured;
  }

  void AddCounts(Kind kind, const NsysColumns& columns, const Row& row) {
    if (kind == Kind::kCalls) {
      const std::string_view name = PlainApiName(columns.Text(row, "Name"));
      const auto calls = columns.Number(row, {"Num Calls", "Calls"});
      if (calls && IsCudaCall(name)) {
        CountCalls(name, *calls);
      }
      return;
    }
    const bool copy = columns.Text(row, "Operation").find("memcpy") != std::string_view::npos ||
                      columns.Text(row, "Name").find("memcpy") != std::string_view::npos;
    if (kind == Kind::kCopyTimes && copy) {
      Count("timeline.copies", columns.Number(row, {"Count", "Operations"}).value_or(0));
    } else if (kind == Kind::kCopySizes && copy) {
      if (const auto bytes = columns.Bytes(row, {"Total"})) {
        Count("timeline.copy_bytes", *bytes, "byte");
      }
    }
  }

  void CountCalls(std::string_view name, double calls) {
    const TimelineEvent::Kind kind = ApiKind(name);
    if (kind == TimelineEvent::Kind::kSync) {
      Count("timeline.syncs", calls);
    } else if (kind == TimelineEvent::Kind::kAllocation) {
      Count("timeline.allocations", calls);
    } else if (IsGraphLaunch(name)) {
      Count("timeline.graph_launches", calls);
    }
  }

  std::optional<TimelineEvent> Event(const NsysColumns& columns, const Row& row) const {
    const auto start = WholeNanoseconds(columns.Nanoseconds(row, {"Start"}));
    const auto duration = WholeNanoseconds(columns.Nanoseconds(row, {"Duration"}));
    const std::string_view name = columns.Text(row, "Name");
    if (!start || !duration || name.empty() || *start > INT64_MAX - *duration) {
      return std::nullopt;
    }
    TimelineEvent event;
    event.start_ns = *start;
    event.end_ns = *start + *duration;
    event.correlation = columns.Whole(row, {"CorrId"}, 0);
    event.name = KernelName(name);
    return event;
  }

  void AddGpuEvent(const NsysColumns& columns, const Row& row) {
    auto event = Event(columns, row);
    if (!event) {
      return;
    }
    event->stream = static_cast<std::uint32_t>(columns.Whole(row, {"Strm"}, 0));
    event->bytes = static_cast<std::uint64_t>(columns.Bytes(row, {"Bytes"}).value_or(0));
    if (profile_.device.empty()) {
      profile_.device = Printable(columns.Text(row, "Device"), 100);
    }
    const std::string_view name = columns.Text(row, "Name");
    if (name.starts_with("[CUDA memset")) {
      event->kind = TimelineEvent::Kind::kSet;
      event->name = "memset";
    } else if (name.starts_with('[')) {
      event->kind = TimelineEvent::Kind::kCopy;
      NameCopy(name, columns, row, *event);
    } else {
      AddLaunch(columns, row, *event);
    }
    profile_.timeline.push_back(*std::move(event));
  }

  /// "[CUDA memcpy Host-to-Device]" and "[CUDA memcpy HtoD]" -> "HtoD pageable".
  static void NameCopy(std::string_view name, const NsysColumns& columns, const Row& row,
                       TimelineEvent& event) {
    std::string direction(name.substr(
        1, name.find(']') == std::string_view::npos ? std::string_view::npos : name.find(']') - 1));
    direction = direction.substr(direction.rfind(' ') + 1);
    for (const auto& [from, to] : {std::pair{"Host", "H"},
                                   {"Device", "D"},
                                   {"Array", "A"},
                                   {"Peer", "P"},
                                   {"-", ""},
                                   {"-", ""}}) {
      for (std::size_t at = direction.find(from); at != std::string::npos;
           at = direction.find(from, at + 1)) {
        direction.replace(at, std::string_view(from).size(), to);
      }
    }
    event.name = Printable(direction, 40);
    event.pageable =
        columns.Text(row, "SrcMemKd") == "Pageable" || columns.Text(row, "DstMemKd") == "Pageable";
    event.name += event.pageable ? " pageable" : "";
  }

  void AddLaunch(const NsysColumns& columns, const Row& row, TimelineEvent& event) {
    KernelProfile kernel = Named(columns.Text(row, "Name"));
    constexpr std::string_view kGrid[] = {"GrdX", "GrdY", "GrdZ"};
    constexpr std::string_view kBlock[] = {"BlkX", "BlkY", "BlkZ"};
    for (std::size_t i = 0; i < 3; ++i) {
      kernel.grid[i] = event.grid[i] =
          static_cast<std::uint32_t>(columns.Whole(row, {kGrid[i]}, 1));
      kernel.block[i] = event.block[i] =
          static_cast<std::uint32_t>(columns.Whole(row, {kBlock[i]}, 1));
    }
    const auto ns = static_cast<double>(event.end_ns - event.start_ns);
    kernel.time_us = ns * 1e-3;
    Set(kernel, metric::kDuration, ns, "ns");
    if (const auto registers = columns.Number(row, {"Reg/Trd"})) {
      Set(kernel, metric::kRegisters, *registers, "register/thread");
    }
    Keep(std::move(kernel));
  }

  void AddCall(const NsysColumns& columns, const Row& row) {
    auto event = Event(columns, row);
    if (!event) {
      return;
    }
    const std::string_view plain = PlainApiName(columns.Text(row, "Name"));
    event->name = Printable(plain, 200);
    event->kind = ApiKind(plain);
    profile_.timeline.push_back(*std::move(event));
  }

  void Finish() {
    std::ranges::stable_sort(profile_.timeline, {}, &TimelineEvent::start_ns);
    double total = 0;
    for (const KernelProfile& kernel : profile_.kernels) {
      total += kernel.time_us;
    }
    for (KernelProfile& kernel : profile_.kernels) {
      kernel.time_share = total > 0 ? kernel.time_us / total : 1;
    }
    if (kernels_ > profile_.kernels.size()) {
      profile_.notes.push_back(fmt::format("Only the first {} of {} kernels in the file are here.",
                                           profile_.kernels.size(), kernels_));
    }
    if (cut_names_) {
      profile_.notes.emplace_back(
          "nsys cut long kernel names in its table (they end in an ellipsis), so that different "
          "kernels may bear the same name; nsys stats --format csv prints them whole.");
    }
    const auto summaries = std::ranges::count_if(tables_, [this](const NsysTable& t) {
      return KindOfTable(t) == Kind::kKernels && !Repeated(t);
    });
    if (profile_.timeline.empty() && summaries > 1) {
      profile_.notes.push_back(fmt::format(
          "{} summaries of kernels are in the file, of several runs; times are of all together.",
          summaries));
    }
  }

  const std::vector<NsysTable>& tables_;
  NumberStyle::Kind style_ = NumberStyle::Kind::kPoint;
  bool traced_ = false;         ///< there is a trace of the GPU
  bool plain_summary_ = false;  ///< there is a summary by kernel alone
  bool cut_names_ = false;
  std::size_t kernels_ = 0;  ///< seen
  Profile profile_;
};

Error NoKernels(std::string_view text, std::string_view label) {
  for (const std::string_view line : Lines(text)) {
    if (line.starts_with("SKIPPED:") && line.find("CUDA kernel data") != std::string_view::npos) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}: nsys recorded no kernel ({}); trace CUDA (-t cuda) and let the "
                              "program reach its kernels",
                              label, Printable(line.substr(8), 200)));
    }
  }
  return Fail(ErrorCode::kNotFound,
              fmt::format("{}: no table of kernels of Nsight Systems in it; print one with  nsys "
                          "stats --report cuda_gpu_trace,cuda_gpu_kern_sum --format csv FILE",
                          label));
}

}  // namespace

Result<Profile> ParseNsysStats(std::string_view text, std::string label) {
  const std::vector<NsysTable> tables = FindNsysTables(text);
  StatsReader reader(tables);
  KP_RETURN_IF_ERROR(reader.LearnNumbers(label));
  Profile profile = reader.Read();
  if (profile.kernels.empty()) {
    return NoKernels(text, label);
  }
  profile.source = std::move(label);
  return profile;
}

}  // namespace kernelpro
