// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "search/assessor.h"
#include "search/policy.h"
#include "search/run_state.h"
#include "store/run_store.h"
#include "task/candidate.h"

namespace kernelpro::search {

/// A kernel that an outside agent wrote.
struct Submission {
  NodeId parent = store::kRoot;  ///< the node that it was made from
  Candidate candidate;
  std::string action;   ///< short id of what was done: "tile_64x64"; required
  std::string reason;   ///< one sentence: why it should help
  std::string finding;  ///< id that it answers; may be empty
  std::string origin;   ///< who wrote it; may be empty
};

/// kInvalidArgument for a source that cannot be a whole kernel: it does not define kernelpro_run.
[[nodiscard]] Status CheckIsWhole(const Candidate& candidate);

/// Judged and found wrong; what could not be judged is not.
[[nodiscard]] bool IsWrong(const store::NodeRecord& node);

/// The parent that the search would go on from.
struct NextParent {
  NodeId node = store::kRoot;
  bool repair = false;      ///< it is wrong and is to be mended first
  std::size_t waiting = 0;  ///< submitted kernels without a result: they are not counted yet
};

/// A run whose proposer is outside: it asks for a parent, submits kernels and reads what came of
/// them. Tree, referee and memory are those of any other run.
class AgentRun {
 public:
  AgentRun(store::RunStore& store, const Policy& policy, std::uint64_t seed);

  /// Reads the run. Must succeed before anything else is called.
  [[nodiscard]] Status Load();

  [[nodiscard]] const RunState& state() const { return state_; }

  /// kUnavailable while the seed has no result yet.
  [[nodiscard]] Result<NextParent> Next() const;

  /// On disk when it returns. kInvalidArgument: no such parent, no action, a text that is too long
  /// or not one line, a finding that the parent does not have, an empty source, or a
  /// kernel that the run has already (the message names the node).
  [[nodiscard]] Result<NodeId> Submit(const Submission& submission);

  /// Nodes without a result, oldest first.
  [[nodiscard]] std::vector<NodeId> Pending() const;

  /// Judges a pending node; a node with a result keeps it. kCancelled: `stop` was requested, the
  /// node stays pending.
  [[nodiscard]] Status Evaluate(NodeId node, Assessor& assessor, const std::stop_token& stop);

  /// Judges a node on another device than the run's own and keeps that beside the run's ranking.
  [[nodiscard]] Status Measure(NodeId node, Assessor& assessor, const DeviceInfo& device,
                               const std::stop_token& stop);

  [[nodiscard]] Status Note(const Lesson& lesson);
  /// See memory.h.
  [[nodiscard]] Result<std::vector<Lesson>> Memory() const;

 private:
  store::RunStore& store_;
  const Policy& policy_;
  std::uint64_t seed_;
  RunState state_;
};

}  // namespace kernelpro::search
