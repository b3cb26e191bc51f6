// SPDX-License-Identifier: Apache-2.0
#include "search/run_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "evaluate/evaluation.h"
#include "search/record.h"

namespace kernelpro::search {
namespace {

using store::NodeRecord;
using store::ProposalRecord;

/// So many answers in a row without a new kernel and a parent is left alone.
constexpr std::int64_t kMostBarren = 3;

}  // namespace

NodeBrief Brief(const NodeRecord& node) {
  return {node.id,      node.parent,  node.action,         node.reason,
          node.finding, node.verdict, node.verdict_reason, node.time_us};
}

Status RunState::Load() {
  KP_ASSIGN_OR_RETURN(nodes_, store_.Nodes());
  for (const NodeRecord& node : nodes_) {
    if (node.done) {
      KP_RETURN_IF_ERROR(AddToTree(node));
    }
  }
  return Ok();
}

const NodeRecord* RunState::Find(NodeId id) const {
  const auto found =
      std::lower_bound(nodes_.begin(), nodes_.end(), id,
                       [](const NodeRecord& node, NodeId wanted) { return node.id < wanted; });
  return found == nodes_.end() || found->id != id ? nullptr : &*found;
}

std::optional<NodeId> RunState::HasContent(const std::string& content) const {
  for (const NodeRecord& node : nodes_) {
    if (node.content == content) {
      return node.id;
    }
  }
  return std::nullopt;
}

Result<NodeId> RunState::Add(NodeRecord node, std::optional<std::int64_t> proposal) {
  KP_ASSIGN_OR_RETURN(node.id, store_.AddNode(node, proposal));
  nodes_.push_back(std::move(node));
  return nodes_.back().id;
}

Status RunState::AddToTree(const NodeRecord& record) {
  TreeNode node;
  node.id = record.id;
  node.parent = record.parent;
  node.action = record.action;
  node.correct = record.verdict == Name(Verdict::kOk);
  node.counts = record.verdict != Name(Verdict::kInfrastructureError);
  node.time_us = record.time_us;
  // The root itself may have no time: an agent may begin from a kernel that is still wrong.
  if (node.correct && !tree_.empty() && tree_.At(store::kRoot).time_us > 0) {
    node.log_speedup = std::log(tree_.At(store::kRoot).time_us / record.time_us);
  }
  tree_.Add(std::move(node));
  Refresh(record.id);
  if (record.parent != 0) {
    Refresh(record.parent);
  }
  return LoadUntried(record.id);
}

Status RunState::LoadUntried(NodeId id) {
  KP_ASSIGN_OR_RETURN(const std::vector<ProposalRecord> proposals, store_.Proposals(id));
  std::vector<Untried> untried;
  for (const ProposalRecord& p : proposals) {
    if (!p.taken) {
      planned_.insert(p.content);
      untried.push_back({p.id, p.action, p.prior});
    }
  }
  tree_.SetUntried(id, std::move(untried));
  return Ok();
}

bool RunState::MayGrow(const NodeRecord& record) const {
  if (!on_demand_.enabled || !record.done) {
    return false;
  }
  if (record.verdict == Name(Verdict::kOk)) {
    // The root is never given up: without it there is nothing left at all.
    return record.barren < kMostBarren || record.parent == 0;
  }
  // What the emulator cannot judge may well be right: there is nothing to mend.
  if (record.verdict == Name(Verdict::kInfrastructureError) ||
      record.verdict == Name(Verdict::kUnsupported) || record.barren > 0 ||
      !tree_.At(record.id).children.empty()) {
    return false;
  }
  std::uint32_t wrong = 0;
  for (const NodeRecord* node = &record;
       node != nullptr && node->done && node->verdict != Name(Verdict::kOk);
       node = Find(node->parent)) {
    ++wrong;
  }
  return wrong <= on_demand_.repairs;
}

void RunState::Refresh(NodeId id) {
  if (const NodeRecord* const node = Find(id)) {
    tree_.SetOpen(id, MayGrow(*node));
  }
}

Status RunState::Finish(const store::NodeResult& result) {
  KP_RETURN_IF_ERROR(store_.Finish(result));
  const auto node = std::find_if(nodes_.begin(), nodes_.end(),
                                 [&](const NodeRecord& n) { return n.id == result.node; });
  node->done = true;
  node->verdict = result.verdict;
  node->verdict_reason = result.verdict_reason;
  node->time_us = result.time_us;
  node->provenance = result.provenance;
  node->evaluation = result.evaluation;
  node->diagnosis = result.diagnosis;
  node->feedback = result.feedback;
  node->profile = result.profile;
  return AddToTree(*node);
}

Result<std::size_t> RunState::Expand(NodeId parent, const Proposals& answer) {
  store::Expansion expansion;
  expansion.node = parent;
  for (ProposalRecord& p : ProposalRecords(parent, answer.proposals)) {
    if (const std::optional<NodeId> known = HasContent(p.content)) {
      expansion.declined.push_back(
          {parent, p.action, "the same kernel as node " + std::to_string(*known)});
    } else if (planned_.contains(p.content)) {
      expansion.declined.push_back({parent, p.action, "the same kernel as another proposal"});
    } else {
      expansion.proposals.push_back(std::move(p));
    }
  }
  for (const Declined& d : answer.declined) {
    expansion.declined.push_back({parent, d.action, d.why});
  }
  for (const Lesson& lesson : answer.lessons) {
    expansion.lessons.push_back({0, lesson.node, std::string(Name(lesson.kind)), lesson.text});
  }
  expansion.barren = expansion.proposals.empty();
  KP_RETURN_IF_ERROR(store_.AddExpansion(expansion));
  const auto node = std::find_if(nodes_.begin(), nodes_.end(),
                                 [&](const NodeRecord& n) { return n.id == parent; });
  node->barren = expansion.barren ? node->barren + 1 : 0;
  KP_RETURN_IF_ERROR(LoadUntried(parent));
  Refresh(parent);
  return expansion.proposals.size();
}

std::optional<NodeId> RunState::ToRepair() const {
  for (const auto& [id, node] : tree_.nodes()) {
    if (!node.correct && id != store::kRoot && node.CanGrow()) {
      return id;
    }
  }
  return std::nullopt;
}

std::uint32_t RunState::Evaluated() const {
  return static_cast<std::uint32_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [](const NodeRecord& node) { return node.done; }));
}

std::map<std::string, std::uint32_t> RunState::Verdicts() const {
  std::map<std::string, std::uint32_t> verdicts;
  for (const NodeRecord& node : nodes_) {
    if (node.done) {
      ++verdicts[node.verdict];
    }
  }
  return verdicts;
}

RunState::Surroundings RunState::Around(NodeId parent) const {
  Surroundings around;
  for (const NodeRecord* node = Find(parent); node != nullptr; node = Find(node->parent)) {
    around.path.insert(around.path.begin(), Brief(*node));
  }
  if (!around.path.empty()) {
    around.node = around.path.back();
    around.seed_us = around.path.front().time_us;
  }
  for (const NodeRecord& node : nodes_) {
    if (node.parent == parent && node.done) {
      around.tried.push_back(Brief(node));
    }
  }
  if (const std::optional<NodeId> best = tree_.Best()) {
    around.best = Brief(*Find(*best));
  }
  return around;
}

}  // namespace kernelpro::search
