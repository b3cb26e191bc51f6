// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "task/task.h"

namespace kernelpro {

/// Contents of an input tensor: `count` elements drawn as its fill says. Same seed, same bytes.
[[nodiscard]] std::vector<std::byte> MakeInput(const TensorSpec& tensor, std::uint64_t count,
                                               std::uint64_t seed);

/// Writes the poison of `seed`: a pattern that no other seed gives and that reads as a NaN in every
/// float type, so that an element nobody wrote can be told and can never pass for an answer.
void Poison(std::span<std::byte> bytes, std::uint64_t seed);

}  // namespace kernelpro
