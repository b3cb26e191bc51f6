// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "evaluate/evaluation.h"
#include "setup.h"
#include "task/candidate.h"

namespace kernelpro::app {

struct Sanitized {
  std::string
      line;  ///< "sanitizers: memcheck, racecheck, initcheck, synccheck clean (3 workloads)"
  nlohmann::ordered_json json = nlohmann::ordered_json::array();  ///< [{tool, ran, errors, ...}]
  bool condemned = false;                                         ///< something was found
};

/// compute-sanitizer's four tools over a candidate that is ok so far, where there is a GPU and the
/// tool; else says which checks stand alone. A finding becomes the verdict of *evaluation.
[[nodiscard]] Result<Sanitized> Sanitize(Bench& bench, const Candidate& candidate,
                                         const std::stop_token& stop, Evaluation* evaluation);

}  // namespace kernelpro::app
