// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "propose/llm/prompts.h"
#include "propose/proposer.h"
#include "task/task.h"

/// What the agents are told about the task and the search, in words. Pure.
namespace kernelpro::agents {

/// The verdict of a right kernel (docs/architecture.md, "Verdicts").
inline constexpr std::string_view kOkVerdict = "ok";

/// Longest pieces of a prompt, in bytes. A source of 128 KiB is more than any model here writes; 6
/// KB hold the first thirty errors of a compiler.
inline constexpr std::size_t kSourceLimit = 128U << 10U;
inline constexpr std::size_t kReasonLimit = 6000;
inline constexpr std::size_t kFeedbackLimit = 8000;
/// Lines of memory that a prompt shows (more of them were not seen to help; see docs/tools.md).
inline constexpr std::size_t kMemoryLines = 20;

/// The system text: what every agent knows. Depends on task, GPU and kind of times only, so it is
/// the same in all requests of a run. Hidden workloads stay hidden.
[[nodiscard]] std::string SystemText(const Prompts& prompts, const ProposalRequest& request);

/// "The kernel below takes 12.3 us; the first kernel takes 40 us, the fastest one so far 10.1 us."
[[nodiscard]] std::string TimesText(const ProposalRequest& request);

/// The parent's source as a data block.
[[nodiscard]] std::string SourceBlock(const ProposalRequest& request);

/// From the first kernel to the parent, one line each; empty for the first kernel itself.
[[nodiscard]] std::string PathBlock(const ProposalRequest& request, bool with_findings);

/// Children of a right parent: what was done and how long it takes, never why one is wrong.
[[nodiscard]] std::string TriedBlock(const ProposalRequest& request, bool with_findings);

/// Children of a wrong parent: verdict and reason, never a time.
[[nodiscard]] std::string RepairsBlock(const ProposalRequest& request);

/// Lessons of the given kinds: no text twice, the newest kMemoryLines (at most five wins), oldest
/// first. Empty when there are none.
[[nodiscard]] std::string MemoryBlock(const std::vector<Lesson>& memory,
                                      const std::vector<Lesson::Kind>& kinds);

/// Whether a child of a right parent failed: wrong, or no faster.
[[nodiscard]] bool Failed(const NodeBrief& child, const NodeBrief& parent);

}  // namespace kernelpro::agents
