// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "propose/playbook/source_model.h"
#include "propose/proposer.h"

namespace kernelpro::playbook {

/// What the rewrites hand back: changed sources, and why other places were left alone.
struct Outcome {
  std::vector<Proposal> proposals;
  std::vector<Declined> declined;

  void Decline(std::string action, std::string why) {
    declined.push_back({std::move(action), std::move(why)});
  }
};

/// One source-to-source change of a candidate. Stateless. A rewrite keeps the meaning of the
/// program (up to the order of floating-point sums); where it cannot prove that it may, it declines
/// and says what stands in the way. The result is parsed again before anybody sees it.
class Rewrite {
 public:
  virtual ~Rewrite() = default;
  [[nodiscard]] virtual std::string_view id() const = 0;
  /// The findings it answers, most fitting first. Empty: a tunable that no finding asks for.
  [[nodiscard]] virtual std::vector<std::string_view> answers() const = 0;
  virtual void Apply(const SourceModel& model, const ProposalRequest& request,
                     Outcome& outcome) const = 0;

 protected:
  /// A proposal for `source` with its reason, finding and prior filled in from the diagnosis.
  /// `kernel` may be empty. `change`: what was changed and why it helps, a clause. `unasked`: the
  /// prior when no finding asks for it.
  [[nodiscard]] Proposal Propose(const ProposalRequest& request, std::string_view kernel,
                                 std::string action, std::string source, std::string_view change,
                                 double unasked) const;
};

/// "line 7", "lines 7, 9 and 12": where a rewrite changed something.
[[nodiscard]] std::string LineList(const std::vector<std::uint32_t>& lines);

[[nodiscard]] std::unique_ptr<Rewrite> MakeTuneConstant();
[[nodiscard]] std::unique_ptr<Rewrite> MakeSwapThreadRoles();
[[nodiscard]] std::unique_ptr<Rewrite> MakeWarpPerRow();
[[nodiscard]] std::unique_ptr<Rewrite> MakeTileThroughShared();
[[nodiscard]] std::unique_ptr<Rewrite> MakePadShared();
[[nodiscard]] std::unique_ptr<Rewrite> MakeFloatLiterals();
[[nodiscard]] std::unique_ptr<Rewrite> MakeShuffleReduction();
[[nodiscard]] std::unique_ptr<Rewrite> MakeDeferReduction();
[[nodiscard]] std::unique_ptr<Rewrite> MakeVectorAccess();
[[nodiscard]] std::unique_ptr<Rewrite> MakeRestrictPointers();
[[nodiscard]] std::unique_ptr<Rewrite> MakeGridStride();
[[nodiscard]] std::unique_ptr<Rewrite> MakeUnroll();
[[nodiscard]] std::unique_ptr<Rewrite> MakeTileMatmul();
[[nodiscard]] std::unique_ptr<Rewrite> MakeFastMath();

/// All of them, in the order in which they are tried when the diagnosis says nothing.
[[nodiscard]] std::vector<std::unique_ptr<Rewrite>> AllRewrites();

}  // namespace kernelpro::playbook
