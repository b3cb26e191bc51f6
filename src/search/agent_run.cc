// SPDX-License-Identifier: Apache-2.0
#include "search/agent_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "search/memory.h"
#include "search/outcome.h"
#include "search/record.h"

namespace kernelpro::search {
namespace {

/// Longer texts than these are somebody's mistake, and every later prompt would carry them.
constexpr std::size_t kMostAction = 120;
constexpr std::size_t kMostReason = 2000;

Status Check(const Submission& s) {
  if (Trim(s.action).empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "a submission needs an action: a short id of what was done, like tile_64x64");
  }
  for (const auto& [name, text, most] :
       {std::tuple("action", &s.action, kMostAction), std::tuple("reason", &s.reason, kMostReason),
        std::tuple("finding", &s.finding, kMostAction),
        std::tuple("origin", &s.origin, kMostAction)}) {
    if (text->size() > most) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("the {} has {} bytes; at most {} are kept", name, text->size(), most));
    }
    // They stand in lines of reports, where a second line would pass for another node.
    if (most == kMostAction && Trim(*text).find('\n') != std::string_view::npos) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("the {} is one line", name));
    }
  }
  if (Trim(s.candidate.source).empty()) {
    return Fail(ErrorCode::kInvalidArgument, "the submitted source is empty");
  }
  return Ok();
}

}  // namespace

namespace {

/// A finding that nobody made would be believed later: what came of it is told in the feedback.
Status CheckFinding(const std::string& finding, const store::NodeRecord& parent) {
  const auto diagnosis = nlohmann::json::parse(parent.diagnosis, nullptr, false);
  if (finding.empty() || !diagnosis.is_object() || !diagnosis.contains("findings")) {
    return Ok();
  }
  std::string known;
  for (const auto& f : diagnosis["findings"]) {
    const std::string id = f.value("id", std::string());
    if (id == finding) {
      return Ok();
    }
    known += (known.empty() ? "" : ", ") + id;
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("node {} has no finding '{}'; it has {}", parent.id,
                          Printable(finding, kMostAction), known.empty() ? "none" : known));
}

}  // namespace

AgentRun::AgentRun(store::RunStore& store, const Policy& policy, std::uint64_t seed)
    : store_(store), policy_(policy), seed_(seed), state_(store, {.enabled = true}) {}

Status CheckIsWhole(const Candidate& candidate) {
  if (candidate.source.find("kernelpro_run") == std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument,
                "there is no kernelpro_run in the submitted source: submit the whole kernel, not a "
                "part of it or a diff");
  }
  return Ok();
}

bool IsWrong(const store::NodeRecord& node) {
  return node.done && node.verdict != Name(Verdict::kOk) &&
         node.verdict != Name(Verdict::kUnsupported) &&
         node.verdict != Name(Verdict::kInfrastructureError);
}

Status AgentRun::Load() {
  KP_RETURN_IF_ERROR(state_.Load());
  if (state_.nodes().empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} has no seed: it was not started to the end", store_.folder().string()));
  }
  return Ok();
}

Result<NextParent> AgentRun::Next() const {
  if (state_.tree().empty()) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("the seed has no result yet: kernelpro agent evaluate {} --pending",
                            store_.folder().string()));
  }
  NextParent next;
  next.waiting = Pending().size();
  if (const std::optional<NodeId> wrong = state_.ToRepair()) {
    next.node = *wrong;
    next.repair = true;
    return next;
  }
  Rng rng = Rng(seed_).Fork(state_.nodes().size());
  // The root stays open, so there is always a choice; a wrong seed is to be mended itself.
  const std::optional<Choice> choice = policy_.Choose(state_.tree(), rng);
  next.node = choice ? choice->parent : store::kRoot;
  next.repair = IsWrong(*state_.Find(next.node));
  return next;
}

Result<NodeId> AgentRun::Submit(const Submission& submission) {
  KP_RETURN_IF_ERROR(Check(submission));
  if (state_.Find(submission.parent) == nullptr) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("there is no node {} to be the parent; the run has nodes 1 to {}",
                            submission.parent, state_.nodes().back().id));
  }
  KP_RETURN_IF_ERROR(CheckFinding(submission.finding, *state_.Find(submission.parent)));
  store::NodeRecord node;
  node.parent = submission.parent;
  node.action = Printable(Trim(submission.action), kMostAction);
  node.reason = Printable(Trim(submission.reason), kMostReason);
  node.finding = Printable(Trim(submission.finding), kMostAction);
  node.origin = Printable(Trim(submission.origin), kMostAction);
  node.source = submission.candidate.source;
  node.flags = submission.candidate.flags;
  node.content = ContentKey(submission.candidate);
  if (const std::optional<NodeId> known = state_.HasContent(node.content)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("this is the kernel of node {} already, byte for byte", *known));
  }
  return state_.Add(std::move(node), std::nullopt);
}

std::vector<NodeId> AgentRun::Pending() const {
  std::vector<NodeId> pending;
  for (const store::NodeRecord& node : state_.nodes()) {
    if (!node.done) {
      pending.push_back(node.id);
    }
  }
  return pending;
}

Status AgentRun::Evaluate(NodeId id, Assessor& assessor, const std::stop_token& stop) {
  const store::NodeRecord* const node = state_.Find(id);
  if (node == nullptr || node->done) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("node {} is not waiting for a result", id));
  }
  if (node->parent != 0 && !state_.Find(node->parent)->done) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("node {}, the parent of node {}, has no result yet", node->parent, id));
  }
  Result<Assessment> assessed = assessor.Assess({node->source, node->flags}, stop);
  if (stop.stop_requested()) {
    return Fail(ErrorCode::kCancelled, fmt::format("stopped; node {} still waits", id));
  }
  if (!assessed) {
    return std::move(assessed).error().Wrap(fmt::format("evaluate node {}", id));
  }
  AddOutcome(*node, state_.Find(node->parent), &*assessed);
  return state_.Finish(MakeResult(id, *assessed, {}));
}

Status AgentRun::Measure(NodeId id, Assessor& assessor, const DeviceInfo& device,
                         const std::stop_token& stop) {
  const store::NodeRecord* const node = state_.Find(id);
  if (node == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("there is no node {}", id));
  }
  Result<Assessment> assessed = assessor.Assess({node->source, node->flags}, stop);
  if (stop.stop_requested()) {
    return Fail(ErrorCode::kCancelled, fmt::format("stopped at node {}", id));
  }
  if (!assessed) {
    return std::move(assessed).error().Wrap(fmt::format("measure node {}", id));
  }
  const Evaluation& e = assessed->evaluation;
  return store_.SetMeasurement({.node = id,
                                .device = device.id,
                                .gpu = device.title,
                                .verdict = std::string(Name(e.verdict)),
                                .verdict_reason = e.reason,
                                .time_us = e.verdict == Verdict::kOk ? e.time_us : 0,
                                .provenance = std::string(Name(e.time_provenance)),
                                .evaluation = Dump(EvaluationJson(e))});
}

Status AgentRun::Note(const Lesson& lesson) {
  const std::string text = Printable(Trim(lesson.text), kMostReason);
  if (text.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "a note needs a text");
  }
  // Without a node it is as old as the run is now.
  const NodeId node = lesson.node != 0 ? lesson.node : state_.nodes().back().id;
  if (state_.Find(node) == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("there is no node {}", node));
  }
  return store_.AddLesson({0, node, std::string(Name(lesson.kind)), text});
}

Result<std::vector<Lesson>> AgentRun::Memory() const {
  KP_ASSIGN_OR_RETURN(const std::vector<store::LessonRecord> written, store_.Lessons());
  return Remember(state_.nodes(), written);
}

}  // namespace kernelpro::search
