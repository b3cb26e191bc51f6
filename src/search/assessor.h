// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>

#include "base/result.h"
#include "evaluate/evaluation.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "task/candidate.h"

namespace kernelpro::search {

/// All that was found out about one candidate.
struct Assessment {
  Evaluation evaluation;
  Profile profile;  ///< empty unless the verdict is ok
  Diagnosis diagnosis;
  std::string feedback;
};

/// Compiles, checks, times, profiles and diagnoses. An Error only for our own failures.
class Assessor {
 public:
  virtual ~Assessor() = default;
  [[nodiscard]] virtual Result<Assessment> Assess(const Candidate& candidate,
                                                  const std::stop_token& stop) = 0;
  /// The diagnosis that Assess() made of this profile: the same profile always gives the same one,
  /// so it is made again when a run is continued.
  [[nodiscard]] virtual Diagnosis Rediagnose(const Profile& profile) const = 0;
};

}  // namespace kernelpro::search
