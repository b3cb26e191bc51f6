// SPDX-License-Identifier: Apache-2.0
#include "selftest/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kernelpro::selftest {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNotPossible = "not possible here";

Json FixtureJson(const FixtureResult& result) {
  Json expected = Json::array();
  for (const Verdict verdict : result.expected) {
    expected.push_back(Name(verdict));
  }
  Json json = {{"name", result.name}, {"attack", result.attack}, {"expected", std::move(expected)}};
  json["got"] = result.possible ? Json(Name(result.got)) : Json(nullptr);
  json["reason"] = result.possible ? result.reason : kNotPossible;
  json["twin"] = result.possible ? Json(Name(result.twin)) : Json(nullptr);
  json["twin_reason"] = result.possible ? result.twin_reason : kNotPossible;
  json["ms"] = result.ms;
  return json;
}

}  // namespace

bool FixtureResult::HostileRight() const {
  return std::ranges::find(expected, got) != expected.end();
}

Tally Count(const std::vector<FixtureResult>& results) {
  Tally tally;
  for (const FixtureResult& result : results) {
    if (!result.possible) {
      ++tally.not_possible;
      continue;
    }
    ++tally.total;
    tally.hostile_right += result.HostileRight() ? 1U : 0U;
    tally.twins_right += result.TwinRight() ? 1U : 0U;
  }
  return tally;
}

std::string Summary(const Tally& tally) {
  std::string text = fmt::format("{} of {} hostile fixtures got their verdict, {} of {} twins pass",
                                 tally.hostile_right, tally.total, tally.twins_right, tally.total);
  if (tally.not_possible > 0) {
    text += fmt::format(" ({} not possible here)", tally.not_possible);
  }
  return text;
}

std::string Names(const std::vector<Verdict>& verdicts) {
  std::string text;
  for (const Verdict verdict : verdicts) {
    text += (text.empty() ? "" : " or ") + std::string(Name(verdict));
  }
  return text;
}

std::string TableHead(std::size_t width) {
  return fmt::format("     {:<{}}  {:<20} {:<18} {:>7}  expected\n", "fixture", width, "got",
                     "twin", "ms");
}

std::string TableRow(const FixtureResult& result, std::size_t width) {
  if (!result.possible) {
    return fmt::format("  -  {:<{}}  {}\n", result.name, width, kNotPossible);
  }
  const bool right = result.HostileRight() && result.TwinRight();
  std::string row =
      fmt::format("{}  {:<{}}  {:<20} {:<18} {:>7.0f}  {}\n", right ? " ok" : "BAD", result.name,
                  width, Name(result.got), Name(result.twin), result.ms, Names(result.expected));
  if (!result.HostileRight()) {
    row += fmt::format("       hostile: {}\n", result.reason.empty() ? "passed" : result.reason);
  }
  if (!result.TwinRight()) {
    row += fmt::format("       twin: {}\n", result.twin_reason);
  }
  return row;
}

Json ResultsJson(const std::string& device, const std::vector<FixtureResult>& results) {
  Json fixtures = Json::array();
  for (const FixtureResult& result : results) {
    fixtures.push_back(FixtureJson(result));
  }
  const Tally tally = Count(results);
  return {{"device", device},
          {"fixtures", std::move(fixtures)},
          {"hostile_right", tally.hostile_right},
          {"twins_right", tally.twins_right},
          {"total", tally.total}};
}

}  // namespace kernelpro::selftest
