// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "search/driver.h"
#include "store/run_store.h"
#include "task/task.h"

namespace kernelpro::app {

/// What a run was started with; kept in the run, so that it can be continued without being told
/// again.
struct Plan {
  std::string device, proposer, search;
  std::uint64_t search_seed = 1;
  std::uint64_t input_seed = 0;
  std::map<std::string, std::string> more;  ///< of the proposer: "model", "feedback", ...
};

/// Without `seed` the inputs come from a secret one.
[[nodiscard]] Result<Plan> NewPlan(std::string device, std::string proposer, std::string search,
                                   std::optional<std::uint64_t> seed);
/// kInvalidArgument when a run does not say how it was started.
[[nodiscard]] Result<Plan> StoredPlan(const store::RunStore& store);

/// Makes the folder (default: kernelpro-runs/TASK-TIME) with the plan and a copy of the task in it.
[[nodiscard]] Result<std::unique_ptr<store::RunStore>> StartRun(const std::filesystem::path& folder,
                                                                const Plan& plan, const Task& task,
                                                                const std::string& device_id);

/// The best kernel with the header it needs, and what changed, as files beside the database.
[[nodiscard]] Status WriteResults(const std::filesystem::path& folder, const Task& task,
                                  const search::SearchResult& result, const std::string& text);

}  // namespace kernelpro::app
