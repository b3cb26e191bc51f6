// SPDX-License-Identifier: Apache-2.0
#include "report/json.h"

#include <nlohmann/json.hpp>

#include "profile/profile_json.h"
#include "report/text.h"
#include "search/record.h"

namespace kernelpro::report {
namespace {

Json Geometry(const simt::Dim3& d) {
  return Json::array({d.x, d.y, d.z});
}

}  // namespace

Json MetricsJson(const std::map<std::string, Metric>& metrics) {
  return Json::parse(kernelpro::MetricsJson(metrics));
}

Json KernelsJson(const Profile& profile) {
  return Json::parse(kernelpro::KernelsJson(profile));
}

Json DiagnosisJson(const Diagnosis& diagnosis) {
  Json json = search::DiagnosisJson(diagnosis);
  for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) {
    json["findings"][i]["text"] = FindingText(diagnosis.findings[i]);
  }
  return json;
}

Json EvaluationReport(const Evaluation& e, double seed_us, const DeviceInfo& device) {
  Json json = search::EvaluationJson(e);
  const bool ok = e.verdict == Verdict::kOk;
  if (ok && json["figures_us"].is_null()) {
    json["time_us"] = {{"median", e.time_us}, {"low", nullptr},  {"high", nullptr},
                       {"cold", nullptr},     {"warm", nullptr}, {"host", nullptr}};
    json["speedup"] = seed_us > 0 ? Json({{"ratio", seed_us / e.time_us}}) : Json(nullptr);
    json["baseline_us"] = seed_us > 0 ? Json({{"median", seed_us}}) : Json(nullptr);
  } else if (ok) {
    json["time_us"] = json["figures_us"];
  }
  json.erase("figures_us");
  json["cost_ms"] = {
      {"all", e.evaluate_ms}, {"start", e.start_ms}, {"check", e.check_ms}, {"time", e.time_ms}};
  json["device"] = device.id;
  json["gpu"] = device.title;
  return json;
}

Json SanitizersJson(const SanitizerReport& sanitizers) {
  Json json = Json::array();
  for (const SanitizerRun& run : sanitizers.runs) {
    json.push_back({{"tool", run.tool},
                    {"ran", run.ran},
                    {"errors", run.errors},
                    {"message", run.first_message},
                    {"ms", run.elapsed.count()}});
  }
  return json;
}

Json SearchJson(const search::SearchResult& result, const std::string& task,
                const DeviceInfo& device) {
  Json verdicts = Json::object();
  for (const auto& [verdict, count] : result.verdicts) {
    verdicts[verdict] = count;
  }
  return {{"task", task},
          {"device", device.id},
          {"evaluations", result.evaluated},
          {"verdicts", std::move(verdicts)},
          {"seed", {{"time_us", result.root.time_us}, {"provenance", result.root.provenance}}},
          {"best",
           {{"node", result.best.id},
            {"time_us", result.best.time_us},
            {"speedup", result.root.time_us / result.best.time_us},
            {"provenance", result.best.provenance},
            {"verdict", result.best.verdict},
            {"source", result.best.source}}},
          {"stopped_by", Describe(result.stopped)}};
}

Json LaunchJson(const EmulatedLaunch& launch) {
  Json bounds = Json::array();
  for (const model::Bound& b : launch.time.bounds) {
    bounds.push_back({{"name", b.name}, {"cycles", b.cycles}, {"share", b.share}});
  }
  Json faults = Json::array();
  for (const simt::Fault& f : launch.report.faults) {
    faults.push_back(f.message);
  }
  return {{"kernel", launch.report.kernel},
          {"grid", Geometry(launch.report.grid)},
          {"block", Geometry(launch.report.block)},
          {"ctas", launch.report.ctas},
          {"ctas_executed", launch.report.ctas_executed},
          {"modelled_us", launch.time.time_us},
          {"bounds", std::move(bounds)},
          {"faults", std::move(faults)}};
}

}  // namespace kernelpro::report
