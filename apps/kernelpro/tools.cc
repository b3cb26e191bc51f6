// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "diagnose/diagnose.h"
#include "report/json.h"
#include "search/record.h"

namespace kernelpro::app {

int ListTools(const PlainOptions& options) {
  report::Json json = report::Json::array();
  for (const auto& tool : BuiltInTools()) {
    if (options.json) {
      json.push_back({{"id", tool->id()},
                      {"title", tool->title()},
                      {"classes", tool->classes()},
                      {"metrics", tool->metrics()}});
    } else {
      fmt::print(
          "{:<20} {:<40} {}\n", tool->id(), tool->title(),
          tool->classes().empty() ? "always" : fmt::format("{}", fmt::join(tool->classes(), " ")));
    }
  }
  if (options.json) {
    fmt::print("{}\n", search::Dump({{"tools", std::move(json)}}));
  }
  return 0;
}

}  // namespace kernelpro::app
