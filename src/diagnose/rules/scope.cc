// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules/scope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "diagnose/bounds.h"
#include "diagnose/facts.h"
#include "kernelpro/profile.h"

namespace kernelpro::diagnose {
namespace {

struct Resource {
  std::string_view name;
  std::optional<double> Utilisation::* raw;
  double Shares::* normalised;
};

constexpr std::array<Resource, 10> kResources = {{{"dram", &Utilisation::dram, &Shares::dram},
                                                  {"l2", &Utilisation::l2, &Shares::l2},
                                                  {"l1", &Utilisation::l1, &Shares::l1},
                                                  {"lsu", &Utilisation::lsu, &Shares::lsu},
                                                  {"tensor", &Utilisation::tensor, &Shares::tensor},
                                                  {"fma", &Utilisation::fma, &Shares::fma},
                                                  {"alu", &Utilisation::alu, &Shares::alu},
                                                  {"fp64", &Utilisation::fp64, &Shares::fp64},
                                                  {"xu", &Utilisation::xu, &Shares::xu},
                                                  {"issue", &Utilisation::issue, &Shares::issue}}};

using HardwareFigure = std::pair<std::string_view, double (*)(const Hardware&)>;
constexpr std::array<HardwareFigure, 11> kHardware = {{
    {"sm_count", [](const Hardware& h) -> double { return h.sm_count; }},
    {"clock_hz", [](const Hardware& h) { return h.clock_hz; }},
    {"dram_bytes_per_s", [](const Hardware& h) { return h.dram_bytes_per_s; }},
    {"dram_latency_s", [](const Hardware& h) { return h.dram_latency_s; }},
    {"l2_bytes_per_s", [](const Hardware& h) { return h.l2_bytes_per_s; }},
    {"l2_bytes", [](const Hardware& h) { return h.l2_bytes; }},
    {"fp32_flops_per_s", [](const Hardware& h) { return h.fp32_flops_per_s; }},
    {"fp64_flops_per_s", [](const Hardware& h) { return h.fp64_flops_per_s; }},
    {"tensor_flops_per_s", [](const Hardware& h) { return h.tensor_flops_per_s; }},
    {"warps_per_sm", [](const Hardware& h) -> double { return h.warps_per_sm; }},
    {"arch", [](const Hardware& h) -> double { return h.arch; }},
}};

constexpr std::array<std::string_view, 9> kPlain = {
    "I", "U", "T", "grid", "block", "warps", "time_us", "share", "waves_of_blocks"};

std::optional<double> Plain(const ToolInput& in, std::string_view name) {
  const double block = BlockSize(in.kernel);
  if (name == "I") {
    const bool known = in.kernel.Value("smsp__issue_active.avg.per_cycle_active") || in.use.issue;
    return known ? std::optional(IssueActive(in)) : std::nullopt;
  }
  if (name == "U") {
    return MaxUse(Normalised(in.use, in.hardware));
  }
  if (name == "T") {
    const double seconds = RunSeconds(in.kernel);
    return seconds > 0 ? std::optional(seconds) : std::nullopt;
  }
  if ((name == "grid" || name == "block" || name == "warps") && !HasShape(in.kernel)) {
    return std::nullopt;
  }
  if (name == "grid") {
    return GridSize(in.kernel);
  }
  if (name == "block") {
    return block;
  }
  if (name == "waves_of_blocks") {
    return Waves(in.kernel, in.hardware);
  }
  if (name == "warps") {
    return std::ceil(block / 32);
  }
  return name == "time_us" ? in.kernel.time_us : in.kernel.time_share;
}

std::optional<double> UseOf(const ToolInput& in, std::string_view name, bool normalised) {
  const auto found = std::ranges::find(kResources, name, &Resource::name);
  if (found == kResources.end() || !(in.use.*found->raw)) {
    return std::nullopt;
  }
  return normalised ? Normalised(in.use, in.hardware).*found->normalised : in.use.*found->raw;
}

std::optional<double> HardwareOf(const ToolInput& in, std::string_view name) {
  const auto found = std::ranges::find(kHardware, name, &HardwareFigure::first);
  if (found == kHardware.end()) {
    return std::nullopt;
  }
  const double value = found->second(in.hardware);
  return value > 0 ? std::optional(value) : std::nullopt;
}

std::optional<double> SystemValue(const Profile& profile, std::string_view name) {
  const auto found = profile.system.find(std::string(name));
  return found == profile.system.end() ? std::nullopt : std::optional(found->second.value);
}

/// The rest of a name behind a prefix.
std::optional<std::string_view> Behind(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) ? std::optional(name.substr(prefix.size())) : std::nullopt;
}

}  // namespace

std::optional<double> ScopeValue(const ToolInput& in, std::string_view name) {
  if (std::ranges::find(kPlain, name) != kPlain.end()) {
    return Plain(in, name);
  }
  if (const auto resource = Behind(name, "u.")) {
    return UseOf(in, *resource, false);
  }
  if (const auto resource = Behind(name, "n.")) {
    return UseOf(in, *resource, true);
  }
  if (const auto reason = Behind(name, "stall.")) {
    return StallShareOf(in.kernel, *reason);
  }
  if (const auto id = Behind(name, "class.")) {
    return Membership(in.classes, *id);
  }
  if (const auto figure = Behind(name, "task.")) {
    return TaskFigure(in, std::string(*figure));
  }
  if (const auto figure = Behind(name, "hw.")) {
    return HardwareOf(in, *figure);
  }
  if (const auto value = in.kernel.Value(name)) {
    return value;
  }
  return SystemValue(in.profile, name);
}

bool IsScopeName(std::string_view name) {
  if (std::ranges::find(kPlain, name) != kPlain.end() ||
      name.find("__") != std::string_view::npos) {
    return true;
  }
  const auto resource = Behind(name, name.starts_with("u.") ? "u." : "n.");
  if (resource) {
    return std::ranges::find(kResources, *resource, &Resource::name) != kResources.end();
  }
  if (const auto figure = Behind(name, "hw.")) {
    return std::ranges::find(kHardware, *figure, &HardwareFigure::first) != kHardware.end();
  }
  constexpr std::array<std::string_view, 11> kPrefixes = {"stall.", "class.",    "task.",  "sass.",
                                                          "ptxas.", "ptx.",      "build.", "model.",
                                                          "nvml.",  "timeline.", "launch."};
  return std::ranges::any_of(kPrefixes, [&](std::string_view p) { return name.starts_with(p); });
}

FormulaScope MakeScope(const ToolInput& input,
                       const std::map<std::string, std::optional<double>>& values) {
  FormulaScope scope;
  scope.use = Normalised(input.use, input.hardware);
  scope.value = [&input, &values](std::string_view name) -> std::optional<double> {
    if (const auto found = values.find(std::string(name)); found != values.end()) {
      return found->second;
    }
    return ScopeValue(input, name);
  };
  return scope;
}

}  // namespace kernelpro::diagnose
