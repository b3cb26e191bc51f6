// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codesearch/code_index.h"
#include "llm/chat.h"
#include "propose/proposer.h"

namespace kernelpro {

/// What the planner, and through its plan the coder, is told about a right parent's performance;
/// the words of --feedback. Tools that would tell more than the mode does are not offered.
enum class FeedbackMode : std::uint8_t {
  kTools,    ///< the experts' findings
  kRaw,      ///< the counters as they are, without a word
  kNone,     ///< the time alone
  kPlacebo,  ///< generic advice of the same length, the same for every kernel
};

/// Who decides which expert tools speak; the words of --orchestration. kReactive goes with
/// FeedbackMode::kTools only: without expert tools there is nothing to choose.
enum class Orchestration : std::uint8_t {
  kProactive,  ///< all that the classes call for, always
  kReactive,   ///< the model asks for them by name, and sees only what it asked for
};

[[nodiscard]] Result<FeedbackMode> ParseFeedbackMode(std::string_view word);
[[nodiscard]] Result<Orchestration> ParseOrchestration(std::string_view word);

/// What the researcher may try on this machine. Text in, text out; errors are told to the model.
class Workshop {
 public:
  virtual ~Workshop() = default;
  /// Machine code of the hottest loop of a candidate, with source lines.
  [[nodiscard]] virtual Result<std::string> SassLoop(const Candidate& candidate,
                                                     const std::stop_token& stop) = 0;
  /// Compiles, checks and times a candidate on the emulator: verdict, modelled time, the main
  /// counters. It is no node of the search.
  [[nodiscard]] virtual Result<std::string> Experiment(const Candidate& candidate,
                                                       const std::stop_token& stop) = 0;
};

struct LlmProposerOptions {
  FeedbackMode feedback = FeedbackMode::kTools;
  Orchestration orchestration = Orchestration::kProactive;
  /// The first children of the seed are written from the task alone, one for each of these.
  std::vector<double> seed_temperatures = {0.2, 0.4, 0.6, 0.8, 1.0};
  std::uint32_t seed_rounds = 1;  ///< how many times over
  double temperature = 0.7;       ///< of the coder afterwards
  bool temperatures = true;       ///< false: the model takes none (reasoning models)
  std::string effort;             ///< see llm::ChatRequest
  std::uint32_t max_tokens = 16384;
  bool research = true;              ///< the researcher may use tools before the coder writes
  std::uint32_t research_calls = 6;  ///< tool calls for one kernel, at most
  /// Folder with prompts of the user's own (same file names as prompts/); empty: the built-in ones.
  std::string prompts_folder;
};

/// Planner, coder, repairer, researcher and note-taker. A wrong parent is repaired and nothing else
/// is said about it; a correct one is made faster. An answer of the model that cannot be used is a
/// Declined; an Error is the client's (no key, budget, stop), and ends the search. Keeps nothing
/// between calls: equal requests make equal questions. kInvalidArgument for options that make no
/// sense, kNotFound and kParse for prompts that do not (with file and line). `client`, `workshop`
/// and `code` must outlive it; the latter two may be null: their tools are then not offered.
[[nodiscard]] Result<std::unique_ptr<Proposer>> MakeLlmProposer(llm::ChatClient& client,
                                                                LlmProposerOptions options,
                                                                Workshop* workshop,
                                                                const codesearch::CodeIndex* code);

}  // namespace kernelpro
