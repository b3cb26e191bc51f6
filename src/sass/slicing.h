// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sass/control_flow.h"
#include "sass/listing.h"

namespace kernelpro::sass {

/// What a stalled instruction waits for.
struct Producer {
  std::uint64_t address = 0;
  std::string text;  ///< "LDG.E R4, [R2.64]"
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t distance =
      0;  ///< instructions from it to the stalled one; 0: the instruction itself
};

/// Goes back from stalled instructions of one function. Keeps a reference to it.
class Slicer {
 public:
  explicit Slicer(const Function& function);

  /// The nearest producer for the instruction at `address`, stalled for `reason`
  /// ("long_scoreboard", or with the prefix and suffix of a metric name). By reason:
  ///
  ///   long_scoreboard   LDG LDL LD TEX ATOMG... that writes an operand; for DEPBAR the last LDGSTS
  ///   short_scoreboard  LDS LDSM MUFU SHFL ATOMS S2R... that writes an operand
  ///   wait              the last fixed-latency instruction before it, an operand's if there is one
  ///   gmma              the last HGMMA (or its like)
  ///   barrier, membar, sleeping   the BAR, MEMBAR or NANOSLEEP itself
  ///
  /// Goes along every path, also around loops; a value that was computed on the way counts with
  /// what it was computed from, after all direct producers. Nothing: the reason has no producer
  /// (math_pipe_throttle, not_selected...), none was found, or no instruction is at the address.
  [[nodiscard]] std::optional<Producer> Find(std::uint64_t address, std::string_view reason) const;

 private:
  const Function& function_;
  ControlFlow flow_;
};

}  // namespace kernelpro::sass
