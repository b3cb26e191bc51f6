// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "kernelpro/profile.h"
#include "sass/control_flow.h"
#include "sass/listing.h"

namespace kernelpro::sass {

/// What the machine code of one function says without being run.
struct Statistics {
  /// `sass.*` of the whole function and `sass.loop.*` of its hot loop, unit "inst" where none is
  /// natural. Counted, except critical_path and recurrence (cycles by the latency table: modelled).
  /// Figures of the loop are absent when there is none; so are those that need a thing the loop
  /// does not have (ldg_batch without LDG, wait_depth without DEPBAR.LE SB0).
  std::map<std::string, Metric> metrics;
  std::optional<HotLoop> hot_loop;
  std::map<std::string, std::uint64_t> opcodes;  ///< with modifiers, padding left out
};

/// How often each instruction ran, by its address.
using Executed = std::map<std::uint64_t, double>;

/// The loop that weighs most. With counts: the one outside whose inner loops most instructions ran,
/// if that is a tenth of all. Without: of the innermost loops, those with matrix instructions
/// before those with other math or memory before the rest, then 10^depth * size. Loop::IsReal only.
/// kNone: the function has no such loop.
[[nodiscard]] std::uint32_t ChooseHotLoop(const Function& function, const ControlFlow& flow,
                                          const Executed* executed);

/// Sample of what it gives for a tiled matrix product: sass.ffma 256, sass.loop.lds 32,
/// sass.loop.bar 2, sass.loop.staged_copy 1.
[[nodiscard]] Statistics Analyze(const Function& function, const Executed* executed = nullptr);

}  // namespace kernelpro::sass
