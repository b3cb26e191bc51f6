// SPDX-License-Identifier: Apache-2.0
#include "search/driver.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/hash.h"
#include "search/record.h"
#include "search/tree.h"

namespace kernelpro::search {
namespace {

using store::NodeRecord;
using store::ProposalRecord;

/// Our own machinery failing this often in a row means that going on only burns time.
constexpr int kMostInfrastructureErrors = 3;

class Driver {
 public:
  Driver(const SearchParts& parts, const SearchOptions& options, const std::stop_token& stop)
      : parts_(parts), options_(options), stop_(stop), start_(parts.clock.Now()) {}

  [[nodiscard]] Result<SearchResult> Run(const Candidate& seed) {
    KP_RETURN_IF_ERROR(Load());
    if (nodes_.empty()) {
      NodeRecord root;
      root.action = "seed";
      root.source = seed.source;
      root.flags = seed.flags;
      root.content = ContentKey(seed);
      KP_RETURN_IF_ERROR(AddNode(std::move(root), std::nullopt));
    }
    // A process that died left at most one node without a result; it is evaluated first.
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].done) {
        KP_RETURN_IF_ERROR(Evaluate(i));
        if (stop_.stop_requested()) {
          return Summary(Stopped::kRequested);
        }
      }
    }
    KP_RETURN_IF_ERROR(CheckRoot());
    return Loop();
  }

 private:
  [[nodiscard]] Result<SearchResult> Loop() {
    while (true) {
      if (stop_.stop_requested()) {
        return Summary(Stopped::kRequested);
      }
      if (Evaluated() >= options_.evaluations) {
        return Summary(Stopped::kEvaluations);
      }
      if (TimeLeft().count() <= 0) {
        return Summary(Stopped::kTime);
      }
      Rng rng = Rng(options_.seed).Fork(nodes_.size());
      const std::optional<Choice> choice = parts_.policy.Choose(tree_, rng);
      if (!choice) {
        return Summary(Stopped::kExhausted);
      }
      KP_RETURN_IF_ERROR(Expand(*choice));
    }
  }

  [[nodiscard]] Status Load() {
    KP_ASSIGN_OR_RETURN(nodes_, parts_.store.Nodes());
    for (const NodeRecord& node : nodes_) {
      contents_.insert(node.content);
      if (node.done) {
        KP_RETURN_IF_ERROR(AddToTree(node));
      }
    }
    return Ok();
  }

  [[nodiscard]] Status AddToTree(const NodeRecord& record) {
    TreeNode node;
    node.id = record.id;
    node.parent = record.parent;
    node.action = record.action;
    node.correct = record.verdict == Name(Verdict::kOk);
    node.counts = record.verdict != Name(Verdict::kInfrastructureError);
    node.time_us = record.time_us;
    if (node.correct && !tree_.empty()) {
      node.log_speedup = std::log(tree_.At(store::kRoot).time_us / record.time_us);
    }
    tree_.Add(std::move(node));
    KP_ASSIGN_OR_RETURN(const std::vector<ProposalRecord> proposals,
                        parts_.store.Proposals(record.id));
    std::vector<Untried> untried;
    for (const ProposalRecord& p : proposals) {
      if (!p.taken) {
        untried.push_back({p.id, p.action, p.prior});
      }
    }
    tree_.SetUntried(record.id, std::move(untried));
    return Ok();
  }

  [[nodiscard]] Status AddNode(NodeRecord node, std::optional<std::int64_t> proposal) {
    KP_ASSIGN_OR_RETURN(node.id, parts_.store.AddNode(node, proposal));
    contents_.insert(node.content);
    nodes_.push_back(std::move(node));
    return Ok();
  }

  [[nodiscard]] Status Expand(const Choice& choice) {
    KP_ASSIGN_OR_RETURN(const std::vector<ProposalRecord> proposals,
                        parts_.store.Proposals(choice.parent));
    tree_.RemoveUntried(choice.parent, choice.proposal);
    for (const ProposalRecord& p : proposals) {
      if (p.id != choice.proposal) {
        continue;
      }
      if (contents_.contains(p.content)) {  // Another path led to the same kernel already.
        return parts_.store.TakeProposal(p.id);
      }
      NodeRecord node;
      node.parent = choice.parent;
      node.action = p.action;
      node.reason = p.reason;
      node.finding = p.finding;
      node.prior = p.prior;
      node.source = p.source;
      node.flags = p.flags;
      node.content = p.content;
      KP_RETURN_IF_ERROR(AddNode(std::move(node), p.id));
      return Evaluate(nodes_.size() - 1);
    }
    return Fail(ErrorCode::kInternal,
                fmt::format("proposal {} is not in the run", choice.proposal));
  }

  [[nodiscard]] Status Evaluate(std::size_t index) {
    NodeRecord& node = nodes_[index];
    Report(node.action);
    const Candidate candidate{node.source, node.flags};
    Result<Assessment> assessed = parts_.assessor.Assess(candidate, stop_);
    if (stop_.stop_requested()) {
      return Ok();  // Whatever came of it was cut short: the node stays without a result.
    }
    if (!assessed) {
      return std::move(assessed).error().Wrap(fmt::format("evaluate node {}", node.id));
    }
    Proposals proposals;
    if (assessed->evaluation.verdict == Verdict::kOk) {
      KP_ASSIGN_OR_RETURN(
          proposals,
          parts_.proposer.Propose(
              {.task = parts_.task,
               .parent = candidate,
               .diagnosis = assessed->diagnosis,
               .profile = assessed->profile,
               .seed = Rng(options_.seed).Fork(static_cast<std::uint64_t>(node.id)).Next()},
              stop_));
      if (stop_.stop_requested()) {
        return Ok();
      }
    }
    const store::NodeResult result = MakeResult(node.id, *assessed, proposals);
    KP_RETURN_IF_ERROR(parts_.store.Finish(result));
    node.done = true;
    node.verdict = result.verdict;
    node.verdict_reason = result.verdict_reason;
    node.time_us = result.time_us;
    node.provenance = result.provenance;
    node.evaluation = result.evaluation;
    node.diagnosis = result.diagnosis;
    node.feedback = result.feedback;
    KP_RETURN_IF_ERROR(AddToTree(node));
    Report("");
    return CountInfrastructureErrors(node);
  }

  [[nodiscard]] Status CountInfrastructureErrors(const NodeRecord& node) {
    const bool ours = node.verdict == Name(Verdict::kInfrastructureError);
    infrastructure_errors_ = ours ? infrastructure_errors_ + 1 : 0;
    if (infrastructure_errors_ >= kMostInfrastructureErrors) {
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("{} evaluations in a row failed on our side, the last with: {}",
                              infrastructure_errors_, node.verdict_reason));
    }
    return Ok();
  }

  [[nodiscard]] Status CheckRoot() const {
    const NodeRecord& root = nodes_.front();
    if (root.verdict == Name(Verdict::kOk)) {
      return Ok();
    }
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("the seed kernel is not correct, so there is nothing to start from: {}: {}",
                    root.verdict, root.verdict_reason));
  }

  [[nodiscard]] std::uint32_t Evaluated() const {
    std::uint32_t done = 0;
    for (const NodeRecord& node : nodes_) {
      done += node.done ? 1 : 0;
    }
    return done;
  }

  [[nodiscard]] std::map<std::string, std::uint32_t> Verdicts() const {
    std::map<std::string, std::uint32_t> verdicts;
    for (const NodeRecord& node : nodes_) {
      if (node.done) {
        ++verdicts[node.verdict];
      }
    }
    return verdicts;
  }

  [[nodiscard]] std::chrono::milliseconds TimeLeft() const {
    return options_.time -
           std::chrono::duration_cast<std::chrono::milliseconds>(parts_.clock.Now() - start_);
  }

  void Report(std::string_view now) const {
    Progress progress;
    progress.evaluated = Evaluated();
    progress.limit = options_.evaluations;
    progress.verdicts = Verdicts();
    progress.time_left = TimeLeft();
    progress.now = now;
    if (const std::optional<NodeId> best = tree_.Best()) {
      progress.seed_us = tree_.At(store::kRoot).time_us;
      progress.best_us = tree_.At(*best).time_us;
    }
    parts_.observer.OnProgress(progress);
  }

  [[nodiscard]] Result<SearchResult> Summary(Stopped stopped) const {
    SearchResult result;
    result.stopped = stopped;
    result.evaluated = Evaluated();
    result.verdicts = Verdicts();
    result.root = nodes_.front();
    result.best = nodes_.front();
    if (const std::optional<NodeId> best = tree_.Best()) {
      for (const NodeRecord& node : nodes_) {
        if (node.id == *best) {
          result.best = node;
        }
      }
    }
    return result;
  }

  SearchParts parts_;
  SearchOptions options_;
  std::stop_token stop_;
  std::chrono::nanoseconds start_;
  std::vector<NodeRecord> nodes_;
  std::set<std::string> contents_;
  Tree tree_;
  int infrastructure_errors_ = 0;
};

}  // namespace

std::string_view Describe(Stopped stopped) {
  switch (stopped) {
    case Stopped::kEvaluations:
      return "the evaluation limit";
    case Stopped::kTime:
      return "the time limit";
    case Stopped::kRequested:
      return "request";
    case Stopped::kExhausted:
      return "having nothing left to try";
  }
  return "";
}

std::string ContentKey(const Candidate& candidate) {
  std::vector<std::string_view> parts = {candidate.source};
  parts.insert(parts.end(), candidate.flags.begin(), candidate.flags.end());
  return ContentHash(parts);
}

Result<SearchResult> RunSearch(const SearchParts& parts, const Candidate& seed_candidate,
                               const SearchOptions& options, const std::stop_token& stop) {
  return Driver(parts, options, stop).Run(seed_candidate);
}

}  // namespace kernelpro::search
