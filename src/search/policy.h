// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "search/tree.h"

namespace kernelpro::search {

/// The child to make next.
struct Choice {
  NodeId parent = 0;
  std::int64_t proposal = 0;  ///< 0: the proposer is to be asked for one
};

/// Picks what to try next. Stateless: the same tree and the same random stream give the same
/// choice, which is what makes a resumed run continue as if it had never stopped.
class Policy {
 public:
  virtual ~Policy() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Nothing when the whole tree is closed.
  [[nodiscard]] virtual std::optional<Choice> Choose(const Tree& tree, Rng& rng) const = 0;
};

/// "mcts", "greedy", "beam" or "random"; kInvalidArgument lists them.
[[nodiscard]] Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name);
[[nodiscard]] std::vector<std::string_view> PolicyNames();

}  // namespace kernelpro::search
