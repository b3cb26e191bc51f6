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

/// A node of the search in a few words.
struct NodeBrief {
  std::int64_t node = 0, parent = 0;  ///< parent 0: the seed
  std::string action, reason, finding;
  std::string verdict, verdict_reason;
  double time_us = 0;  ///< 0 unless ok
};

/// Something learnt in this run; append-only.
struct Lesson {
  enum class Kind : std::uint8_t {
    kError,    ///< a mistake not to make again
    kDeadEnd,  ///< an idea that did not help, and why
    kWin,      ///< an idea that did
    kFact,     ///< an API, a file, a limit of the hardware
  };
  Kind kind = Kind::kFact;
  std::string text;       ///< one or two sentences
  std::int64_t node = 0;  ///< that taught it
};

/// "error", "dead_end", "win", "fact".
[[nodiscard]] std::string_view Name(Lesson::Kind kind);
/// kFact for a word that is none of these.
[[nodiscard]] Lesson::Kind ParseLessonKind(std::string_view name);

/// A rewrite that was considered and does not apply, or an answer that held no kernel.
struct Declined {
  std::string action;
  std::string why;
};

/// A parent and what is known about it. All of it can be read back from the run store, so that a
/// resumed run asks what an uninterrupted one would have asked.
struct ProposalRequest {
  const Task& task;
  const Candidate& parent;
  const Diagnosis& diagnosis;  ///< of the parent; empty unless it is ok
  const Profile& profile;      ///< of the parent; empty unless it is ok
  std::uint64_t seed = 0;      ///< for proposers that draw

  // Where the parent stands in the search: for proposers that look at it.
  NodeBrief node = {};                  ///< the parent
  std::string feedback = {};            ///< its diagnosis in words
  std::vector<NodeBrief> path = {};     ///< from the seed to the parent, both included
  std::vector<NodeBrief> tried = {};    ///< children of the parent so far
  std::vector<Declined> declined = {};  ///< answers about the parent that became no child
  std::vector<Lesson> memory = {};      ///< oldest first
  NodeBrief best = {};                  ///< the fastest so far
  double seed_us = 0;
  std::string provenance = {};  ///< of every time in here: "measured" | "modelled"
  std::string gpu = {};         ///< "H200 (emulated)"
};

struct Proposal {
  Candidate candidate;
  std::string action;       ///< stable id of what was done: "pad_shared(tile,+1)"
  std::string reason;       ///< one sentence: which finding, what was changed, why it should help
  std::string finding;      ///< id it answers; empty for exploration of a tunable
  double prior = 0.5;       ///< 0..1, how promising
  std::string origin = {};  ///< who wrote it: the model that answered; empty: the proposer itself
};

struct Proposals {
  std::vector<Proposal> proposals;  ///< most promising first, no two with equal source
  std::vector<Declined> declined;
  std::vector<Lesson> lessons = {};  ///< for the memory
};

/// Makes new Candidates from a parent. Same request, same answer for the built-in ones.
class Proposer {
 public:
  virtual ~Proposer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// False: asked once for every correct node, for all the children it can have. True: asked
  /// whenever a child is wanted, also of a wrong node (to repair it), and expected to answer
  /// differently as `tried` grows.
  [[nodiscard]] virtual bool on_demand() const { return false; }

  [[nodiscard]] virtual Result<Proposals> Propose(const ProposalRequest& request,
                                                  const std::stop_token& stop) = 0;
};

}  // namespace kernelpro
