// SPDX-License-Identifier: Apache-2.0
#include "profile/activity_record.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace kernelpro {
namespace {

using Json = nlohmann::json;
using Event = ActivityRecords::Event;
using Kind = TimelineEvent::Kind;

constexpr std::size_t kLongestLine = 1U << 17U;
constexpr std::size_t kMostRecords = 2'000'000;
/// ns; a clock of the year 2100 is below it, and differences stay exact in 64 bits.
constexpr std::uint64_t kLatest = 1ULL << 62U;
constexpr std::size_t kLongestName = 1000;

// cupti_activity.h: memory kinds, synchronization types, JIT operations, overhead kinds.
constexpr std::uint64_t kPageable = 1;
constexpr std::uint64_t kPinned = 2;
constexpr std::uint64_t kStreamWaitEvent = 2;
constexpr std::uint64_t kJitStore = 2;
constexpr std::uint64_t kJitCompile = 3;
constexpr std::uint64_t kDriverCompiler = 1;
constexpr std::uint64_t kModuleLoading = 4U << 16U;
constexpr std::uint64_t kLazyLoading = 5U << 16U;
constexpr std::array<std::string_view, 11> kCopyKinds = {
    "copy", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};

/// One line's fields; the first one that is missing or wrong is remembered.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  std::uint64_t Number(const char* key, std::uint64_t most = UINT64_MAX) {
    const auto found = json_.find(key);
    if (found == json_.end() || !found->is_number_unsigned() ||
        found->get<std::uint64_t>() > most) {
      return Bad(key);
    }
    return found->get<std::uint64_t>();
  }

  std::uint32_t Small(const char* key) {
    return static_cast<std::uint32_t>(Number(key, UINT32_MAX));
  }

  /// Zero when it is not there: fields that later versions of the file may leave out.
  std::uint64_t Optional(const char* key) { return json_.contains(key) ? Number(key) : 0; }

  void Dim(const char* key, std::uint32_t (&dim)[3]) {
    const auto found = json_.find(key);
    if (found == json_.end() || !found->is_array() || found->size() != 3) {
      Bad(key);
      return;
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const Json& item = (*found)[i];
      if (!item.is_number_unsigned() || item.get<std::uint64_t>() > UINT32_MAX) {
        Bad(key);
        return;
      }
      dim[i] = item.get<std::uint32_t>();
    }
  }

  std::string Text(const char* key) {
    const auto found = json_.find(key);
    if (found == json_.end() || !found->is_string()) {
      Bad(key);
      return "";
    }
    return Printable(found->get_ref<const std::string&>(), kLongestName);
  }

  std::string OptionalText(const char* key) { return json_.contains(key) ? Text(key) : ""; }

  void Span(TimelineEvent* event) {
    const std::uint64_t start = Number("s", kLatest);
    const std::uint64_t end = Number("e", kLatest);
    if (end < start) {
      Bad("e");
    }
    event->start_ns = static_cast<std::int64_t>(start);
    event->end_ns = static_cast<std::int64_t>(end);
  }

  [[nodiscard]] const std::string& bad() const { return bad_; }

 private:
  std::uint64_t Bad(const char* key) {
    if (bad_.empty()) {
      bad_ = key;
    }
    return 0;
  }

  const Json& json_;
  std::string bad_;
};

Event OnGpu(Fields& f, Kind kind) {
  Event out;
  out.event.kind = kind;
  f.Span(&out.event);
  out.device = f.Small("d");
  out.event.stream = f.Small("st");
  out.event.correlation = f.Number("c");
  return out;
}

Event Kernel(Fields& f) {
  Event out = OnGpu(f, Kind::kKernel);
  out.name_id = f.Number("n");
  f.Dim("g", out.event.grid);
  f.Dim("b", out.event.block);
  out.registers = f.Small("r");
  out.shared_static = f.Small("ss");
  out.shared_dynamic = f.Small("ds");
  out.local = f.Small("l");
  out.event.graph = f.Optional("gn") != 0;
  return out;
}

Event Copy(Fields& f) {
  Event out = OnGpu(f, Kind::kCopy);
  const std::uint64_t kind = f.Number("k");
  const std::uint64_t from = f.Number("src");
  const std::uint64_t to = f.Number("dst");
  const auto is_host = [](std::uint64_t memory) {
    return memory == kPageable || memory == kPinned;
  };
  out.event.bytes = f.Number("by");
  out.event.graph = f.Optional("gn") != 0;
  out.event.pageable = from == kPageable || to == kPageable;
  out.host_side = is_host(from) || is_host(to);
  out.to_host = is_host(to) && !is_host(from);
  out.event.name = kCopyKinds.at(kind < kCopyKinds.size() ? kind : 0);
  if (out.host_side) {
    out.event.name += out.event.pageable ? " pageable" : " pinned";
  }
  return out;
}

Event Api(Fields& f) {
  Event out;
  f.Span(&out.event);
  out.name_id = f.Number("n");
  out.thread = f.Number("th");
  out.runtime = f.Number("rt") != 0;
  out.event.correlation = f.Number("c");
  return out;
}

/// JIT work and module loading that no API call names.
Event Loading(Fields& f, const char* name) {
  Event out;
  out.event.kind = Kind::kCompile;
  f.Span(&out.event);
  out.event.name = name;
  return out;
}

void Overhead(Fields& f, ActivityRecords* records) {
  const std::uint64_t kind = f.Number("k");
  Event event = Loading(f, kind == kDriverCompiler ? "driver's compiler" : "module loading");
  if (kind == kDriverCompiler || kind == kModuleLoading || kind == kLazyLoading) {
    records->host.push_back(std::move(event));
  } else {
    records->tracing_ns += static_cast<double>(event.event.end_ns - event.event.start_ns);
  }
}

/// Lines about the trace itself. False: none of them.
bool Meta(std::string_view type, Fields& f, ActivityRecords* records) {
  if (type == "name") {
    records->names[f.Number("id")] = {f.Text("name"), f.OptionalText("plain")};
  } else if (type == "device") {
    records->devices[f.Number("id")] = {f.Text("name"), f.Small("sms"),
                                        static_cast<std::uint32_t>(f.Number("cc", 10000))};
  } else if (type == "end") {
    records->ended = true;
    records->dropped = f.Number("dropped", kLatest) + f.Number("cupti_dropped", kLatest);
    records->incomplete = f.Number("incomplete");
  } else if (type == "limit") {
    records->limited = true;
  } else if (type == "refused") {
    records->refused = f.Text("message");
  } else {
    return false;
  }
  return true;
}

void Record(std::string_view type, Fields& f, ActivityRecords* records) {
  if (type == "kernel") {
    records->gpu.push_back(Kernel(f));
  } else if (type == "copy") {
    records->gpu.push_back(Copy(f));
  } else if (type == "set") {
    Event event = OnGpu(f, Kind::kSet);
    event.event.bytes = f.Number("by");
    event.event.name = "memset";
    records->gpu.push_back(std::move(event));
  } else if (type == "graph") {
    Event event = OnGpu(f, Kind::kGraph);
    event.event.name = fmt::format("graph {}", f.Number("gr"));
    records->gpu.push_back(std::move(event));
  } else if (type == "api") {
    records->api.push_back(Api(f));
  } else if (type == "sync") {
    if (const std::uint64_t kind = f.Number("k"); kind != kStreamWaitEvent) {
      records->waits[f.Number("c")] = kind;
    }
  } else if (type == "memory") {
    records->allocated[f.Number("c")] = f.Number("by");
  } else if (type == "jit") {
    const std::uint64_t kind = f.Number("k");
    if (kind != kJitStore) {
      records->host.push_back(Loading(f, kind == kJitCompile ? "JIT compilation" : "JIT cache"));
    }
  } else if (type == "overhead") {
    Overhead(f, records);
  } else if (!Meta(type, f, records)) {
    ++records->unknown;
  }
}

std::string_view TypeOf(const Json& json) {
  const auto type = json.is_object() ? json.find("t") : json.end();
  return json.is_object() && type != json.end() && type->is_string()
             ? std::string_view(type->get_ref<const std::string&>())
             : std::string_view();
}

Error Wrong(const std::string& label, std::size_t line, std::string_view what) {
  return Fail(ErrorCode::kParse, fmt::format("{}:{}: {}", label, line, what));
}

/// The first line: is this such a file, and was anything traced?
Status CheckHeader(const Json& json, const std::string& label) {
  Fields f(json);
  if (TypeOf(json) != "kernelpro_activity") {
    return Wrong(label, 1,
                 "not an activity trace: its first line must be a \"kernelpro_activity\" "
                 "object; record it with libkernelpro-activity.so");
  }
  if (const std::uint64_t version = f.Number("version"); version != 1) {
    return Wrong(label, 1,
                 fmt::format("version {} of the format is not known, only 1; read it "
                             "with the kernelpro that recorded it",
                             version));
  }
  if (const std::string error = f.OptionalText("error"); !error.empty()) {
    return Fail(ErrorCode::kUnavailable, fmt::format("{}: nothing was traced: {}", label, error));
  }
  return Ok();
}

/// One line after the first.
Status ReadLine(const Json& json, const std::string& label, std::size_t line,
                ActivityRecords* records) {
  const std::string_view type = TypeOf(json);
  if (type.empty()) {
    return Wrong(label, line, "an object without its type \"t\"");
  }
  Fields f(json);
  if (type == "error") {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}: nothing was traced: {}", label, f.Text("message")));
  }
  Record(type, f, records);
  if (!f.bad().empty()) {
    return Wrong(label, line,
                 fmt::format("field \"{}\" of \"{}\" is missing or has a value that cannot be",
                             f.bad(), Printable(type, 40)));
  }
  if (records->gpu.size() + records->api.size() + records->host.size() + records->names.size() +
          records->waits.size() + records->allocated.size() + records->devices.size() >
      kMostRecords) {
    return Wrong(label, line,
                 fmt::format("more than {} records; trace a shorter run or set "
                             "KERNELPRO_ACTIVITY_LIMIT",
                             kMostRecords));
  }
  return Ok();
}

}  // namespace

Result<ActivityRecords> ParseActivityRecords(std::string_view text, const std::string& label) {
  ActivityRecords records;
  std::size_t line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = text.find('\n');
    const bool whole = end != std::string_view::npos;
    const std::string_view content = Trim(text.substr(0, end));
    text.remove_prefix(whole ? end + 1 : text.size());
    if (content.empty() && line > 1) {
      continue;
    }
    if (content.size() > kLongestLine) {
      return Wrong(label, line, fmt::format("a line of more than {} bytes", kLongestLine));
    }
    const Json json = Json::parse(content, nullptr, false);
    if (json.is_discarded() && !whole && line > 1) {
      records.cut = true;  // the program was killed while it was written
      records.cut_line = line;
      break;
    }
    if (json.is_discarded()) {
      return Wrong(label, line, "not a JSON object; the file was damaged after it was recorded");
    }
    KP_RETURN_IF_ERROR(line == 1 ? CheckHeader(json, label)
                                 : ReadLine(json, label, line, &records));
  }
  if (line == 0) {
    return Fail(ErrorCode::kParse,
                fmt::format("{}:1: an empty file, not an activity trace; did the program end "
                            "before it used the GPU?",
                            label));
  }
  return records;
}

}  // namespace kernelpro
