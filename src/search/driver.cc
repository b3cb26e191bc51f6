// SPDX-License-Identifier: Apache-2.0
#include "search/driver.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "profile/profile_json.h"
#include "search/memory.h"
#include "search/outcome.h"
#include "search/record.h"
#include "search/run_state.h"

namespace kernelpro::search {
namespace {

using store::NodeRecord;
using store::ProposalRecord;

/// Our own machinery failing this often in a row means that going on only burns time.
constexpr int kMostInfrastructureErrors = 3;
/// A proposer on demand that gives nothing new this often in a row only burns money.
constexpr int kMostBarrenAnswers = 8;

class Driver {
 public:
  Driver(const SearchParts& parts, const SearchOptions& options, const std::stop_token& stop)
      : parts_(parts),
        options_(options),
        stop_(stop),
        start_(parts.clock.Now()),
        state_(parts.store, {parts.proposer.on_demand(), options.repairs}) {}

  [[nodiscard]] Result<SearchResult> Run(const Candidate& seed) {
    KP_RETURN_IF_ERROR(state_.Load());
    if (state_.nodes().empty()) {
      NodeRecord root;
      root.action = "seed";
      root.source = seed.source;
      root.flags = seed.flags;
      root.content = ContentKey(seed);
      KP_RETURN_IF_ERROR(state_.Add(std::move(root), std::nullopt));
    }
    // A process that died left at most one node without a result; it is evaluated first.
    for (std::size_t i = 0; i < state_.nodes().size(); ++i) {
      if (!state_.nodes()[i].done) {
        KP_RETURN_IF_ERROR(Evaluate(state_.nodes()[i].id));
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
      if (state_.Evaluated() >= options_.evaluations) {
        return Summary(Stopped::kEvaluations);
      }
      if (TimeLeft().count() <= 0) {
        return Summary(Stopped::kTime);
      }
      const std::optional<Choice> choice = Choose();
      if (!choice) {
        return Summary(Stopped::kExhausted);
      }
      const Status done = choice->proposal != 0 ? Expand(*choice) : Ask(choice->parent);
      if (!done && done.error().code == ErrorCode::kBudget) {
        return Summary(Stopped::kBudget, done.error().message);
      }
      if (!done && !(done.error().code == ErrorCode::kCancelled && stop_.stop_requested())) {
        return done.error();
      }
    }
  }

  /// What is wrong is mended first: until then nothing is known about the idea behind it.
  [[nodiscard]] std::optional<Choice> Choose() {
    if (const std::optional<NodeId> wrong = state_.ToRepair()) {
      const std::vector<Untried>& untried = state_.tree().At(*wrong).untried;
      return Choice{*wrong, untried.empty() ? 0 : untried.front().proposal};
    }
    const TreeNode& root = state_.tree().At(store::kRoot);
    if (root.CanGrow() && root.children.size() < options_.first_children) {
      return Choice{store::kRoot, root.untried.empty() ? 0 : root.untried.front().proposal};
    }
    Rng rng = Rng(options_.seed).Fork(state_.nodes().size());
    return parts_.policy.Choose(state_.tree(), rng);
  }

  [[nodiscard]] Status Expand(const Choice& choice) {
    KP_ASSIGN_OR_RETURN(const std::vector<ProposalRecord> proposals,
                        parts_.store.Proposals(choice.parent));
    state_.tree().RemoveUntried(choice.parent, choice.proposal);
    for (const ProposalRecord& p : proposals) {
      if (p.id != choice.proposal) {
        continue;
      }
      if (state_.HasContent(p.content)) {  // Another path led to the same kernel already.
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
      node.origin = p.origin;
      KP_ASSIGN_OR_RETURN(const NodeId id, state_.Add(std::move(node), p.id));
      return Evaluate(id);
    }
    return Fail(ErrorCode::kInternal,
                fmt::format("proposal {} is not in the run", choice.proposal));
  }

  /// Asks the proposer for children of a node, from what the store knows: whether the run was
  /// interrupted makes no difference to what is asked.
  [[nodiscard]] Status Ask(NodeId parent) {
    const NodeRecord& record = *state_.Find(parent);
    Report("asking for a child of node " + std::to_string(parent));
    Profile profile;
    Diagnosis diagnosis;
    if (!record.profile.empty()) {
      KP_ASSIGN_OR_RETURN(
          profile, ParseProfileJson(record.profile, fmt::format("profile of node {}", parent)));
      diagnosis = parts_.assessor.Rediagnose(profile);
    }
    const Candidate candidate{record.source, record.flags};
    RunState::Surroundings around = state_.Around(parent);
    KP_ASSIGN_OR_RETURN(const std::vector<store::LessonRecord> lessons, parts_.store.Lessons());
    KP_ASSIGN_OR_RETURN(const std::vector<store::DeclinedRecord> before,
                        parts_.store.Declined(parent));
    std::vector<Declined> declined;
    for (const store::DeclinedRecord& d : before) {
      declined.push_back({d.action, d.why});
    }
    const std::uint64_t draw = Rng(options_.seed)
                                   .Fork(static_cast<std::uint64_t>(parent))
                                   .Fork(around.tried.size())
                                   .Next();
    KP_ASSIGN_OR_RETURN(const Proposals answer,
                        parts_.proposer.Propose({.task = parts_.task,
                                                 .parent = candidate,
                                                 .diagnosis = diagnosis,
                                                 .profile = profile,
                                                 .seed = draw,
                                                 .node = std::move(around.node),
                                                 .feedback = record.feedback,
                                                 .path = std::move(around.path),
                                                 .tried = std::move(around.tried),
                                                 .declined = std::move(declined),
                                                 .memory = Remember(state_.nodes(), lessons),
                                                 .best = std::move(around.best),
                                                 .seed_us = around.seed_us,
                                                 .provenance = state_.nodes().front().provenance,
                                                 .gpu = options_.gpu},
                                                stop_));
    KP_ASSIGN_OR_RETURN(const std::size_t kernels, state_.Expand(parent, answer));
    return CountBarrenAnswers(kernels, answer);
  }

  [[nodiscard]] Status CountBarrenAnswers(std::size_t kernels, const Proposals& answer) {
    barren_answers_ = kernels == 0 ? barren_answers_ + 1 : 0;
    if (barren_answers_ < kMostBarrenAnswers) {
      return Ok();
    }
    return Fail(
        ErrorCode::kToolFailed,
        fmt::format(
            "{} answers of the proposer in a row held no new kernel, the last: {}", barren_answers_,
            answer.declined.empty() ? std::string("nothing at all") : answer.declined.back().why));
  }

  [[nodiscard]] Status Evaluate(NodeId id) {
    const NodeRecord& node = *state_.Find(id);
    Report(node.action);
    const Candidate candidate{node.source, node.flags};
    Result<Assessment> assessed = parts_.assessor.Assess(candidate, stop_);
    if (stop_.stop_requested()) {
      return Ok();  // Whatever came of it was cut short: the node stays without a result.
    }
    if (!assessed) {
      return std::move(assessed).error().Wrap(fmt::format("evaluate node {}", id));
    }
    Proposals proposals;
    if (assessed->evaluation.verdict == Verdict::kOk && !parts_.proposer.on_demand()) {
      KP_ASSIGN_OR_RETURN(
          proposals, parts_.proposer.Propose(
                         {.task = parts_.task,
                          .parent = candidate,
                          .diagnosis = assessed->diagnosis,
                          .profile = assessed->profile,
                          .seed = Rng(options_.seed).Fork(static_cast<std::uint64_t>(id)).Next()},
                         stop_));
      if (stop_.stop_requested()) {
        return Ok();
      }
    }
    AddOutcome(node, state_.Find(node.parent), &*assessed);
    KP_RETURN_IF_ERROR(state_.Finish(MakeResult(id, *assessed, proposals)));
    Report("");
    return CountInfrastructureErrors(*state_.Find(id));
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
    const NodeRecord& root = state_.nodes().front();
    if (root.verdict == Name(Verdict::kOk)) {
      return Ok();
    }
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("the seed kernel is not correct, so there is nothing to start from: {}: {}",
                    root.verdict, root.verdict_reason));
  }

  [[nodiscard]] std::chrono::milliseconds TimeLeft() const {
    return options_.time -
           std::chrono::duration_cast<std::chrono::milliseconds>(parts_.clock.Now() - start_);
  }

  void Report(std::string_view now) const {
    Progress progress;
    progress.evaluated = state_.Evaluated();
    progress.limit = options_.evaluations;
    progress.verdicts = state_.Verdicts();
    progress.time_left = TimeLeft();
    progress.now = now;
    if (const std::optional<NodeId> best = state_.tree().Best()) {
      progress.seed_us = state_.tree().At(store::kRoot).time_us;
      progress.best_us = state_.tree().At(*best).time_us;
    }
    parts_.observer.OnProgress(progress);
  }

  [[nodiscard]] Result<SearchResult> Summary(Stopped stopped, std::string why = {}) const {
    SearchResult result = Summarize(state_);
    result.stopped = stopped;
    result.why = std::move(why);
    return result;
  }

  SearchParts parts_;
  SearchOptions options_;
  std::stop_token stop_;
  std::chrono::nanoseconds start_;
  RunState state_;
  int infrastructure_errors_ = 0;
  int barren_answers_ = 0;
};

}  // namespace

SearchResult Summarize(const RunState& state) {
  SearchResult result;
  result.stopped = Stopped::kNothing;
  result.evaluated = state.Evaluated();
  result.verdicts = state.Verdicts();
  result.root = state.nodes().front();
  result.best = result.root;
  if (const std::optional<NodeId> best = state.tree().Best()) {
    result.best = *state.Find(*best);
  }
  return result;
}

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
    case Stopped::kBudget:
      return "the budget";
    case Stopped::kNothing:
      return "nothing yet";
  }
  return "";
}

Result<SearchResult> RunSearch(const SearchParts& parts, const Candidate& seed_candidate,
                               const SearchOptions& options, const std::stop_token& stop) {
  return Driver(parts, options, stop).Run(seed_candidate);
}

}  // namespace kernelpro::search
