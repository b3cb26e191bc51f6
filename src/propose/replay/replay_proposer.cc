// SPDX-License-Identifier: Apache-2.0
#include "propose/replay/replay_proposer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kernelpro {
namespace {

class Replay final : public Proposer {
 public:
  explicit Replay(std::vector<store::NodeRecord> recorded) : recorded_(std::move(recorded)) {}

  [[nodiscard]] std::string_view name() const override { return "replay"; }

  [[nodiscard]] bool on_demand() const override { return true; }

  [[nodiscard]] Result<Proposals> Propose(const ProposalRequest& request,
                                          const std::stop_token& /*stop*/) override {
    const auto parent =
        std::find_if(recorded_.begin(), recorded_.end(),
                     [&](const store::NodeRecord& node) { return node.id == request.node.node; });
    if (parent == recorded_.end() || parent->source != request.parent.source ||
        parent->flags != request.parent.flags) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("the replay diverges at node {}: the recorded run {}", request.node.node,
                      parent == recorded_.end() ? "has no such node" : "has another kernel there"));
    }
    Proposals proposals;
    std::size_t skip = request.tried.size();
    for (const store::NodeRecord& node : recorded_) {
      if (node.parent == parent->id && skip-- == 0) {
        Proposal proposal;
        proposal.candidate = {node.source, node.flags};
        proposal.action = node.action;
        proposal.reason = node.reason;
        proposal.finding = node.finding;
        proposal.prior = node.prior;
        proposal.origin = node.origin;
        proposals.proposals.push_back(std::move(proposal));
        break;
      }
    }
    return proposals;
  }

 private:
  std::vector<store::NodeRecord> recorded_;
};

}  // namespace

std::unique_ptr<Proposer> MakeReplay(std::vector<store::NodeRecord> recorded) {
  return std::make_unique<Replay>(std::move(recorded));
}

}  // namespace kernelpro
