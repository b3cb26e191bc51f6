// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "task/task.h"

namespace kernelpro {

/// Contents of an input tensor: `count` elements drawn as its fill says, changed as `distribution`
/// says. Same arguments, same bytes.
///
/// Fills that promise a range keep it: a uniform one [low, high], a normal one whose mean is 3 or
/// more deviations from 0 (a variance, say) mean +- 3 deviations, integers low..high. There zero
/// mean and denormals are the fill itself, heavy tails crowd at the edges, and the outlier is an
/// edge. Zeros, ones and a deviation of 0 stay what they are. No value is infinite.
[[nodiscard]] std::vector<std::byte> MakeInput(const TensorSpec& tensor, std::uint64_t count,
                                               std::uint64_t seed,
                                               Distribution distribution = Distribution::kFill);

/// Writes the poison of `seed`: a pattern that no other seed gives and that reads as a NaN in every
/// float type, so that an element nobody wrote can be told and can never pass for an answer.
void Poison(std::span<std::byte> bytes, std::uint64_t seed);

}  // namespace kernelpro
