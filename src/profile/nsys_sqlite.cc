// SPDX-License-Identifier: Apache-2.0
#include "profile/nsys_sqlite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "kernelpro/profile.h"
#include "profile/api_call.h"
#include "profile/demangle.h"
#include "profile/metric_names.h"
#include "profile/sqlite_reader.h"

namespace kernelpro {
namespace {

using Kind = TimelineEvent::Kind;

constexpr std::size_t kLongestName = 2000;
constexpr std::size_t kMostNames = 1'000'000;
constexpr std::size_t kMostNameBytes = 512U << 20U;

constexpr std::string_view kKernelTable = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr std::string_view kCallTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr std::string_view kCopyTable = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr std::string_view kSetTable = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr std::string_view kWaitTable = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr std::string_view kGraphTable = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";

std::uint32_t Size(std::int64_t value) {
  return value >= 1 && value <= UINT32_MAX ? static_cast<std::uint32_t>(value) : 1U;
}

/// The values of ENUM_CUDA_MEMCPY_OPER; exports before 2022 do not hold that table.
std::string_view CopyDirection(std::int64_t kind) {
  constexpr std::string_view kNames[] = {
      "copy", "HtoD", "DtoH", "HtoA", "AtoH",         "AtoA",         "AtoD",
      "DtoA", "DtoD", "HtoH", "PtoP", "HtoD managed", "DtoH managed", "DtoD managed"};
  return kind >= 0 && kind < static_cast<std::int64_t>(std::size(kNames)) ? kNames[kind]
                                                                          : kNames[0];
}

class ExportReader {
 public:
  ExportReader(const SqliteReader& database, const NsysLimits& limits, std::string label)
      : database_(database), limits_(limits), label_(std::move(label)) {}

  Result<Profile> Read() {
    if (!database_.HasTable(kKernelTable)) {
      return Fail(
          ErrorCode::kNotFound,
          fmt::format("{}: the database has no table {}; either nsys recorded no kernel (-t "
                      "cuda) or this is no export of Nsight Systems",
                      label_, kKernelTable));
    }
    KP_RETURN_IF_ERROR(ReadNames());
    KP_RETURN_IF_ERROR(ReadDevice());
    KP_RETURN_IF_ERROR(ReadKernels());
    KP_RETURN_IF_ERROR(ReadCopies());
    KP_RETURN_IF_ERROR(ReadSets());
    KP_RETURN_IF_ERROR(ReadGraphs());
    KP_RETURN_IF_ERROR(ReadCalls());
    KP_RETURN_IF_ERROR(ReadWaits());
    if (launches_ == 0) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}: the table {} has no kernel with a beginning and an end", label_,
                              kKernelTable));
    }
    Finish();
    return std::move(profile_);
  }

 private:
  Status ReadNames() {
    std::size_t bytes = 0;
    bool many = false;
    KP_RETURN_IF_ERROR(database_.Each("StringIds", {"id", "value"}, [&](const SqliteRow& row) {
      const std::string_view text = row.Text(1).substr(0, kLongestName);
      bytes += text.size();
      many = names_.size() >= kMostNames || bytes > kMostNameBytes;
      if (!many) {
        names_.emplace(row.Integer(0), text);
      }
      return !many;
    }));
    if (many) {
      return TooMuch("names");
    }
    return Ok();
  }

  Status ReadDevice() {
    return database_.Each("TARGET_INFO_GPU", {"name", "smCount"}, [this](const SqliteRow& row) {
      profile_.device = Printable(row.Text(0), 100);
      sm_count_ = row.Integer(1);
      return false;  // the first GPU
    });
  }

  [[nodiscard]] Error TooMuch(std::string_view what) const {
    return Fail(
        ErrorCode::kParse,
        fmt::format("{}: more {} than can be read ({} events); record a shorter part of the "
                    "program (nsys profile --duration, or cudaProfilerStart and Stop)",
                    label_, what, limits_.events));
  }

  [[nodiscard]] std::string_view NameOf(std::int64_t id) const {
    const auto found = names_.find(id);
    return found == names_.end() ? std::string_view() : std::string_view(found->second);
  }

  /// Adds every row of a table that has times: `fill` completes the event; the first two columns
  /// are its times.
  template <class Fill>
  Status Events(std::string_view table, std::vector<std::string_view> columns, Fill fill) {
    columns.insert(columns.begin(), {"start", "end"});
    bool many = false;
    KP_RETURN_IF_ERROR(database_.Each(table, columns, [&](const SqliteRow& row) {
      const auto start = row.Maybe(0);
      const auto end = row.Maybe(1);
      if (!start || !end || *start < 0 || *end < *start) {
        ++untimed_;
        return true;
      }
      many = profile_.timeline.size() + calls_.size() >= limits_.events;
      if (!many) {
        TimelineEvent event;
        event.start_ns = *start;
        event.end_ns = *end;
        fill(row, event);
      }
      return !many;
    }));
    if (many) {
      return TooMuch("events");
    }
    return Ok();
  }

  Status ReadKernels() {
    return Events(kKernelTable,
                  {"streamId", "correlationId", "demangledName", "shortName", "mangledName",
                   "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
                   "staticSharedMemory", "dynamicSharedMemory", "graphNodeId"},
                  [this](const SqliteRow& row, TimelineEvent& event) {
                    event.kind = Kind::kKernel;
                    event.stream = static_cast<std::uint32_t>(row.Integer(2));
                    event.correlation = static_cast<std::uint64_t>(row.Integer(3));
                    for (int i = 0; i < 3; ++i) {
                      event.grid[i] = Size(row.Integer(7 + i));
                      event.block[i] = Size(row.Integer(10 + i));
                    }
                    event.graph = row.Integer(16) != 0;
                    std::string_view name = NameOf(row.Integer(4));
                    name = name.empty() ? NameOf(row.Integer(5)) : name;
                    event.name = name.empty() ? "unknown" : ShortName(name);
                    ++launches_;
                    if (profile_.kernels.size() < limits_.launches) {
                      AddLaunch(row, name, event);
                    }
                    profile_.timeline.push_back(std::move(event));
                  });
  }

  /// The same few names come very often.
  const std::string& ShortName(std::string_view name) {
    const auto [found, is_new] = short_names_.try_emplace(name);
    if (is_new) {
      found->second = KernelName(name);
    }
    return found->second;
  }

  void AddLaunch(const SqliteRow& row, std::string_view name, const TimelineEvent& event) {
    KernelProfile kernel;
    kernel.name = event.name;
    const std::string_view mangled = NameOf(row.Integer(6));
    kernel.mangled = Printable(mangled.empty() ? name : mangled, kLongestName);
    std::ranges::copy(event.grid, kernel.grid);
    std::ranges::copy(event.block, kernel.block);
    kernel.time_provenance = Provenance::kMeasured;
    const auto ns = static_cast<double>(event.end_ns - event.start_ns);
    kernel.time_us = ns * 1e-3;
    const auto set = [&kernel](std::string_view metric, double value, std::string_view unit,
                               Provenance provenance) {
      kernel.metrics[std::string(metric)] = {value, std::string(unit), provenance};
    };
    set(metric::kDuration, ns, "ns", Provenance::kMeasured);
    const auto counted = [&](std::string_view metric, int column, std::string_view unit) {
      if (const auto value = row.Maybe(column); value && *value >= 0) {
        set(metric, static_cast<double>(*value), unit, Provenance::kCounted);
      }
    };
    counted(metric::kRegisters, 13, "register/thread");
    counted(metric::kSharedStatic, 14, "byte/block");
    counted(metric::kSharedDynamic, 15, "byte/block");
    if (sm_count_ > 0) {
      set("launch__sm_count", static_cast<double>(sm_count_), "SM", Provenance::kCounted);
    }
    profile_.kernels.push_back(std::move(kernel));
  }

  Status ReadCopies() {
    return Events(
        kCopyTable, {"streamId", "correlationId", "bytes", "copyKind", "srcKind", "dstKind"},
        [this](const SqliteRow& row, TimelineEvent& event) {
          constexpr std::int64_t kPageable = 0;  // ENUM_CUDA_MEM_KIND
          event.kind = Kind::kCopy;
          event.stream = static_cast<std::uint32_t>(row.Integer(2));
          event.correlation = static_cast<std::uint64_t>(row.Integer(3));
          event.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, row.Integer(4)));
          const std::string_view direction = CopyDirection(row.Integer(5));
          // Only the host's side can be pageable; the column may be missing.
          event.pageable = (direction.starts_with("Hto") && row.Maybe(6) == kPageable) ||
                           (direction.ends_with("toH") && row.Maybe(7) == kPageable);
          event.name = std::string(direction) + (event.pageable ? " pageable" : "");
          profile_.timeline.push_back(std::move(event));
        });
  }

  Status ReadSets() {
    return Events(kSetTable, {"streamId", "correlationId", "bytes"},
                  [this](const SqliteRow& row, TimelineEvent& event) {
                    event.kind = Kind::kSet;
                    event.name = "memset";
                    event.stream = static_cast<std::uint32_t>(row.Integer(2));
                    event.correlation = static_cast<std::uint64_t>(row.Integer(3));
                    event.bytes =
                        static_cast<std::uint64_t>(std::max<std::int64_t>(0, row.Integer(4)));
                    profile_.timeline.push_back(std::move(event));
                  });
  }

  Status ReadGraphs() {
    return Events(kGraphTable, {"streamId", "correlationId"},
                  [this](const SqliteRow& row, TimelineEvent& event) {
                    event.kind = Kind::kGraph;
                    event.name = "graph";
                    event.stream = static_cast<std::uint32_t>(row.Integer(2));
                    event.correlation = static_cast<std::uint64_t>(row.Integer(3));
                    profile_.timeline.push_back(std::move(event));
                  });
  }

  struct Call {
    TimelineEvent event;
    std::int64_t thread = 0;
    bool driver = false;
  };

  Status ReadCalls() {
    KP_RETURN_IF_ERROR(Events(kCallTable, {"correlationId", "nameId", "globalTid"},
                              [this](const SqliteRow& row, TimelineEvent& event) {
                                const std::string_view name = PlainApiName(NameOf(row.Integer(3)));
                                event.name = name.empty() ? "unknown" : Printable(name, 200);
                                event.kind = ApiKind(name);
                                event.correlation = static_cast<std::uint64_t>(row.Integer(2));
                                calls_.push_back(
                                    {std::move(event), row.Integer(4),
                                     name.starts_with("cu") && !name.starts_with("cuda")});
                              }));
    KeepOuterCalls();
    return Ok();
  }

  /// A driver call within a runtime call of the same thread is how that one works.
  void KeepOuterCalls() {
    std::ranges::stable_sort(calls_, {}, [](const Call& call) {
      return std::tuple(call.thread, call.event.start_ns, -call.event.end_ns, call.driver);
    });
    std::int64_t thread = 0;
    std::int64_t outer_end = -1;
    for (Call& call : calls_) {
      if (call.thread != thread) {
        thread = call.thread;
        outer_end = -1;
      }
      const bool inner = call.driver && call.event.end_ns <= outer_end;
      if (inner && call.event.kind != Kind::kCompile) {
        continue;
      }
      outer_end = call.driver ? outer_end : std::max(outer_end, call.event.end_ns);
      if (call.event.kind == Kind::kSync) {
        waiting_.insert(call.event.correlation);
      }
      profile_.timeline.push_back(std::move(call.event));
    }
    calls_ = {};
  }

  Status ReadWaits() {
    return Events(kWaitTable, {"correlationId", "syncType", "streamId"},
                  [this](const SqliteRow& row, TimelineEvent& event) {
                    // ENUM_CUPTI_SYNC_TYPE: 1 event, 2 a stream waits for an event (the host does
                    // not), 3 stream, 4 context.
                    constexpr std::string_view kNames[] = {"", "event wait", "", "stream wait",
                                                           "device wait"};
                    const std::int64_t type = row.Integer(3);
                    const auto correlation = static_cast<std::uint64_t>(row.Integer(2));
                    if (type < 1 || type > 4 || type == 2 || waiting_.contains(correlation)) {
                      return;
                    }
                    event.kind = Kind::kSync;
                    event.name = kNames[type];
                    event.correlation = correlation;
                    event.stream = static_cast<std::uint32_t>(row.Integer(4));
                    profile_.timeline.push_back(std::move(event));
                  });
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
    for (const auto& [table, what] : {std::pair{kCallTable, "calls"}, {kCopyTable, "copies"}}) {
      if (!database_.HasTable(table)) {
        profile_.notes.push_back(
            fmt::format("The export has no table {}: {} are unknown, or there "
                        "were none.",
                        table, what));
      }
    }
    if (launches_ > profile_.kernels.size()) {
      profile_.notes.push_back(fmt::format(
          "Only the first {} of {} launches in the file stand as kernels; the timeline has all.",
          profile_.kernels.size(), launches_));
    }
    if (untimed_ > 0) {
      profile_.notes.push_back(
          fmt::format("{} records without a beginning or an end were left out.", untimed_));
    }
    profile_.source = label_;
  }

  const SqliteReader& database_;
  NsysLimits limits_;
  std::string label_;
  std::unordered_map<std::int64_t, std::string> names_;
  std::unordered_map<std::string_view, std::string> short_names_;  ///< keys live in names_
  std::vector<Call> calls_;
  std::unordered_set<std::uint64_t> waiting_;  ///< correlation of calls that wait themselves
  std::int64_t sm_count_ = 0;
  std::uint64_t launches_ = 0, untimed_ = 0;
  Profile profile_;
};

}  // namespace

Result<Profile> ReadNsysSqlite(const std::filesystem::path& path, const NsysLimits& limits) {
  KP_ASSIGN_OR_RETURN(const SqliteReader database, SqliteReader::Open(path, limits.steps));
  return ExportReader(database, limits, path.string()).Read();
}

}  // namespace kernelpro
