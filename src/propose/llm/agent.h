// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "llm/chat.h"
#include "propose/llm/llm_proposer.h"
#include "propose/llm/prompts.h"
#include "propose/proposer.h"

/// What the agents share. An agent asks one kind of question and reads the answer; it keeps nothing
/// from one question to the next, so that a resumed run asks what an uninterrupted one would have.
namespace kernelpro::agents {

/// What lives as long as the proposer.
struct Setting {
  llm::ChatClient& client;
  const Prompts& prompts;
  const LlmProposerOptions& options;
};

/// One call of Propose.
struct Turn {
  const ProposalRequest& request;
  const std::string& system;  ///< the same for every agent and every turn of a run
  const std::stop_token& stop;
};

/// What an agent made of an answer, or why that answer cannot be used.
template <class T>
struct Attempt {
  std::optional<T> value;
  std::string why;
};

/// Answers that are no kernel are short; reasoning models need room before them.
inline constexpr std::uint32_t kShortAnswerTokens = 8192;

/// A question with one message. No temperature is sent to models that take none.
[[nodiscard]] llm::ChatRequest MakeRequest(const Setting& setting, const Turn& turn,
                                           std::string_view purpose, std::string prompt,
                                           double temperature);

/// Asks; kCancelled when a stop was requested meanwhile.
[[nodiscard]] Result<llm::ChatResponse> Ask(const Setting& setting, const Turn& turn,
                                            const llm::ChatRequest& request);

/// Why an answer cannot be used as it stands; empty: nothing is wrong with it.
[[nodiscard]] std::string WhyUnusable(const llm::ChatResponse& response);

/// The JSON object of an answer: the whole text, or what stands in its only code fence. Empty:
/// there is none.
[[nodiscard]] std::string JsonText(std::string_view answer);

}  // namespace kernelpro::agents
