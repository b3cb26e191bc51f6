// SPDX-License-Identifier: Apache-2.0
// Text is written as it comes, without a tree in memory: a file with 30,000 launches has 10 million
// metrics.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernelpro/profile.h"
#include "profile/profile_json.h"

namespace kernelpro {
namespace {

class Writer {
 public:
  void Open(char bracket) {
    Separate();
    out_.push_back(bracket);
    fresh_ = true;
  }

  void Close(char bracket) {
    out_.push_back(bracket);
    fresh_ = false;
  }

  void Key(std::string_view key) {
    Separate();
    Quote(key);
    out_.push_back(':');
    fresh_ = true;
  }

  void Value(std::string_view text) {
    Separate();
    Quote(text);
  }

  void Value(const std::string& text) { Value(std::string_view(text)); }

  void Value(double number) {
    Separate();
    if (!std::isfinite(number)) {
      out_ += "null";
    } else if (number == 0 && std::signbit(number)) {
      out_ += "-0.0";  // "-0" is an integer to some parsers
    } else {
      fmt::format_to(std::back_inserter(out_), "{}", number);  // shortest that reads back alike
    }
  }

  void Value(bool value) {
    Separate();
    out_ += value ? "true" : "false";
  }

  void Value(std::uint32_t number) { Integer(number); }

  void Value(std::uint64_t number) { Integer(number); }

  void Value(std::int64_t number) { Integer(number); }

  void Value(int number) { Integer(number); }

  void Value(const std::uint32_t (&dim)[3]) {
    Open('[');
    for (const std::uint32_t extent : dim) {
      Value(extent);
    }
    Close(']');
  }

  void Value(const std::vector<std::string>& texts) {
    Open('[');
    for (const std::string& text : texts) {
      Value(text);
    }
    Close(']');
  }

  template <class T>
  void Field(std::string_view key, const T& value) {
    Key(key);
    Value(value);
  }

  void Null() {
    Separate();
    out_ += "null";
  }

  [[nodiscard]] std::string Take() { return std::move(out_); }

 private:
  void Separate() {
    if (!fresh_) {
      out_.push_back(',');
    }
    fresh_ = false;
  }

  template <class T>
  void Integer(T number) {
    Separate();
    fmt::format_to(std::back_inserter(out_), "{}", number);
  }

  void Quote(std::string_view text) {
    const bool plain = std::ranges::all_of(
        text, [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
    if (!plain) {
      out_ += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      return;
    }
    out_.push_back('"');
    out_ += text;
    out_.push_back('"');
  }

  std::string out_;
  bool fresh_ = true;  ///< the next value follows a bracket or a key
};

void WriteMetrics(Writer& w, const std::map<std::string, Metric>& metrics) {
  w.Open('{');
  for (const auto& [name, metric] : metrics) {
    if (!std::isfinite(metric.value)) {
      continue;
    }
    w.Key(name);
    w.Open('{');
    w.Field("value", metric.value);
    w.Field("unit", metric.unit);
    w.Field("provenance", Name(metric.provenance));
    w.Close('}');
  }
  w.Close('}');
}

void WriteLines(Writer& w, const std::vector<LineMetrics>& lines) {
  w.Open('[');
  for (const LineMetrics& line : lines) {
    w.Open('{');
    w.Field("file", line.file);
    w.Field("line", line.line);
    w.Key("metrics");
    WriteMetrics(w, line.metrics);
    w.Close('}');
  }
  w.Close(']');
}

template <class T>
void WriteMap(Writer& w, const std::map<std::string, T>& map) {
  w.Open('{');
  for (const auto& [key, value] : map) {
    w.Field(key, value);
  }
  w.Close('}');
}

void WriteHotSpots(Writer& w, const std::vector<HotSpot>& spots) {
  w.Open('[');
  for (const HotSpot& spot : spots) {
    w.Open('{');
    w.Field("address", spot.address);
    w.Field("instruction", spot.instruction);
    w.Field("file", spot.file);
    w.Field("line", spot.line);
    w.Field("samples", spot.samples);
    w.Key("stalls");
    WriteMap(w, spot.stalls);
    w.Field("producer", spot.producer);
    w.Field("producer_address", spot.producer_address);
    w.Field("producer_file", spot.producer_file);
    w.Field("producer_line", spot.producer_line);
    w.Field("distance", spot.distance);
    w.Close('}');
  }
  w.Close(']');
}

void WriteNotes(Writer& w, const std::vector<CompilerNote>& notes) {
  w.Open('[');
  for (const CompilerNote& note : notes) {
    w.Open('{');
    w.Field("kind", note.kind);
    w.Field("code", note.code);
    w.Field("text", note.text);
    w.Field("file", note.file);
    w.Field("line", note.line);
    w.Close('}');
  }
  w.Close(']');
}

std::vector<std::string> MissingOf(const KernelProfile& kernel) {
  std::vector<std::string> missing = kernel.missing;
  for (const auto& [name, metric] : kernel.metrics) {
    if (!std::isfinite(metric.value) && std::ranges::find(missing, name) == missing.end()) {
      missing.push_back(name);
    }
  }
  return missing;
}

void WriteKernel(Writer& w, const KernelProfile& kernel) {
  w.Open('{');
  w.Field("name", kernel.name);
  w.Field("mangled", kernel.mangled);
  w.Field("grid", kernel.grid);
  w.Field("block", kernel.block);
  w.Field("time_us", kernel.time_us);
  w.Field("provenance", Name(kernel.time_provenance));
  w.Field("time_share", kernel.time_share);
  w.Key("metrics");
  WriteMetrics(w, kernel.metrics);
  w.Field("missing", MissingOf(kernel));
  w.Key("texts");
  WriteMap(w, kernel.texts);
  w.Key("lines");
  WriteLines(w, kernel.lines);
  w.Key("opcodes");
  WriteMap(w, kernel.opcodes);
  w.Key("hot_spots");
  WriteHotSpots(w, kernel.hot_spots);
  w.Key("hot_loop");
  if (kernel.hot_loop) {
    w.Open('{');
    w.Field("first", kernel.hot_loop->first);
    w.Field("last", kernel.hot_loop->last);
    w.Field("file", kernel.hot_loop->file);
    w.Field("line", kernel.hot_loop->line);
    w.Close('}');
  } else {
    w.Null();
  }
  w.Key("notes");
  WriteNotes(w, kernel.notes);
  w.Close('}');
}

void WriteKernels(Writer& w, const Profile& profile) {
  w.Open('[');
  for (const KernelProfile& kernel : profile.kernels) {
    WriteKernel(w, kernel);
  }
  w.Close(']');
}

bool IsUnit(const std::uint32_t (&dim)[3]) {
  return dim[0] == 1 && dim[1] == 1 && dim[2] == 1;
}

/// A trace has many events: what an event does not have is left out.
void WriteEvent(Writer& w, const TimelineEvent& event) {
  w.Open('{');
  w.Field("kind", Name(event.kind));
  w.Field("name", event.name);
  w.Field("start_ns", event.start_ns);
  w.Field("end_ns", event.end_ns);
  if (event.stream != 0) {
    w.Field("stream", event.stream);
  }
  if (event.correlation != 0) {
    w.Field("correlation", event.correlation);
  }
  if (event.bytes != 0) {
    w.Field("bytes", event.bytes);
  }
  if (event.pageable) {
    w.Field("pageable", true);
  }
  if (event.graph) {
    w.Field("graph", true);
  }
  if (!IsUnit(event.grid) || !IsUnit(event.block)) {
    w.Field("grid", event.grid);
    w.Field("block", event.block);
  }
  w.Close('}');
}

}  // namespace

std::string ProfileJson(const Profile& profile) {
  Writer w;
  w.Open('{');
  w.Field("kernelpro_profile", kProfileFormat);
  w.Field("device", profile.device);
  w.Field("source", profile.source);
  w.Key("kernels");
  WriteKernels(w, profile);
  w.Key("task");
  WriteMetrics(w, profile.task);
  w.Key("system");
  WriteMetrics(w, profile.system);
  w.Key("timeline");
  w.Open('[');
  for (const TimelineEvent& event : profile.timeline) {
    WriteEvent(w, event);
  }
  w.Close(']');
  w.Field("notes", profile.notes);
  w.Close('}');
  return w.Take();
}

std::string KernelsJson(const Profile& profile) {
  Writer w;
  WriteKernels(w, profile);
  return w.Take();
}

std::string MetricsJson(const std::map<std::string, Metric>& metrics) {
  Writer w;
  WriteMetrics(w, metrics);
  return w.Take();
}

std::string_view Name(TimelineEvent::Kind kind) {
  switch (kind) {
    case TimelineEvent::Kind::kKernel:
      return "kernel";
    case TimelineEvent::Kind::kCopy:
      return "copy";
    case TimelineEvent::Kind::kSet:
      return "set";
    case TimelineEvent::Kind::kLaunch:
      return "launch";
    case TimelineEvent::Kind::kSync:
      return "sync";
    case TimelineEvent::Kind::kAllocation:
      return "allocation";
    case TimelineEvent::Kind::kApi:
      return "api";
    case TimelineEvent::Kind::kGraph:
      return "graph";
    case TimelineEvent::Kind::kCompile:
      return "compile";
  }
  return "unknown";
}

}  // namespace kernelpro
