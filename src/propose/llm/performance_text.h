// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "propose/llm/llm_proposer.h"
#include "propose/llm/prompts.h"
#include "propose/proposer.h"

namespace kernelpro::agents {

/// What the planner is told about a right parent's performance beside its time: the experts' words,
/// the counters, generic advice, or nothing.
[[nodiscard]] std::string PerformanceText(FeedbackMode mode, const Prompts& prompts,
                                          const ProposalRequest& request);

/// Ids of the findings that the experts' words are about, the primary one first.
[[nodiscard]] std::vector<std::string> ShownFindings(const Diagnosis& diagnosis);

/// "mem.coalesce_ld: Uncoalesced global loads", one line each.
[[nodiscard]] std::string FindingList(const Diagnosis& diagnosis);

/// All expert tools with one line each, the same for every kernel.
[[nodiscard]] std::string ToolList();

/// What one tool says of the parent: its finding in short fields, or why it says nothing. kNotFound
/// for an id that is no tool's.
[[nodiscard]] Result<std::string> FindingText(const Diagnosis& diagnosis, std::string_view id);

}  // namespace kernelpro::agents
