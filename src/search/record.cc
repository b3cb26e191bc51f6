// SPDX-License-Identifier: Apache-2.0
#include "search/record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "profile/profile_json.h"

namespace kernelpro::search {

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

Json FiguresJson(const std::optional<TimeFigures>& figures) {
  if (!figures) {
    return nullptr;
  }
  const TimeFigures& f = *figures;
  return {{"median", f.median_us},
          {"low", f.low_us},
          {"high", f.high_us},
          {"spread", f.spread},
          {"cold", f.cold_us},
          {"warm", f.warm_us > 0 ? Json(f.warm_us) : Json(nullptr)},
          {"host", f.host_us > 0 ? Json(f.host_us) : Json(nullptr)},
          {"samples", f.samples},
          {"calls", f.calls},
          {"discarded", f.discarded}};
}

/// What only a real GPU gives.
void AddMeasured(const Evaluation& e, Json* json) {
  Json& j = *json;
  j["figures_us"] = FiguresJson(e.figures);
  j["baseline_us"] = FiguresJson(e.baseline);
  j["speedup"] =
      e.speedup
          ? Json({{"ratio", e.speedup->ratio}, {"low", e.speedup->low}, {"high", e.speedup->high}})
          : Json(nullptr);
  j["modelled_us"] = e.modelled_us ? Json(*e.modelled_us) : Json(nullptr);
  if (e.clocks) {
    const ClockRecord& c = *e.clocks;
    j["clocks"] = {{"sm_mhz_low", c.sm_mhz_low},
                   {"sm_mhz_high", c.sm_mhz_high},
                   {"memory_mhz", c.memory_mhz},
                   {"temperature_c", c.temperature_c},
                   {"power_w", c.power_w},
                   {"throttle_reasons", c.throttle_reasons},
                   {"foreign_processes", c.foreign_processes}};
  } else {
    j["clocks"] = nullptr;
  }
  Json sandbox = Json::array();
  for (const SandboxMeasure& m : e.sandbox) {
    sandbox.push_back({{"name", m.name}, {"on", m.on}, {"detail", m.detail}});
  }
  j["sandbox"] = std::move(sandbox);
}

/// What the verdict rests on. Shapes are counted, not named: hidden ones stay hidden.
Json EvidenceJson(const Evaluation& e) {
  std::uint32_t seeds = 0;
  double worst = 0;
  for (const WorkloadCheck& check : e.checks) {
    seeds = std::max(seeds, check.seeds);
    for (const OutputError& o : check.errors) {
      worst = std::max(worst, o.worst_ratio);
    }
  }
  return {{"seeds", seeds},
          {"shapes", e.checks.size()},
          {"max_error", worst},
          {"checked_calls", e.checked_calls}};
}

}  // namespace

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
                         {"worst_ratio", o.worst_ratio},
                         {"worst_element", o.worst < 0 ? Json(nullptr) : Json(o.worst)}});
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
  Json json = {
      {"verdict", Name(e.verdict)},
      {"reason", e.reason},
      {"time_us", e.verdict == Verdict::kOk ? Json(e.time_us) : Json(nullptr)},
      {"provenance", Name(e.time_provenance)},
      {"precision_class", e.precision.name.empty() ? Json(nullptr) : Json(e.precision.name)},
      {"precision_evidence", e.precision.evidence},
      {"evidence", EvidenceJson(e)},
      {"notes", e.notes},
      {"checks", std::move(checks)},
      {"times", std::move(times)},
      {"faults", std::move(faults)}};
  AddMeasured(e, &json);
  return json;
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
                        {"title", f.title},
                        {"kernel", f.kernel},
                        {"file", f.file},
                        {"line", f.line},
                        {"confidence", f.confidence},
                        {"rests_on", f.rests_on},
                        {"seen", f.seen},
                        {"why", f.why},
                        {"do", f.remedies},
                        {"check", f.check},
                        {"avoid", f.avoid},
                        {"evidence", f.evidence}});
  }
  Json suppressed = Json::array();
  for (const Suppressed& s : diagnosis.suppressed) {
    suppressed.push_back({{"id", s.id}, {"kernel", s.kernel}, {"by", s.by}, {"why", s.why}});
  }
  Json not_run = Json::array();
  for (const NotRun& tool : diagnosis.not_run) {
    not_run.push_back({{"id", tool.id}, {"kernel", tool.kernel}, {"missing", tool.missing}});
  }
  return {{"classes", std::move(classes)},
          {"findings", std::move(findings)},
          {"not_run", std::move(not_run)},
          {"suppressed", std::move(suppressed)},
          {"fine", diagnosis.fine}};
}

std::string ContentKey(const Candidate& candidate) {
  std::vector<std::string_view> parts = {candidate.source};
  parts.insert(parts.end(), candidate.flags.begin(), candidate.flags.end());
  return ContentHash(parts);
}

std::vector<store::ProposalRecord> ProposalRecords(store::NodeId node,
                                                   const std::vector<Proposal>& proposals) {
  std::vector<store::ProposalRecord> records;
  for (const Proposal& p : proposals) {
    records.push_back({.node = node,
                       .action = p.action,
                       .reason = p.reason,
                       .finding = p.finding,
                       .prior = p.prior,
                       .source = p.candidate.source,
                       .flags = p.candidate.flags,
                       .content = ContentKey(p.candidate),
                       .origin = p.origin});
  }
  return records;
}

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
    result.profile = ProfileJson(assessment.profile);
  }
  result.proposals = ProposalRecords(node, proposals.proposals);
  for (const Declined& d : proposals.declined) {
    result.declined.push_back({node, d.action, d.why});
  }
  return result;
}

}  // namespace kernelpro::search
