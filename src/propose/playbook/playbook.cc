// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/playbook.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "propose/playbook/parser.h"
#include "propose/playbook/rewrite.h"
#include "propose/playbook/validate.h"

namespace kernelpro {
namespace {

using playbook::Outcome;
using playbook::Parser;
using playbook::Rewrite;
using playbook::SourceModel;

class Playbook final : public Proposer {
 public:
  explicit Playbook(PlaybookOptions options)
      : options_(std::move(options)), rewrites_(playbook::AllRewrites()) {}

  [[nodiscard]] std::string_view name() const override { return "playbook"; }

  [[nodiscard]] Result<Proposals> Propose(const ProposalRequest& request,
                                          const std::stop_token& stop) override {
    const std::scoped_lock lock(mutex_);
    if (parser_ == nullptr) {
      KP_ASSIGN_OR_RETURN(parser_,
                          Parser::Create(options_.cuda_include_folder, options_.cpp_include_folders,
                                         options_.clang_resource_folder));
    }
    const std::string header = CandidateHeader(request.task);
    Proposals answer;
    Result<SourceModel> model = parser_->Parse(request.parent.source, header);
    if (!model) {
      answer.declined.push_back({"playbook", model.error().message});
      return answer;
    }
    Outcome outcome;
    if (model->kernels().empty()) {
      outcome.Decline("playbook", "the candidate defines no __global__ function");
    }
    for (const auto& rewrite : rewrites_) {
      if (stop.stop_requested()) {
        return Fail(ErrorCode::kCancelled, "playbook: stopped while rewriting");
      }
      rewrite->Apply(*model, request, outcome);
    }
    std::ranges::stable_sort(
        outcome.proposals, [](const Proposal& a, const Proposal& b) { return a.prior > b.prior; });
    std::set<std::string> seen = {request.parent.source};
    for (Proposal& proposal : outcome.proposals) {
      if (stop.stop_requested()) {
        return Fail(ErrorCode::kCancelled, "playbook: stopped while checking the rewrites");
      }
      std::string obstacle = Finish(*model, header, proposal.candidate.source);
      if (!obstacle.empty()) {
        outcome.Decline(std::move(proposal.action), std::move(obstacle));
      } else if (seen.insert(proposal.candidate.source).second) {
        answer.proposals.push_back(std::move(proposal));
      }
    }
    std::ranges::move(outcome.declined, std::back_inserter(answer.declined));
    return answer;
  }

 private:
  /// Parses a result again, drops constants that it no longer needs, and checks it against the
  /// limits of a launch. Says why it cannot be proposed; empty: it can.
  std::string Finish(const SourceModel& before, const std::string& header, std::string& source) {
    const Result<SourceModel> after = parser_->Parse(source, header);
    if (!after) {
      return fmt::format("its result does not compile ({})", after.error().message);
    }
    source = playbook::WithoutUnusedConstants(before, *after);
    return playbook::ExceededLimit(*after);
  }

  PlaybookOptions options_;
  std::vector<std::unique_ptr<Rewrite>> rewrites_;
  std::mutex mutex_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace

std::unique_ptr<Proposer> MakePlaybook(PlaybookOptions options) {
  return std::make_unique<Playbook>(std::move(options));
}

}  // namespace kernelpro
