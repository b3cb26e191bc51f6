// SPDX-License-Identifier: Apache-2.0
#include "search/record.h"

#include <nlohmann/json.hpp>

namespace kernelpro::search {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
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
    checks.push_back({{"workload", check.workload},
                      {"hidden", check.hidden},
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
  return {{"verdict", Name(e.verdict)},  {"reason", e.reason},
          {"checks", std::move(checks)}, {"times", std::move(times)},
          {"faults", std::move(faults)}, {"evaluate_ms", e.evaluate_ms}};
}

Json DiagnosisJson(const Diagnosis& d) {
  Json classes = Json::array();
  for (const ClassMembership& c : d.classes) {
    classes.push_back({{"id", c.id}, {"membership", c.membership}});
  }
  Json findings = Json::array();
  for (const Finding& f : d.findings) {
    findings.push_back({{"id", f.id},
                        {"title", f.title},
                        {"kernel", f.kernel},
                        {"severity", f.severity},
                        {"bound", f.bound},
                        {"line", f.line}});
  }
  return {{"classes", std::move(classes)}, {"findings", std::move(findings)}};
}

}  // namespace

store::NodeResult MakeResult(store::NodeId node, const Assessment& assessment,
                             const Proposals& proposals) {
  const Evaluation& e = assessment.evaluation;
  store::NodeResult result;
  result.node = node;
  result.verdict = Name(e.verdict);
  result.verdict_reason = e.reason;
  result.time_us = e.time_us;
  result.provenance = Name(e.time_provenance);
  result.evaluation = Dump(EvaluationJson(e));
  if (e.verdict == Verdict::kOk) {
    result.diagnosis = Dump(DiagnosisJson(assessment.diagnosis));
    result.feedback = assessment.feedback;
  }
  for (const Proposal& p : proposals.proposals) {
    result.proposals.push_back({.node = node,
                                .action = p.action,
                                .reason = p.reason,
                                .finding = p.finding,
                                .prior = p.prior,
                                .source = p.candidate.source,
                                .flags = p.candidate.flags,
                                .content = ContentKey(p.candidate)});
  }
  for (const Declined& d : proposals.declined) {
    result.declined.push_back({node, d.action, d.why});
  }
  return result;
}

}  // namespace kernelpro::search
