// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "propose/playbook/loop_effects.h"

namespace kernelpro::playbook {

/// sh[i] op= sh[i + s]
struct Fold {
  const Node* array = nullptr;
  std::string combine;       ///< "{0} += {1};" with the value and the other
  bool keeps_start = false;  ///< max, min: any element is neutral
  std::string neutral;
};

/// for (s = N / 2; s > 0; s >>= 1) { if (t < s) sh[t] += sh[t + s]; __syncthreads(); } and its
/// interleaved forms: a reduction of N elements, one per thread, into element 0.
struct Tree {
  const Node* loop = nullptr;
  std::vector<Fold> folds;
  std::string thread;  ///< how the code spells the thread index
};

/// Nothing when the loop is no tree reduction over blocks of `threads` threads.
[[nodiscard]] std::optional<Tree> MatchTree(const Node& loop, long long threads,
                                            const SourceModel& model);

/// Threads per block (in x alone) of every launch that runs `function`, a kernel or something that
/// kernels call. Nothing, with a reason, when they differ or are not a constant power of two >= 32.
[[nodiscard]] std::optional<long long> ThreadsOf(const Node& function, const SourceModel& model,
                                                 std::string& obstacle);

/// Some loop of the function meets at a barrier in every round: worth a look for a tree.
[[nodiscard]] bool HasBarrierLoop(const Node& function);

/// array[t] = value; statements directly in front of the barrier in front of the tree, one for
/// each of its arrays, or none at all.
struct Feed {
  const Node* assign = nullptr;
  const Node* array = nullptr;
};

[[nodiscard]] std::vector<Feed> FeedsOf(const Tree& tree);

[[nodiscard]] bool IsCallOf(const Node& node, std::string_view name);

}  // namespace kernelpro::playbook
