// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "propose/proposer.h"
#include "search/assessor.h"
#include "store/run_store.h"
#include "task/candidate.h"

namespace kernelpro::search {

using Json = nlohmann::ordered_json;

/// {verdict, reason, time_us, provenance, checks, times, faults}; time_us is null unless ok. Names
/// of hidden workloads stay hidden.
[[nodiscard]] Json EvaluationJson(const Evaluation& evaluation);
/// {classes, findings, suppressed, fine}
[[nodiscard]] Json DiagnosisJson(const Diagnosis& diagnosis);
/// Key under which a candidate is unique in a run.
[[nodiscard]] std::string ContentKey(const Candidate& candidate);

/// One line; text that is not UTF-8 is replaced, infinities become null.
[[nodiscard]] std::string Dump(const Json& json);

/// Proposals as the run store keeps them.
[[nodiscard]] std::vector<store::ProposalRecord> ProposalRecords(
    store::NodeId node, const std::vector<Proposal>& proposals);

/// An assessment and its proposals as the run store keeps them (evaluation and diagnosis as JSON).
[[nodiscard]] store::NodeResult MakeResult(store::NodeId node, const Assessment& assessment,
                                           const Proposals& proposals);

}  // namespace kernelpro::search
