// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <vector>

#include "sass/control_flow.h"

namespace kernelpro::sass {

using SlotSet = std::bitset<kSlots>;

/// Registers that are read later, at the end of every block. A function with more than 50,000
/// blocks, or one that does not settle in 100 rounds (real code needs its loop depth plus two), has
/// every register live: what rests on "dead here" then finds nothing.
[[nodiscard]] std::vector<SlotSet> LiveAtEnd(const ControlFlow& flow);

}  // namespace kernelpro::sass
