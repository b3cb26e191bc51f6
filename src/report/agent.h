// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "search/agent_run.h"
#include "search/run_state.h"
#include "store/run_store.h"
#include "task/task.h"

/// What an outside agent reads, as text for a model and as JSON for a program: the same facts in
/// both.
namespace kernelpro::report {

struct AgentAnswer {
  std::string text;
  std::string json;  ///< one object, one line
};

/// {node, parent, action, reason, finding, origin, verdict, verdict_reason, time_us, provenance,
/// speedup_over_seed, speedup_over_parent}; verdict null while it waits for a result.
[[nodiscard]] nlohmann::ordered_json NodeJson(const store::NodeRecord& node,
                                              const search::RunState& state);

/// "node 5 (tile_64x64) of node 3: ok, 41.2 us modelled, 2.31x over the seed, 1.10x over node 3".
[[nodiscard]] std::string NodeLine(const store::NodeRecord& node, const search::RunState& state);

/// The parent to go on from: its source, what the experts say, what was tried, what was learnt, how
/// to submit. `shown_run` is how the run is named in commands.
[[nodiscard]] AgentAnswer NextAnswer(const search::AgentRun& run, const search::NextParent& next,
                                     const std::vector<Lesson>& memory, const Task& task,
                                     const std::string& gpu, const std::string& shown_run);

/// What came of a submitted kernel, with the experts' feedback on it.
[[nodiscard]] AgentAnswer SubmitAnswer(const search::AgentRun& run, store::NodeId node,
                                       const std::string& shown_run);

/// The whole tree, and what other devices said.
[[nodiscard]] AgentAnswer StatusAnswer(const search::RunState& state,
                                       const std::vector<store::MeasurementRecord>& measurements,
                                       const std::string& task, const std::string& device,
                                       const std::string& shown_run);

/// Second opinions as a table; empty without any. Speedups are over the seed on the same device.
[[nodiscard]] std::string MeasurementsText(
    const search::RunState& state, const std::vector<store::MeasurementRecord>& measurements);

[[nodiscard]] AgentAnswer MemoryAnswer(const std::vector<Lesson>& lessons);

}  // namespace kernelpro::report
