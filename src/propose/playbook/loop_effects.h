// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "propose/playbook/analysis.h"

namespace kernelpro::playbook {

/// A scalar that a loop folds all its iterations into, in any order.
struct Reduction {
  enum class Op : std::uint8_t { kSum, kProduct, kMax, kMin };
  const Node* variable = nullptr;
  Op op = Op::kSum;
  std::string function;  ///< "fmaxf", "max", ...; empty for sums, products and comparisons

  /// Statement that folds `other` into the variable.
  [[nodiscard]] std::string Combine(std::string_view other) const;
};

/// What a counted loop does besides reading, when its iterations may run in any order.
struct LoopEffects {
  std::vector<Reduction> reductions;
  std::vector<Access> accesses;
  std::string obstacle;  ///< why the order of iterations matters, or might; empty: it does not

  [[nodiscard]] bool Writes() const;
};

[[nodiscard]] LoopEffects EffectsOf(const CountedLoop& loop, const SourceModel& model);

/// The neutral element is what `variable` holds when `loop` starts, provably.
[[nodiscard]] bool StartsNeutral(const Reduction& reduction, const Node& loop,
                                 const SourceModel& model);

/// Types that __shfl_xor_sync takes.
[[nodiscard]] bool CanShuffle(std::string_view type);

}  // namespace kernelpro::playbook
