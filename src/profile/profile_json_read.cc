// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "kernelpro/profile.h"
#include "profile/profile_json.h"

namespace kernelpro {
namespace {

using Json = nlohmann::json;  // keys in a tree: an object with many keys stays cheap

/// Takes values out of JSON. The first thing that does not fit is kept as the error, with the path
/// to it; what is taken afterwards is worthless.
class Reader {
 public:
  explicit Reader(std::string_view label) : label_(label) {}

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  /// Calls read(value) when the object has the key and it is not null.
  template <class F>
  void With(const Json& object, std::string_view key, F read) {
    const auto found = object.find(key);
    if (found != object.end() && !found->is_null() && !error_) {
      path_.push_back({key, 0});
      read(*found);
      path_.pop_back();
    }
  }

  /// Calls read(element) for each element of the array under `key`.
  template <class F>
  void ForEach(const Json& object, std::string_view key, F read) {
    With(object, key, [&](const Json& array) {
      if (!Expect(array.is_array(), "an array")) {
        return;
      }
      for (std::size_t i = 0; i < array.size() && !error_; ++i) {
        path_.push_back({{}, i});
        read(array[i]);
        path_.pop_back();
      }
    });
  }

  /// Calls read(key, value) for each pair of the object under `key`, null values included.
  template <class F>
  void ForPairs(const Json& object, std::string_view key, F read) {
    With(object, key, [&](const Json& pairs) {
      if (!ExpectObject(pairs)) {
        return;
      }
      for (auto it = pairs.begin(); it != pairs.end() && !error_; ++it) {
        path_.push_back({it.key(), 0});
        read(it.key(), *it);
        path_.pop_back();
      }
    });
  }

  bool Expect(bool fits, std::string_view what) {
    if (!fits && !error_) {
      Refuse(fmt::format("expected {}", what));
    }
    return fits;
  }

  bool ExpectObject(const Json& json) { return Expect(json.is_object(), "an object"); }

  void Refuse(std::string_view what) {
    std::string path;
    for (const Step& step : path_) {
      path += step.key.data() == nullptr ? fmt::format("[{}]", step.index)
                                         : fmt::format("{}{}", path.empty() ? "" : ".", step.key);
    }
    error_ = Fail(ErrorCode::kParse,
                  fmt::format("{}: {}{}{}; the fields are listed in "
                              "docs/profile_format.md",
                              label_, Printable(path, 500), path.empty() ? "" : ": ", what));
  }

  void Get(const Json& json, std::string& out) {
    if (Expect(json.is_string(), "a string")) {
      out = json.get_ref<const std::string&>();
    }
  }

  void Get(const Json& json, double& out) {
    if (Expect(json.is_number(), "a number")) {
      out = json.get<double>();
    }
  }

  void Get(const Json& json, bool& out) {
    if (Expect(json.is_boolean(), "true or false")) {
      out = json.get<bool>();
    }
  }

  void Get(const Json& json, std::uint64_t& out) {
    if (Expect(json.is_number_unsigned(), "a whole number, not negative")) {
      out = json.get<std::uint64_t>();
    }
  }

  void Get(const Json& json, std::uint32_t& out) {
    std::uint64_t wide = 0;
    Get(json, wide);
    if (!error_ && Expect(wide <= std::numeric_limits<std::uint32_t>::max(), "less than 2^32")) {
      out = static_cast<std::uint32_t>(wide);
    }
  }

  void Get(const Json& json, std::int64_t& out) {
    const bool fits = json.is_number_integer() &&
                      (!json.is_number_unsigned() ||
                       json.get<std::uint64_t>() <=
                           static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    if (Expect(fits, "a whole number of 64 bits")) {
      out = json.get<std::int64_t>();
    }
  }

  void Get(const Json& json, std::uint32_t (&out)[3]) {
    if (!Expect(json.is_array() && json.size() == 3, "an array of three extents")) {
      return;
    }
    for (std::size_t i = 0; i < 3; ++i) {
      Get(json[i], out[i]);
    }
  }

  void Get(const Json& json, Provenance& out) {
    std::string name;
    Get(json, name);
    for (const Provenance p :
         {Provenance::kMeasured, Provenance::kCounted, Provenance::kModelled}) {
      if (name == Name(p)) {
        out = p;
        return;
      }
    }
    Expect(false, "\"measured\", \"counted\" or \"modelled\"");
  }

  void Get(const Json& json, TimelineEvent::Kind& out) {
    using Kind = TimelineEvent::Kind;
    constexpr std::array<Kind, 9> kKinds = {Kind::kKernel, Kind::kCopy,  Kind::kSet,
                                            Kind::kLaunch, Kind::kSync,  Kind::kAllocation,
                                            Kind::kApi,    Kind::kGraph, Kind::kCompile};
    std::string name;
    Get(json, name);
    const auto* const found =
        std::ranges::find_if(kKinds, [&](Kind kind) { return Name(kind) == name; });
    if (Expect(found != kKinds.end(), "a kind of event")) {
      out = *found;
    }
  }

  template <class T>
  void Field(const Json& object, std::string_view key, T& out) {
    With(object, key, [&](const Json& json) { Get(json, out); });
  }

  void Strings(const Json& object, std::string_view key, std::vector<std::string>& out) {
    ForEach(object, key, [&](const Json& json) { Get(json, out.emplace_back()); });
  }

 private:
  struct Step {
    std::string_view key;  ///< null: an element
    std::size_t index;
  };

  std::string label_;
  std::vector<Step> path_;
  std::optional<Error> error_;
};

/// A metric needs its value, unit and provenance; one whose value is null is named in `missing`.
void ReadMetrics(Reader& r, const Json& object, std::string_view key,
                 std::map<std::string, Metric>& out, std::vector<std::string>* missing) {
  r.ForPairs(object, key, [&](const std::string& name, const Json& json) {
    if (!r.ExpectObject(json)) {
      return;
    }
    const auto value = json.find("value");
    if (!r.Expect(value != json.end() && json.contains("unit") && json.contains("provenance"),
                  "{\"value\", \"unit\", \"provenance\"}")) {
      return;
    }
    Metric metric;
    r.Field(json, "value", metric.value);
    r.Field(json, "unit", metric.unit);
    r.Field(json, "provenance", metric.provenance);
    if (!value->is_null()) {
      out.insert_or_assign(out.end(), name, std::move(metric));
    } else if (missing != nullptr) {
      missing->push_back(name);
    }
  });
}

void ReadHotSpot(Reader& r, const Json& json, HotSpot& spot) {
  r.Field(json, "address", spot.address);
  r.Field(json, "instruction", spot.instruction);
  r.Field(json, "file", spot.file);
  r.Field(json, "line", spot.line);
  r.Field(json, "samples", spot.samples);
  r.ForPairs(json, "stalls", [&](const std::string& reason, const Json& samples) {
    if (!samples.is_null()) {
      r.Get(samples, spot.stalls[reason]);
    }
  });
  r.Field(json, "producer", spot.producer);
  r.Field(json, "producer_address", spot.producer_address);
  r.Field(json, "producer_file", spot.producer_file);
  r.Field(json, "producer_line", spot.producer_line);
  r.Field(json, "distance", spot.distance);
}

void ReadNote(Reader& r, const Json& json, CompilerNote& note) {
  r.Field(json, "kind", note.kind);
  r.Field(json, "code", note.code);
  r.Field(json, "text", note.text);
  r.Field(json, "file", note.file);
  r.Field(json, "line", note.line);
}

void ReadKernel(Reader& r, const Json& json, KernelProfile& kernel) {
  r.Field(json, "name", kernel.name);
  r.Field(json, "mangled", kernel.mangled);
  r.Field(json, "grid", kernel.grid);
  r.Field(json, "block", kernel.block);
  r.Field(json, "time_us", kernel.time_us);
  if (kernel.time_us != 0) {
    r.Expect(json.contains("provenance"), "\"provenance\" beside \"time_us\"");
  }
  r.Field(json, "provenance", kernel.time_provenance);
  r.Field(json, "time_share", kernel.time_share);
  r.Strings(json, "missing", kernel.missing);
  ReadMetrics(r, json, "metrics", kernel.metrics, &kernel.missing);
  r.ForPairs(json, "texts",
             [&](const std::string& name, const Json& text) { r.Get(text, kernel.texts[name]); });
  r.ForEach(json, "lines", [&](const Json& line) {
    if (r.ExpectObject(line)) {
      LineMetrics& out = kernel.lines.emplace_back();
      r.Field(line, "file", out.file);
      r.Field(line, "line", out.line);
      ReadMetrics(r, line, "metrics", out.metrics, nullptr);
    }
  });
  r.ForPairs(json, "opcodes", [&](const std::string& opcode, const Json& count) {
    r.Get(count, kernel.opcodes[opcode]);
  });
  r.ForEach(json, "hot_spots", [&](const Json& spot) {
    if (r.ExpectObject(spot)) {
      ReadHotSpot(r, spot, kernel.hot_spots.emplace_back());
    }
  });
  r.ForEach(json, "notes", [&](const Json& note) {
    if (r.ExpectObject(note)) {
      ReadNote(r, note, kernel.notes.emplace_back());
    }
  });
  r.With(json, "hot_loop", [&](const Json& loop) {
    if (r.ExpectObject(loop)) {
      HotLoop& out = kernel.hot_loop.emplace();
      r.Field(loop, "first", out.first);
      r.Field(loop, "last", out.last);
      r.Field(loop, "file", out.file);
      r.Field(loop, "line", out.line);
    }
  });
}

void ReadEvent(Reader& r, const Json& json, TimelineEvent& event) {
  r.Expect(json.contains("kind") && json.contains("start_ns") && json.contains("end_ns"),
           "{\"kind\", \"start_ns\", \"end_ns\"}");
  r.Field(json, "kind", event.kind);
  r.Field(json, "name", event.name);
  r.Field(json, "start_ns", event.start_ns);
  r.Field(json, "end_ns", event.end_ns);
  r.Field(json, "stream", event.stream);
  r.Field(json, "correlation", event.correlation);
  r.Field(json, "bytes", event.bytes);
  r.Field(json, "pageable", event.pageable);
  r.Field(json, "graph", event.graph);
  r.Field(json, "grid", event.grid);
  r.Field(json, "block", event.block);
}

void ReadProfile(Reader& r, const Json& json, Profile& profile) {
  if (!r.ExpectObject(json)) {
    return;
  }
  std::uint32_t format = kProfileFormat;
  r.Field(json, "kernelpro_profile", format);
  if (format > kProfileFormat) {
    r.Refuse(fmt::format("format {} is newer than this program's ({}); update KernelPro", format,
                         kProfileFormat));
  }
  r.Expect(json.contains("kernels"), "\"kernels\"");
  r.Field(json, "device", profile.device);
  r.Field(json, "source", profile.source);
  r.ForEach(json, "kernels", [&](const Json& kernel) {
    if (r.ExpectObject(kernel)) {
      ReadKernel(r, kernel, profile.kernels.emplace_back());
    }
  });
  ReadMetrics(r, json, "task", profile.task, nullptr);
  ReadMetrics(r, json, "system", profile.system, nullptr);
  r.ForEach(json, "timeline", [&](const Json& event) {
    if (r.ExpectObject(event)) {
      ReadEvent(r, event, profile.timeline.emplace_back());
    }
  });
  r.Strings(json, "notes", profile.notes);
}

std::size_t LineOf(std::string_view text, std::size_t byte) {
  return 1 + static_cast<std::size_t>(
                 std::ranges::count(text.substr(0, std::min(byte, text.size())), '\n'));
}

}  // namespace

Result<Profile> ParseProfileJson(std::string_view text, std::string_view label) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& e) {
    return Fail(ErrorCode::kParse, fmt::format("{}:{}: this is not JSON: {}", label,
                                               LineOf(text, e.byte), Printable(e.what(), 300)));
  } catch (const Json::exception& e) {  // "1e999"
    return Fail(ErrorCode::kParse,
                fmt::format("{}: this is not JSON: {}", label, Printable(e.what(), 300)));
  }
  Reader reader(label);
  Profile profile;
  ReadProfile(reader, json, profile);
  if (reader.error()) {
    return *reader.error();
  }
  return profile;
}

}  // namespace kernelpro
