// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "task/candidate.h"
#include "task/task.h"

namespace kernelpro {

struct ProposalRequest {
  const Task& task;
  const Candidate& parent;
  const Diagnosis& diagnosis;  ///< of the parent
  const Profile& profile;      ///< of the parent
  std::uint64_t seed = 0;      ///< for proposers that draw
};

struct Proposal {
  Candidate candidate;
  std::string action;   ///< stable id of what was done: "pad_shared(tile,+1)"
  std::string reason;   ///< one sentence: which finding, what was changed, why it should help
  std::string finding;  ///< id it answers; empty for exploration of a tunable
  double prior = 0.5;   ///< 0..1, how promising
};

/// A rewrite that was considered and does not apply.
struct Declined {
  std::string action;
  std::string why;
};

struct Proposals {
  std::vector<Proposal> proposals;  ///< most promising first, no two with equal source
  std::vector<Declined> declined;
};

/// Makes new Candidates from a parent, its Diagnosis and Profile. Same request, same answer for the
/// built-in ones.
class Proposer {
 public:
  virtual ~Proposer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual Result<Proposals> Propose(const ProposalRequest& request,
                                                  const std::stop_token& stop) = 0;
};

}  // namespace kernelpro
