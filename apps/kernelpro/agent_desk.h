// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "propose/proposer.h"
#include "report/agent.h"
#include "search/agent_run.h"
#include "setup.h"

namespace kernelpro::app {

struct AgentStart {
  std::filesystem::path task;
  std::filesystem::path run;  ///< empty: kernelpro-runs/TASK-TIME
  std::string device = "auto";
  std::string search = "mcts";
  std::optional<std::uint64_t> seed;
};

/// Which nodes `evaluate` is about.
struct AgentEvaluation {
  std::string device;  ///< empty: the run's own; another one judges beside the run's ranking
  bool all = false;    ///< on another device: every node that is ok, or that the emulator
                       ///< cannot judge; else those of them not judged there yet
  std::vector<std::int64_t> nodes;  ///< only these; empty: as above
};

/// "evaluating node 4", 3 of 13.
using DeskProgress = std::function<void(std::size_t done, std::size_t total, const std::string&)>;

/// What an outside agent can do with a run; behind `kernelpro agent` and `kernelpro mcp`. A run is
/// opened and closed by each operation, so several programs may take turns; what judges its kernels
/// is kept for the next one.
class AgentDesk {
 public:
  /// Makes a run and judges the seed. Where the device is not to be had on this machine the run is
  /// made all the same, and its kernels wait.
  [[nodiscard]] Result<report::AgentAnswer> Start(const AgentStart& start,
                                                  const std::stop_token& stop);
  [[nodiscard]] Result<report::AgentAnswer> Next(const std::filesystem::path& run,
                                                 std::optional<std::int64_t> node);
  /// `defer`: only keep it. Exit codes follow the verdict: `ok` says whether it is right.
  [[nodiscard]] Result<report::AgentAnswer> Submit(const std::filesystem::path& run,
                                                   const search::Submission& submission, bool defer,
                                                   bool* ok, const std::stop_token& stop);
  [[nodiscard]] Result<report::AgentAnswer> Evaluate(const std::filesystem::path& run,
                                                     const AgentEvaluation& what,
                                                     const DeskProgress& progress,
                                                     const std::stop_token& stop);
  /// All that the experts say about a node.
  [[nodiscard]] Result<report::AgentAnswer> Diagnose(const std::filesystem::path& run,
                                                     std::int64_t node);
  /// The kernel as it was submitted; no JSON.
  [[nodiscard]] Result<report::AgentAnswer> Source(const std::filesystem::path& run,
                                                   std::int64_t node);
  [[nodiscard]] Result<report::AgentAnswer> Memory(const std::filesystem::path& run,
                                                   const std::string& query, std::size_t most);
  [[nodiscard]] Result<report::AgentAnswer> Note(const std::filesystem::path& run,
                                                 const Lesson& lesson);
  [[nodiscard]] Result<report::AgentAnswer> Status(const std::filesystem::path& run);
  /// The result so far; also written beside the run as best.cu, best.diff and result.txt.
  [[nodiscard]] Result<report::AgentAnswer> Report(const std::filesystem::path& run);

 private:
  [[nodiscard]] Result<Bench*> BenchFor(const store::RunStore& store, const std::string& device);

  std::string bench_key_;
  std::unique_ptr<Bench> bench_;
};

}  // namespace kernelpro::app
