// SPDX-License-Identifier: Apache-2.0
// A server whose tools do what a client's conformance run needs to see.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "mcp/server.h"

namespace kernelpro::mcp {
namespace {

using namespace std::chrono_literals;

/// Called on Serve's tool thread only.
struct Counters {
  long long calls = 0;
  long long cancelled = 0;
};

Tool EchoTool() {
  Tool tool{.name = "echo",
            .title = "Echo",
            .description = "Gives the text back.",
            .input_schema = R"({"type":"object","properties":{"text":{"type":"string"}},
                "required":["text"],"additionalProperties":false})",
            .read_only = true};
  tool.call = [](const Json& arguments, ProgressSink&,
                 const std::stop_token&) -> Result<ToolResult> {
    return ToolResult{.text = arguments["text"].get<std::string>()};
  };
  return tool;
}

/// False when stopped meanwhile.
bool Sleep(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

Tool SlowTool(Counters& counters) {
  Tool tool{.name = "slow",
            .title = "Slow",
            .description = "Takes a few milliseconds for each step and tells of it.",
            .input_schema = R"({"type":"object","properties":{
                "steps":{"type":"integer","minimum":1,"maximum":1000000}},"required":["steps"]})",
            .read_only = true};
  tool.call = [&counters](const Json& arguments, ProgressSink& progress,
                          const std::stop_token& stop) -> Result<ToolResult> {
    const int steps = arguments["steps"].get<int>();
    for (int step = 1; step <= steps; ++step) {
      progress.Report(step, steps, fmt::format("step {}", step));
      if (!Sleep(5ms, stop)) {
        ++counters.cancelled;
        return Fail(ErrorCode::kCancelled, "stopped");
      }
    }
    return ToolResult{.text = fmt::format("{} steps", steps)};
  };
  return tool;
}

Tool FailTool() {
  Tool tool{.name = "fail",
            .title = "Fail",
            .description = "Always fails.",
            .input_schema = R"({"type":"object"})",
            .read_only = true};
  tool.call = [](const Json&, ProgressSink&, const std::stop_token&) -> Result<ToolResult> {
    return Fail(ErrorCode::kUnavailable, "this tool always fails");
  };
  return tool;
}

Tool StructuredTool(Counters& counters) {
  Tool tool{.name = "structured",
            .title = "Structured",
            .description = "Adds numbers; also says how many calls of slow were cancelled.",
            .input_schema = R"({"type":"object","properties":{"values":{"type":"array",
                "items":{"type":"integer"}}},"required":["values"]})",
            .output_schema = R"({"type":"object","properties":{"sum":{"type":"integer"},
                "calls":{"type":"integer"},"cancelled":{"type":"integer"}},
                "required":["sum","calls","cancelled"],"additionalProperties":false})"};
  tool.call = [&counters](const Json& arguments, ProgressSink&,
                          const std::stop_token&) -> Result<ToolResult> {
    long long sum = 0;
    for (const Json& value : arguments["values"]) {
      sum += value.get<long long>();
    }
    ++counters.calls;
    const Json result{{"sum", sum}, {"calls", counters.calls}, {"cancelled", counters.cancelled}};
    return ToolResult{.text = fmt::format("the sum is {}", sum), .structured = result.dump()};
  };
  return tool;
}

Offer ProbeOffer(Counters& counters) {
  Offer offer;
  offer.info = {"mcp_probe_server", "Probe", "1", "For conformance runs."};
  offer.tools = {EchoTool(), SlowTool(counters), FailTool(), StructuredTool(counters)};
  offer.list = []() -> Result<std::vector<Resource>> {
    return std::vector<Resource>{{"probe:text", "text", "Text", "A text.", "text/plain"},
                                 {"probe:json", "json", "JSON", "An object.", "application/json"}};
  };
  offer.templates = {{"probe:number/{n}", "number", "Number", "The number n.", "text/plain"}};
  offer.read = [](const std::string& uri) -> Result<std::string> {
    if (uri == "probe:text") {
      return std::string("some text\n");
    }
    if (uri == "probe:json") {
      return std::string("{\"a\": 1}");
    }
    if (uri.starts_with("probe:number/")) {
      return uri.substr(std::string("probe:number/").size());
    }
    return Fail(ErrorCode::kNotFound, "there is no resource " + uri);
  };
  return offer;
}

}  // namespace
}  // namespace kernelpro::mcp

int main() {
  kernelpro::mcp::Counters counters;
  const auto status =
      kernelpro::mcp::Serve(kernelpro::mcp::ProbeOffer(counters), STDIN_FILENO, STDOUT_FILENO, {});
  if (!status.ok()) {
    fmt::print(stderr, "mcp_probe_server: {}\n", status.error().message);
    return 1;
  }
  return 0;
}
