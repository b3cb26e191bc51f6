// SPDX-License-Identifier: Apache-2.0
#include "compact.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace kernelpro::experts {
namespace {

using Json = nlohmann::ordered_json;

/// Name, unit and provenance of a column.
using Column = std::tuple<std::string, std::string, int>;

double Rounded(double value) {
  return std::stod(fmt::format("{:.6g}", value));
}

Json Figures(const std::map<std::string, Metric>& metrics) {
  Json json = Json::object();
  for (const auto& [name, metric] : metrics) {
    json[name] = {Rounded(metric.value), metric.unit, static_cast<int>(metric.provenance)};
  }
  return json;
}

std::vector<Column> ColumnsOf(const Profile& profile) {
  std::map<std::string, Column> columns;
  for (const KernelProfile& kernel : profile.kernels) {
    for (const auto& [name, metric] : kernel.metrics) {
      columns.try_emplace(name, name, metric.unit, static_cast<int>(metric.provenance));
    }
  }
  std::vector<Column> list;
  for (const auto& [name, column] : columns) {
    list.push_back(column);
  }
  return list;
}

Json KernelJson(const KernelProfile& kernel, const std::vector<Column>& columns) {
  Json values = Json::array();
  for (const Column& column : columns) {
    const auto value = kernel.Value(std::get<0>(column));
    values.push_back(value ? Json(Rounded(*value)) : Json(nullptr));
  }
  Json json = {{"name", kernel.name},
               {"mangled", kernel.mangled},
               {"grid", {kernel.grid[0], kernel.grid[1], kernel.grid[2]}},
               {"block", {kernel.block[0], kernel.block[1], kernel.block[2]}},
               {"time_us", Rounded(kernel.time_us)},
               {"time_share", Rounded(kernel.time_share)}};
  if (kernel.hot_loop) {
    json["loop"] = {kernel.hot_loop->first, kernel.hot_loop->last, kernel.hot_loop->line};
  }
  json["values"] = std::move(values);
  return json;
}

KernelProfile KernelOf(const Json& json, const std::vector<Column>& columns) {
  KernelProfile kernel;
  kernel.name = json.at("name");
  kernel.mangled = json.at("mangled");
  for (std::size_t i = 0; i < 3; ++i) {
    kernel.grid[i] = json.at("grid").at(i);
    kernel.block[i] = json.at("block").at(i);
  }
  kernel.time_us = json.at("time_us");
  kernel.time_share = json.at("time_share");
  kernel.time_provenance = Provenance::kMeasured;
  if (const auto loop = json.find("loop"); loop != json.end()) {
    kernel.hot_loop = HotLoop{loop->at(0), loop->at(1), "kernel.cu", loop->at(2)};
  }
  const Json& values = json.at("values");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (const Json& value = values.at(i); !value.is_null()) {
      const auto& [name, unit, provenance] = columns[i];
      kernel.metrics[name] = {value.get<double>(), unit, static_cast<Provenance>(provenance)};
    }
  }
  return kernel;
}

}  // namespace

std::string ToCompact(const Profile& profile) {
  const std::vector<Column> columns = ColumnsOf(profile);
  Json json = {{"device", profile.device}, {"source", profile.source}};
  json["system"] = Figures(profile.system);
  json["columns"] = columns;
  std::string text = json.dump();
  text.pop_back();  // one line a kernel: a change shows where it is
  text += ",\n\"kernels\":[";
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
    text += (i == 0 ? "\n" : ",\n") + KernelJson(profile.kernels[i], columns).dump();
  }
  return text + "\n]}\n";
}

Result<Profile> FromCompact(std::string_view text, std::string_view label) {
  try {
    const Json json = Json::parse(text);
    Profile profile;
    profile.device = json.at("device");
    profile.source = json.at("source");
    for (const auto& [name, figure] : json.at("system").items()) {
      profile.system[name] = {figure.at(0), figure.at(1),
                              static_cast<Provenance>(figure.at(2).get<int>())};
    }
    const auto columns = json.at("columns").get<std::vector<Column>>();
    for (const Json& kernel : json.at("kernels")) {
      profile.kernels.push_back(KernelOf(kernel, columns));
    }
    return profile;
  } catch (const Json::exception& error) {
    return Fail(ErrorCode::kParse, fmt::format("{}: {}", label, error.what()));
  }
}

}  // namespace kernelpro::experts
