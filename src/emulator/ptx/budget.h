// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace kernelpro::ptx {

/// Bounds on what a text may make the parser hold in memory: far above real modules (a CUTLASS
/// kernel has some ten thousand instructions), and low enough that hostile text stays near 1 GiB.
inline constexpr std::uint64_t kLongestText = std::uint64_t{32} << 20U;
inline constexpr std::uint64_t kMostInstructions = std::uint64_t{2} << 20U;
inline constexpr std::uint64_t kMostOperands = std::uint64_t{4} << 20U;
inline constexpr std::uint64_t kMostInitializerBytes = std::uint64_t{64} << 20U;
/// brx.idx targets, counted once per brx.idx that names the list.
inline constexpr std::uint64_t kMostBranchTargets = std::uint64_t{4} << 20U;

/// What one module has used of the bounds.
struct Budget {
  std::uint64_t instructions = 0;
  std::uint64_t operands = 0;
  std::uint64_t initializer_bytes = 0;
  std::uint64_t branch_targets = 0;
};

}  // namespace kernelpro::ptx
