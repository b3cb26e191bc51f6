// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// One search on disk: a folder with run.db (SQLite, WAL, STRICT tables). Everything that a resumed
/// run needs is in it, and nothing in it is an absolute path, so the folder can be moved.
namespace kernelpro::store {

using NodeId = std::int64_t;
inline constexpr NodeId kRoot = 1;

/// A candidate that was evaluated or is about to be.
struct NodeRecord {
  NodeId id = 0;
  NodeId parent = 0;   ///< 0 for the root (the seed)
  std::string action;  ///< what was done to the parent; "seed" for the root
  std::string reason;
  std::string finding;  ///< id it answers; may be empty
  double prior = 0;
  std::string source;
  std::vector<std::string> flags;
  std::string content;  ///< content hash of source and flags: no two nodes share one
  bool done = false;    ///< the fields below are set, once and for all
  std::string verdict;
  std::string verdict_reason;
  double time_us = 0;       ///< 0 unless the verdict is ok
  std::string provenance;   ///< "measured" | "modelled"
  std::string evaluation;   ///< JSON
  std::string diagnosis;    ///< JSON; empty unless ok
  std::string feedback;     ///< text; empty unless ok
  std::string profile;      ///< JSON (docs/profile_format.md); empty unless ok
  std::string origin;       ///< the model or agent that wrote it; empty: the proposer of the run
  std::int64_t barren = 0;  ///< how many times in a row a child was asked for and none came
};

/// A child that a node could have. `taken` is set once a node was made of it, or it proved a
/// double.
struct ProposalRecord {
  std::int64_t id = 0;
  NodeId node = 0;
  std::string action, reason, finding;
  double prior = 0;
  std::string source;
  std::vector<std::string> flags;
  std::string content;
  std::string origin;
  bool taken = false;
};

struct DeclinedRecord {
  NodeId node = 0;
  std::string action, why;
};

/// What evaluating a node found out, written in one transaction.
struct NodeResult {
  NodeId node = 0;
  std::string verdict, verdict_reason;
  double time_us = 0;
  std::string provenance, evaluation, diagnosis, feedback, profile;
  std::vector<ProposalRecord> proposals;
  std::vector<DeclinedRecord> declined;
};

/// Something learnt; append-only. `kind` as of propose/proposer.h.
struct LessonRecord {
  std::int64_t id = 0;
  NodeId node = 0;
  std::string kind, text;
};

/// What a proposer that is asked on demand answered, written in one transaction.
struct Expansion {
  NodeId node = 0;  ///< the parent
  std::vector<ProposalRecord> proposals;
  std::vector<DeclinedRecord> declined;
  std::vector<LessonRecord> lessons;
  bool barren = false;  ///< nothing new came
};

/// One question to a model and what came back.
struct ExchangeRecord {
  std::int64_t id = 0;
  NodeId node = 0;      ///< the parent that it was asked for
  std::string purpose;  ///< "planner", "coder", ...
  std::string hash;     ///< of the request
  std::string request;  ///< JSON; never holds a key
  /// "sent" (the process died before an answer was kept: counted at its upper bound), "answered" or
  /// "failed" (`response` is the error's text).
  std::string state;
  std::string response;  ///< JSON
  std::string model;     ///< who answered
  std::int64_t input_tokens = 0, output_tokens = 0;
  double cost = 0;    ///< dollars: what was paid; while "sent", the most that it can be
  bool used = false;  ///< what it led to is in the run (AddExpansion)
};

/// A node judged again on another device than the run's own. Never part of the run's ranking.
struct MeasurementRecord {
  NodeId node = 0;
  std::string device, gpu;
  std::string verdict, verdict_reason;
  double time_us = 0;  ///< 0 unless ok
  std::string provenance, evaluation;
};

/// Owned by one process at a time (a lock on the folder); not thread safe.
class RunStore {
 public:
  /// A new run. The folder must not exist, or be empty. `facts` (task, device, seed, ...) are kept.
  [[nodiscard]] static Result<std::unique_ptr<RunStore>> Create(
      const std::filesystem::path& folder, const std::map<std::string, std::string>& facts);
  /// kNotFound: no run there. kUnavailable: another process holds it. kInvalidArgument: made by a
  /// newer KernelPro, or damaged.
  /// Runs of older formats are brought up to date in place.
  [[nodiscard]] static Result<std::unique_ptr<RunStore>> Open(const std::filesystem::path& folder);
  /// Beside a process that holds the run: for reading what it has written so far.
  [[nodiscard]] static Result<std::unique_ptr<RunStore>> OpenForReading(
      const std::filesystem::path& folder);
  /// A private copy of a run as it stands, for reading: nothing in `folder` is touched or locked.
  [[nodiscard]] static Result<std::unique_ptr<RunStore>> OpenCopy(
      const std::filesystem::path& folder);
  virtual ~RunStore() = default;

  [[nodiscard]] virtual const std::filesystem::path& folder() const = 0;
  [[nodiscard]] virtual std::optional<std::string> Fact(std::string_view name) const = 0;
  [[nodiscard]] virtual Status SetFact(std::string_view name, std::string_view value) = 0;

  /// On disk when it returns; takes the proposal it was made of, if any. Returns the new id.
  [[nodiscard]] virtual Result<NodeId> AddNode(const NodeRecord& node,
                                               std::optional<std::int64_t> proposal) = 0;
  /// The first result of a node stays; a later one is dropped with its proposals.
  [[nodiscard]] virtual Status Finish(const NodeResult& result) = 0;
  [[nodiscard]] virtual Status TakeProposal(std::int64_t proposal) = 0;
  /// Also counts the parent's barren answers, or forgets them, and marks its exchanges as used.
  [[nodiscard]] virtual Status AddExpansion(const Expansion& expansion) = 0;
  [[nodiscard]] virtual Status AddLesson(const LessonRecord& lesson) = 0;
  /// On disk, as "sent" with its upper bounds, when it returns the new id: before the request
  /// leaves.
  [[nodiscard]] virtual Result<std::int64_t> AddExchange(const ExchangeRecord& exchange) = 0;
  /// State, response, model, tokens and cost of exchange `id`.
  [[nodiscard]] virtual Status FinishExchange(const ExchangeRecord& exchange) = 0;
  /// Replaces an earlier measurement of the same node on the same device.
  [[nodiscard]] virtual Status SetMeasurement(const MeasurementRecord& measurement) = 0;

  [[nodiscard]] virtual Result<std::vector<NodeRecord>> Nodes() const = 0;
  [[nodiscard]] virtual Result<std::vector<ProposalRecord>> Proposals(NodeId node) const = 0;
  [[nodiscard]] virtual Result<std::vector<DeclinedRecord>> Declined(NodeId node) const = 0;
  [[nodiscard]] virtual Result<std::vector<LessonRecord>> Lessons() const = 0;
  [[nodiscard]] virtual Result<std::vector<ExchangeRecord>> Exchanges() const = 0;
  [[nodiscard]] virtual Result<std::vector<MeasurementRecord>> Measurements() const = 0;
};

}  // namespace kernelpro::store
