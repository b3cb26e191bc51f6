// SPDX-License-Identifier: Apache-2.0
#include "measurements.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "emulator/simt/report.h"

namespace kernelpro::golden {
namespace {

using Json = nlohmann::json;

Result<Json> ReadJson(const std::filesystem::path& path) {
  KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) {
    return Fail(ErrorCode::kParse, fmt::format("{}: not a JSON array", path.string()));
  }
  return json;
}

simt::Dim3 ToDim3(const Json& json) {
  return {json.at(0).get<std::uint32_t>(), json.at(1).get<std::uint32_t>(),
          json.at(2).get<std::uint32_t>()};
}

Argument ToArgument(const Json& json) {
  static const std::map<std::string, Argument::Kind> kinds = {
      {"buffer_floats", Argument::Kind::kBufferFloats},
      {"i32", Argument::Kind::kInt32},
      {"f32", Argument::Kind::kFloat},
      {"f64", Argument::Kind::kDouble},
  };
  const auto entry = json.begin();
  return {kinds.at(entry.key()), entry.value().get<double>()};
}

Variant ToVariant(const Json& json) {
  Variant v;
  v.name = json.at("name").get<std::string>();
  v.kernel = json.at("kernel").get<std::string>();
  v.block = ToDim3(json.at("block"));
  v.grid = ToDim3(json.at("grid"));
  for (const Json& argument : json.at("args")) {
    v.arguments.push_back(ToArgument(argument));
  }
  return v;
}

void AddMetrics(const Json& times, const Json& profiles, std::vector<Variant>& variants) {
  std::map<std::string, double> measured;
  for (const Json& entry : times) {
    measured[entry.at("name").get<std::string>()] = entry.at("us").get<double>();
  }
  std::map<std::string, const Json*> profile_of;
  for (const Json& profile : profiles) {
    profile_of[profile.at("name").get<std::string>()] = &profile;
  }
  for (Variant& v : variants) {
    v.measured_us = measured.at(v.name);
    for (const auto& [metric, value] : profile_of.at(v.name)->items()) {
      if (value.is_number()) {
        v.ncu[metric] = value.get<double>();
      }
    }
  }
}

}  // namespace

double Variant::Metric(const std::string& metric) const {
  const auto found = ncu.find(metric);
  return found == ncu.end() ? 0 : found->second;
}

Result<std::vector<Variant>> ReadMeasurements(const std::filesystem::path& folder) {
  KP_ASSIGN_OR_RETURN(const Json launches, ReadJson(folder / "variants.json"));
  KP_ASSIGN_OR_RETURN(const Json times, ReadJson(folder / "times.json"));
  KP_ASSIGN_OR_RETURN(const Json profiles, ReadJson(folder / "ncu.json"));
  try {
    std::vector<Variant> variants;
    for (const Json& launch : launches) {
      variants.push_back(ToVariant(launch));
    }
    AddMetrics(times, profiles, variants);
    return variants;
  } catch (const std::exception& problem) {
    return Fail(ErrorCode::kParse, fmt::format("{}: {}", folder.string(), problem.what()));
  }
}

}  // namespace kernelpro::golden
