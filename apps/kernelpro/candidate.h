// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>

#include "base/result.h"
#include "commands.h"
#include "search/workbench.h"
#include "setup.h"
#include "task/candidate.h"

namespace kernelpro::app {

/// A candidate of a task, checked, timed and explained.
struct Examined {
  std::unique_ptr<Bench> bench;
  Candidate candidate;
  search::Assessment assessment;
  double seed_us = 0;  ///< 0 when the seed has no time
};

[[nodiscard]] Result<Examined> ExamineCandidate(const CandidateOptions& options, bool against_seed,
                                                const std::stop_token& stop);

}  // namespace kernelpro::app
