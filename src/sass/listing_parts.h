// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sass/listing.h"

/// What the readers of the two forms share; not for other modules.
namespace kernelpro::sass {

inline constexpr std::size_t kMostInstructions = 2'000'000;
inline constexpr std::size_t kMostFunctions = 200'000;

/// "1f0", "0x1f0"; nothing when another character follows or it is longer than 64 bits.
[[nodiscard]] std::optional<std::uint64_t> ParseHex(std::string_view text);

/// Splits "@!P0 LDG.E R4, [R2] " into its three parts; false when there is no opcode.
[[nodiscard]] bool SplitInstruction(std::string_view text, Instruction* instruction);

/// Whether the last operand of this opcode is an address in the code.
[[nodiscard]] bool HasTarget(std::string_view opcode);

/// The part of a target operand after which an absolute address stands: "P0, 0x4f0" -> 0x4f0.
[[nodiscard]] std::optional<std::uint64_t> NumericTarget(std::string_view operands);

/// A header that comes with CUDA: nothing that its user could change.
[[nodiscard]] bool IsToolkitHeader(std::string_view path);

/// nvdisasm -json.
[[nodiscard]] Result<Listing> ParseJsonListing(std::string_view text, std::string_view label);

/// What a text without one instruction looks like: "the log of compute-sanitizer"; empty: unknown.
[[nodiscard]] std::string_view LooksLike(std::string_view text);

}  // namespace kernelpro::sass
