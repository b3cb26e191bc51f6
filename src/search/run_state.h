// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "propose/proposer.h"
#include "search/assessor.h"
#include "search/tree.h"
#include "store/run_store.h"

namespace kernelpro::search {

/// How a proposer that is asked on demand is used.
struct OnDemand {
  /// Children are asked for as the policy chooses, not listed once for all.
  bool enabled = false;
  /// How many wrong kernels in a row may be mended before their line is given up; 0: none is.
  std::uint32_t repairs = 2;
};

/// The nodes of a run in memory, as records and as a tree, kept in step with the store. Shared by
/// the driver and by outside agents.
class RunState {
 public:
  RunState(store::RunStore& store, OnDemand on_demand) : store_(store), on_demand_(on_demand) {}

  [[nodiscard]] Status Load();

  [[nodiscard]] const std::vector<store::NodeRecord>& nodes() const { return nodes_; }

  [[nodiscard]] const Tree& tree() const { return tree_; }

  [[nodiscard]] Tree& tree() { return tree_; }

  /// Null when there is none of that number.
  [[nodiscard]] const store::NodeRecord* Find(NodeId id) const;
  /// The node that has this content, if any.
  [[nodiscard]] std::optional<NodeId> HasContent(const std::string& content) const;

  /// On disk when it returns; gives the node its id.
  [[nodiscard]] Result<NodeId> Add(store::NodeRecord node, std::optional<std::int64_t> proposal);
  /// Writes what was found out about a node and puts it into the tree.
  [[nodiscard]] Status Finish(const store::NodeResult& result);
  /// Writes what a proposer answered on demand. Returns how many of its kernels are new.
  [[nodiscard]] Result<std::size_t> Expand(NodeId parent, const Proposals& answer);

  /// A wrong node that is to be mended before anything else is tried: the oldest one.
  [[nodiscard]] std::optional<NodeId> ToRepair() const;

  /// Nodes that have a result, and how many of each verdict.
  [[nodiscard]] std::uint32_t Evaluated() const;
  [[nodiscard]] std::map<std::string, std::uint32_t> Verdicts() const;

  /// Everything about a parent that a proposer may want to know, but for diagnosis and profile.
  struct Surroundings {
    NodeBrief node, best;
    std::vector<NodeBrief> path, tried;
    double seed_us = 0;
  };

  [[nodiscard]] Surroundings Around(NodeId parent) const;

 private:
  [[nodiscard]] Status AddToTree(const store::NodeRecord& record);
  /// The proposals of a node that are not nodes yet, from the store into the tree.
  [[nodiscard]] Status LoadUntried(NodeId id);
  [[nodiscard]] bool MayGrow(const store::NodeRecord& record) const;
  void Refresh(NodeId id);

  store::RunStore& store_;
  OnDemand on_demand_;
  std::vector<store::NodeRecord> nodes_;  ///< in order of id
  std::set<std::string> planned_;         ///< contents of proposals that are not nodes yet
  Tree tree_;
};

[[nodiscard]] NodeBrief Brief(const store::NodeRecord& node);

}  // namespace kernelpro::search
