// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "codesearch/code_index.h"
#include "commands.h"
#include "llm/budget.h"
#include "llm/chat.h"
#include "llm/client.h"
#include "propose/llm/llm_proposer.h"
#include "propose/replay/exchanges.h"
#include "search/emulator_workshop.h"
#include "setup.h"
#include "store/run_store.h"

namespace kernelpro::app {

/// What a plan says about its model: names of facts in the run, price and caps
/// included. Keys are never among them.
[[nodiscard]] const std::vector<std::string>& ModelFacts();

using Facts = std::map<std::string, std::string>;

/// The facts of a run that begins with these options. kInvalidArgument for words and numbers that
/// make no sense.
[[nodiscard]] Result<Facts> PlanModel(const ModelOptions& options);

/// The price that a plan's model is charged at; kInvalidArgument when nobody says it.
[[nodiscard]] Result<llm::Price> PriceOfPlan(const Facts& facts, const ModelOptions& options);
/// Whether there are a key and a price for it; asks nobody.
[[nodiscard]] Status CheckModel(const Facts& facts, const ModelOptions& options);
[[nodiscard]] Result<LlmProposerOptions> ProposerOptionsOf(const Facts& facts,
                                                           const std::filesystem::path& prompts);

/// A proposer that asks a model, with all that it needs; on the heap, because its parts refer to
/// each other.
class ModelProposer {
 public:
  /// Asks the model that `facts` name, with their price and caps; the key comes from `options`, and
  /// what else is said there goes before the facts.
  [[nodiscard]] static Result<std::unique_ptr<ModelProposer>> Open(const Facts& facts,
                                                                   const ModelOptions& options,
                                                                   double minutes, Bench& bench,
                                                                   store::RunStore& store,
                                                                   const Clock& clock);
  /// Asks nobody: the answers are those that `recorded` holds.
  [[nodiscard]] static Result<std::unique_ptr<ModelProposer>> Replay(
      const Facts& facts, const std::filesystem::path& prompts, Bench& bench,
      store::RunStore& store, std::vector<store::ExchangeRecord> recorded);

  [[nodiscard]] Proposer& proposer() { return *proposer_; }

  /// By the run in all its sessions.
  [[nodiscard]] llm::Spent spent() const;

 private:
  ModelProposer() = default;
  [[nodiscard]] Status MakeTools(const Facts& facts, const std::filesystem::path& prompts,
                                 Bench& bench);

  std::unique_ptr<llm::Budget> budget_;
  std::unique_ptr<llm::ChatClient> client_;
  std::unique_ptr<RecordingClient> recorder_;
  std::unique_ptr<search::EmulatorWorkshop> workshop_;
  std::unique_ptr<codesearch::CodeIndex> code_;
  std::unique_ptr<Proposer> proposer_;
};

/// "1.2300 dollars, 45000 tokens in, 6000 out, 17 requests".
[[nodiscard]] std::string SpentText(const llm::Spent& spent);

/// --dry-run: the prompts that a search would begin with, their tokens and what they would cost.
/// Asks nobody and spends nothing; the seed is judged, because the first prompt holds what the
/// experts say about it.
[[nodiscard]] Result<std::string> DryRun(const Facts& facts, const ModelOptions& options,
                                         std::uint32_t evaluations, Bench& bench,
                                         const std::stop_token& stop);

}  // namespace kernelpro::app
