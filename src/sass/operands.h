// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sass/listing.h"

namespace kernelpro::sass {

/// One register: R0..R254, UR0..UR254, P0..P7, UP0..UP7 in one numbering. The constants RZ, URZ, PT
/// and UPT are no registers.
using Slot = std::uint16_t;

inline constexpr Slot kUniformSlots = 256;           ///< UR0
inline constexpr Slot kPredicateSlots = 512;         ///< P0
inline constexpr Slot kUniformPredicateSlots = 520;  ///< UP0
inline constexpr std::size_t kSlots = 528;

/// What an instruction reads and writes, wide registers in full: IMAD.WIDE R2 writes R2 and R3.
struct Access {
  std::vector<Slot> writes;
  std::vector<Slot> reads;    ///< all: sources, addresses, guard
  std::vector<Slot> address;  ///< of the reads, those inside [...]
  std::vector<Slot> data;     ///< of the reads, what a store stores
  std::vector<Slot> plain;    ///< general source registers without .reuse, one per operand
  bool guarded = false;       ///< may not happen, so a write does not end an older value
};

[[nodiscard]] Access AccessOf(const Instruction& instruction);

/// Where a memory instruction goes: [R2.64+UR4+0x10]. Of two addresses (LDGSTS) the last, which is
/// the global one.
struct Address {
  std::optional<Slot> base;
  std::optional<Slot> uniform;
  std::int64_t offset = 0;
};

[[nodiscard]] std::optional<Address> AddressOf(const Instruction& instruction);

/// "R4, [R2], {a, b}" at commas outside brackets; trimmed views.
[[nodiscard]] std::vector<std::string_view> SplitOperands(std::string_view operands);

}  // namespace kernelpro::sass
