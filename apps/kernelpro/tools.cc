// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"
#include "commands.h"
#include "report/json.h"
#include "search/record.h"
#include "setup.h"
#include "tool_set.h"

namespace kernelpro::app {
namespace {

report::Json ToolJson(const Tool& tool) {
  const ToolDocument d = tool.document();
  return {{"id", tool.id()},
          {"title", tool.title()},
          {"core", d.core},
          {"scope", tool.of_program() ? "program" : "kernel"},
          {"classes", tool.classes()},
          {"metrics", tool.metrics()},
          {"looks_for", d.looks_for},
          {"severity", d.severity},
          {"bound", d.bound},
          {"source", d.source},
          {"remedies", d.remedies},
          {"not_when", d.not_when},
          {"fires", d.fires},
          {"silent", d.silent},
          {"origin", d.origin}};
}

std::string ToolText(const Tool& tool) {
  const ToolDocument d = tool.document();
  std::string text = fmt::format("{}  {}{}\n", tool.id(), tool.title(), d.core ? "  [core]" : "");
  const auto add = [&text](std::string_view name, const std::string& what) {
    if (!what.empty()) {
      text += fmt::format("  {:<10} {}\n", name, what);
    }
  };
  add("looks for", d.looks_for);
  add("asked when",
      tool.classes().empty() ? "always" : fmt::format("{}", fmt::join(tool.classes(), " ")));
  add("needs", tool.metrics().empty()
                   ? "launch figures only"
                   : fmt::format("{}", fmt::join(tool.metrics(), "\n             ")));
  add("severity", d.severity);
  add("bound", d.bound);
  add("source", d.source);
  for (std::size_t i = 0; i < d.remedies.size(); ++i) {
    add(i == 0 ? "do" : "or", d.remedies[i]);
  }
  add("not when", d.not_when);
  add("fires on", d.fires);
  add("silent on", d.silent);
  add("from", d.origin);
  return text;
}

/// A table of a page of documentation, or of a terminal.
std::string Line(const Tool& tool) {
  const ToolDocument d = tool.document();
  return fmt::format("{:<22}{} {:<52} {}\n", tool.id(), d.core ? '*' : ' ', tool.title(),
                     d.looks_for);
}

}  // namespace

int ShowTools(const ToolsOptions& options) {
  const Result<ToolSet> tools = MakeToolSet(options.rules);
  if (!tools) {
    return Complain(tools.error(), options.json);
  }
  report::Json json = report::Json::array();
  bool found = false;
  for (const Tool* tool : tools->all) {
    if (!options.id.empty() && tool->id() != options.id) {
      continue;
    }
    found = true;
    if (options.json) {
      json.push_back(ToolJson(*tool));
    } else {
      fmt::print("{}", options.id.empty() ? Line(*tool) : ToolText(*tool));
    }
  }
  if (!found) {
    return Complain(Fail(ErrorCode::kInvalidArgument,
                         fmt::format("there is no tool '{}'; kernelpro tools list shows them all",
                                     Printable(options.id, 80))),
                    options.json);
  }
  if (options.json) {
    fmt::print("{}\n", search::Dump({{"tools", std::move(json)}}));
  } else if (options.id.empty()) {
    fmt::print("\n* core. kernelpro tools show ID says what a tool looks for, and its formulas.\n");
  }
  return 0;
}

}  // namespace kernelpro::app
