// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "propose/proposer.h"
#include "search/assessor.h"
#include "search/policy.h"
#include "store/run_store.h"
#include "task/candidate.h"

namespace kernelpro::search {

struct SearchOptions {
  std::uint32_t evaluations = 40;  ///< candidates to evaluate in all, the seed included
  std::chrono::milliseconds time{std::chrono::minutes(5)};  ///< of this process
  std::uint64_t seed = 1;
  /// Of a proposer that is asked on demand: how many wrong kernels in a row may be mended.
  std::uint32_t repairs = 2;
  /// And how many children the seed gets before anything else is tried.
  std::uint32_t first_children = 0;
  std::string gpu = {};  ///< told to such a proposer
};

/// kBudget: the proposer said that a cap of the user's is reached.
/// kNothing: it may go on, an outside agent decides.
enum class Stopped : std::uint8_t {
  kEvaluations,
  kTime,
  kRequested,
  kExhausted,
  kBudget,
  kNothing,
};

/// "the evaluation limit", ...: completes "stopped by".
[[nodiscard]] std::string_view Describe(Stopped stopped);

struct Progress {
  std::uint32_t evaluated = 0, limit = 0;
  double seed_us = 0, best_us = 0;  ///< 0 until known
  std::map<std::string, std::uint32_t> verdicts;
  std::chrono::milliseconds time_left{0};
  std::string now;  ///< the action being evaluated; empty when done
};

class ProgressObserver {
 public:
  virtual ~ProgressObserver() = default;
  virtual void OnProgress(const Progress& progress) = 0;
};

struct SearchResult {
  store::NodeRecord root, best;
  std::uint32_t evaluated = 0;  ///< over the whole run, earlier sessions included
  std::map<std::string, std::uint32_t> verdicts;
  Stopped stopped = Stopped::kEvaluations;
  std::string why;  ///< kBudget: which cap; else empty
};

struct SearchParts {
  const Task& task;
  store::RunStore& store;
  Assessor& assessor;
  Proposer& proposer;
  const Policy& policy;
  const Clock& clock;
  ProgressObserver& observer;
};

/// Starts or continues the run in `parts.store`. An empty store begins with `seed_candidate`. A
/// seed that is not correct is kInvalidArgument with its verdict: nothing is searched from a wrong
/// kernel.
[[nodiscard]] Result<SearchResult> RunSearch(const SearchParts& parts,
                                             const Candidate& seed_candidate,
                                             const SearchOptions& options,
                                             const std::stop_token& stop);

class RunState;

/// Seed, best and counts of a run that has a seed.
[[nodiscard]] SearchResult Summarize(const RunState& state);

}  // namespace kernelpro::search
