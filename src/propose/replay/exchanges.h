// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/budget.h"
#include "llm/chat.h"
#include "llm/prices.h"
#include "propose/proposer.h"
#include "store/run_store.h"

/// Exchanges with a model, kept in the run and played again.
namespace kernelpro {

/// What a run has spent on its model in all its sessions. Exchanges that nobody saw the end of
/// count with the most that they can have cost.
[[nodiscard]] llm::Spent SpentOn(const std::vector<store::ExchangeRecord>& exchanges);

/// Writes every question to the run before it leaves, and the answer or the failure when it is
/// there. What was answered before the process died, and led to nothing yet, is answered from the
/// record: nothing is paid for twice. One question at a time.
class RecordingClient final : public llm::ChatClient {
 public:
  /// `budget` is the one that `inner` spends from; null when nothing is spent. All must outlive it.
  [[nodiscard]] static Result<std::unique_ptr<RecordingClient>> Open(llm::ChatClient& inner,
                                                                     store::RunStore& store,
                                                                     llm::Price price,
                                                                     llm::Budget* budget);

  [[nodiscard]] std::string_view name() const override { return inner_.name(); }

  /// The parent that the next questions are about.
  void About(std::int64_t node) { node_ = node; }

  [[nodiscard]] Result<llm::ChatResponse> Ask(const llm::ChatRequest& request,
                                              const std::stop_token& stop) override;

 private:
  RecordingClient(llm::ChatClient& inner, store::RunStore& store, llm::Price price,
                  llm::Budget* budget)
      : inner_(inner), store_(store), price_(price), budget_(budget) {}

  [[nodiscard]] std::optional<llm::ChatResponse> Remembered(const std::string& hash);
  /// Asks, and keeps what failed attempts cost as soon as it is known: the process may die before
  /// the last one.
  [[nodiscard]] Result<llm::ChatResponse> AskAndCount(const llm::ChatRequest& request,
                                                      store::ExchangeRecord* exchange,
                                                      const std::stop_token& stop);

  llm::ChatClient& inner_;
  store::RunStore& store_;
  llm::Price price_;
  llm::Budget* budget_;
  std::int64_t node_ = 0;
  std::multimap<std::string, std::string> unused_;  ///< hash -> response, oldest first
};

/// Answers from the exchanges of a recorded run, in their order. A question that differs from the
/// recorded one is kInvalidArgument: where the replay diverges, with the first line that differs.
class ReplayClient final : public llm::ChatClient {
 public:
  explicit ReplayClient(std::vector<store::ExchangeRecord> recorded);

  [[nodiscard]] std::string_view name() const override { return "a recorded run"; }

  [[nodiscard]] Result<llm::ChatResponse> Ask(const llm::ChatRequest& request,
                                              const std::stop_token& stop) override;

  /// Recorded answers that were not asked for.
  [[nodiscard]] std::size_t left() const { return recorded_.size() - next_; }

 private:
  std::vector<store::ExchangeRecord> recorded_;  ///< the answered ones
  std::size_t next_ = 0;
};

/// Tells `client` which node each question is about.
[[nodiscard]] std::unique_ptr<Proposer> MakeRecordedProposer(std::unique_ptr<Proposer> inner,
                                                             RecordingClient& client);

}  // namespace kernelpro
