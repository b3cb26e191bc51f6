// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/research_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "propose/llm/code_extraction.h"
#include "propose/llm/finding_tool.h"

namespace kernelpro::agents {
namespace {

using nlohmann::json;

constexpr std::uint32_t kMostLines = 200;
constexpr std::size_t kMostHits = 20;

Error WrongArguments(std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, std::string(what));
}

std::optional<std::string> Text(const json& arguments, const char* key) {
  const auto value = arguments.find(key);
  return value != arguments.end() && value->is_string() &&
                 !Trim(value->get_ref<const std::string&>()).empty()
             ? std::optional(value->get<std::string>())
             : std::nullopt;
}

struct LineRange {
  std::uint32_t first = 1, last = 1;
};

std::optional<LineRange> ReadRange(const json& arguments) {
  LineRange range;
  for (const auto& [key, target] : {std::pair("first", &range.first), {"last", &range.last}}) {
    const auto value = arguments.find(key);
    if (value == arguments.end() || !value->is_number_unsigned() ||
        value->get<std::uint64_t>() > 10'000'000 || value->get<std::uint64_t>() < 1) {
      return std::nullopt;
    }
    *target = value->get<std::uint32_t>();
  }
  return range.last < range.first ? std::nullopt : std::optional(range);
}

constexpr std::string_view kRangeWanted =
    "first and last must be line numbers, first at least 1 and last not before it";

AgentTool ReadSource(const Turn& turn) {
  AgentTool tool;
  tool.spec = {.name = "read_source",
               .description =
                   "Lines of the kernel that the plan starts from, with their numbers, "
                   "at most 200.",
               .schema = R"({"type":"object","properties":{"first":{"type":"integer"},"last":)"
                         R"({"type":"integer"}},"required":["first","last"],)"
                         R"("additionalProperties":false})"};
  const std::string* source = &turn.request.parent.source;
  tool.run = [source](const json& arguments) -> Result<std::string> {
    const std::optional<LineRange> range = ReadRange(arguments);
    if (!range) {
      return WrongArguments(kRangeWanted);
    }
    const std::vector<std::string_view> lines = Lines(*source);
    if (range->first > lines.size()) {
      return WrongArguments(fmt::format("the kernel has {} lines", lines.size()));
    }
    const std::size_t last = std::min<std::size_t>(
        {range->last, lines.size(), std::size_t{range->first} + kMostLines - 1});
    std::string text;
    for (std::size_t i = range->first; i <= last; ++i) {
      text += fmt::format("{}: {}\n", i, lines[i - 1]);
    }
    return text;
  };
  return tool;
}

AgentTool SearchCode(const codesearch::CodeIndex& code) {
  AgentTool tool;
  tool.spec = {.name = "search_code",
               .description =
                   "Lines of the library sources on this machine that hold all words of "
                   "the query, as path:line: text.",
               .schema = R"({"type":"object","properties":{"query":{"type":"string"}},)"
                         R"("required":["query"],"additionalProperties":false})"};
  tool.run = [&code](const json& arguments) -> Result<std::string> {
    const std::optional<std::string> query = Text(arguments, "query");
    if (!query || query->size() > 200) {
      return WrongArguments("query must be a text of 1 to 200 bytes");
    }
    KP_ASSIGN_OR_RETURN(const std::vector<codesearch::Hit> hits, code.Search(*query, kMostHits));
    std::string text;
    for (const codesearch::Hit& hit : hits) {
      text += fmt::format("{}:{}: {}\n", hit.path, hit.line, hit.text);
    }
    return text.empty() ? std::string("no line holds all of these words") : text;
  };
  return tool;
}

AgentTool ReadCode(const codesearch::CodeIndex& code) {
  AgentTool tool;
  tool.spec = {.name = "read_code",
               .description = "Lines of one library source that search_code named, at most 200.",
               .schema = R"({"type":"object","properties":{"path":{"type":"string"},"first":)"
                         R"({"type":"integer"},"last":{"type":"integer"}},"required":["path",)"
                         R"("first","last"],"additionalProperties":false})"};
  tool.run = [&code](const json& arguments) -> Result<std::string> {
    const std::optional<std::string> path = Text(arguments, "path");
    const std::optional<LineRange> range = ReadRange(arguments);
    if (!path) {
      return WrongArguments("path must be a text");
    }
    if (!range) {
      return WrongArguments(kRangeWanted);
    }
    return code.Read(*path, range->first, std::min(range->last, range->first + kMostLines - 1));
  };
  return tool;
}

AgentTool SassLoop(const Turn& turn, Workshop& workshop) {
  AgentTool tool;
  tool.spec = {.name = "get_sass_loop",
               .description = "Machine code of the kernel's hottest loop, with source lines.",
               .schema = R"({"type":"object","properties":{},"additionalProperties":false})"};
  tool.run = [turn, &workshop](const json&) {
    return workshop.SassLoop(turn.request.parent, turn.stop);
  };
  return tool;
}

AgentTool RunExperiment(const Turn& turn, Workshop& workshop, ResearchState& state) {
  AgentTool tool;
  tool.spec = {.name = "run_experiment",
               .description =
                   "Compiles, checks and times a kernel of yours on the emulator: verdict, "
                   "modelled time, main counters. Once only: vary the one thing whose effect "
                   "decides the question. The source is a whole file.",
               .schema = R"({"type":"object","properties":{"question":{"type":"string"},"source":)"
                         R"({"type":"string"}},"required":["question","source"],)"
                         R"("additionalProperties":false})"};
  tool.run = [turn, &workshop, &state](const json& arguments) -> Result<std::string> {
    const std::optional<std::string> source = Text(arguments, "source");
    if (!source || !Text(arguments, "question")) {
      return WrongArguments("question and source must be texts");
    }
    if (state.experimented) {
      return Fail(ErrorCode::kUnavailable, "the one experiment for this kernel was made");
    }
    Extraction kernel = ExtractKernel(*source);
    if (!kernel.ok()) {
      return WrongArguments(kernel.why);
    }
    state.experimented = true;
    return workshop.Experiment(
        Candidate{.source = std::move(kernel.source), .flags = turn.request.parent.flags},
        turn.stop);
  };
  return tool;
}

}  // namespace

std::vector<AgentTool> ResearchTools(const Setting& setting, const Turn& turn, Workshop* workshop,
                                     const codesearch::CodeIndex* code, ResearchState& state) {
  std::vector<AgentTool> tools;
  tools.push_back(ReadSource(turn));
  if (setting.options.feedback == FeedbackMode::kTools) {
    if (setting.options.orchestration == Orchestration::kProactive) {
      tools.push_back(MakeFindingTool(turn.request.diagnosis, state.shown_findings));
    }
    if (workshop != nullptr) {
      tools.push_back(SassLoop(turn, *workshop));
      tools.push_back(RunExperiment(turn, *workshop, state));
    }
  }
  if (code != nullptr) {
    tools.push_back(SearchCode(*code));
    tools.push_back(ReadCode(*code));
  }
  return tools;
}

}  // namespace kernelpro::agents
