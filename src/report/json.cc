// SPDX-License-Identifier: Apache-2.0
#include "report/json.h"

#include <nlohmann/json.hpp>

#include "report/text.h"

namespace kernelpro::report {
namespace {

Json NumberOrNull(double value, bool known) {
  return known ? Json(value) : Json(nullptr);
}

Json Geometry(const std::uint32_t (&d)[3]) {
  return Json::array({d[0], d[1], d[2]});
}

Json Geometry(const simt::Dim3& d) {
  return Json::array({d.x, d.y, d.z});
}

Json LinesJson(const KernelProfile& kernel) {
  Json lines = Json::array();
  for (const LineMetrics& line : kernel.lines) {
    lines.push_back(
        {{"file", line.file}, {"line", line.line}, {"metrics", MetricsJson(line.metrics)}});
  }
  return lines;
}

}  // namespace

Json MetricJson(const Metric& metric) {
  return {{"value", metric.value}, {"unit", metric.unit}, {"provenance", Name(metric.provenance)}};
}

Json MetricsJson(const std::map<std::string, Metric>& metrics) {
  Json json = Json::object();
  for (const auto& [name, metric] : metrics) {
    json[name] = MetricJson(metric);
  }
  return json;
}

Json KernelsJson(const Profile& profile) {
  Json kernels = Json::array();
  for (const KernelProfile& k : profile.kernels) {
    kernels.push_back({{"name", k.name},
                       {"grid", Geometry(k.grid)},
                       {"block", Geometry(k.block)},
                       {"time_us", k.time_us},
                       {"provenance", Name(k.time_provenance)},
                       {"metrics", MetricsJson(k.metrics)},
                       {"missing", k.missing},
                       {"lines", LinesJson(k)}});
  }
  return kernels;
}

Json DiagnosisJson(const Diagnosis& diagnosis) {
  Json classes = Json::array();
  for (const ClassMembership& c : diagnosis.classes) {
    classes.push_back({{"id", c.id}, {"membership", c.membership}, {"evidence", c.evidence}});
  }
  Json findings = Json::array();
  for (const Finding& f : diagnosis.findings) {
    findings.push_back({{"id", f.id},
                        {"severity", f.severity},
                        {"bound", f.bound},
                        {"text", FindingText(f)},
                        {"title", f.title},
                        {"kernel", f.kernel},
                        {"file", f.file},
                        {"line", f.line},
                        {"confidence", f.confidence},
                        {"evidence", f.evidence}});
  }
  Json suppressed = Json::array();
  for (const Suppressed& s : diagnosis.suppressed) {
    suppressed.push_back({{"id", s.id}, {"kernel", s.kernel}, {"by", s.by}, {"why", s.why}});
  }
  return {{"classes", std::move(classes)},
          {"findings", std::move(findings)},
          {"suppressed", std::move(suppressed)},
          {"fine", diagnosis.fine}};
}

Json EvaluationJson(const Evaluation& e) {
  Json checks = Json::array();
  for (const WorkloadCheck& check : e.checks) {
    Json outputs = Json::array();
    for (const OutputError& o : check.errors) {
      outputs.push_back({{"tensor", o.tensor},
                         {"elements", o.elements},
                         {"failed", o.failed_elements},
                         {"unwritten", o.unwritten_elements},
                         {"max_absolute", o.max_absolute},
                         {"max_relative", o.max_relative},
                         {"worst_ratio", o.worst_ratio}});
    }
    checks.push_back({{"workload", check.hidden ? "hidden" : check.workload},
                      {"seeds", check.seeds},
                      {"outputs", std::move(outputs)}});
  }
  Json times = Json::array();
  for (const WorkloadTime& t : e.times) {
    times.push_back({{"workload", t.workload},
                     {"weight", t.weight},
                     {"time_us", t.time_us},
                     {"floor_us", t.floor_us}});
  }
  Json faults = Json::array();
  for (const simt::Fault& f : e.faults) {
    faults.push_back(f.message);
  }
  return {{"verdict", Name(e.verdict)},
          {"reason", e.reason},
          {"time_us", NumberOrNull(e.time_us, e.verdict == Verdict::kOk)},
          {"provenance", Name(e.time_provenance)},
          {"checks", std::move(checks)},
          {"times", std::move(times)},
          {"faults", std::move(faults)}};
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

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kernelpro::report
