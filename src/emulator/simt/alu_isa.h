// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emulator/simt/alu_spec.h"
#include "emulator/simt/handler.h"

/// The handlers are compiled for the x86-64-v2 and x86-64-v3 levels (other processors: once, with
/// default flags, as kV2). Both give the same bits; SelectAlu takes the better one that runs here.
namespace kernelpro::alu_v2 {
[[nodiscard]] simt::AluDecode Select(const simt::AluSpec& spec);
[[nodiscard]] simt::AluDecode Pack(int bits, int elements);
[[nodiscard]] simt::AluDecode Unpack(int bits, int elements);
}  // namespace kernelpro::alu_v2

namespace kernelpro::alu_v3 {
[[nodiscard]] simt::AluDecode Select(const simt::AluSpec& spec);
[[nodiscard]] simt::AluDecode Pack(int bits, int elements);
[[nodiscard]] simt::AluDecode Unpack(int bits, int elements);
}  // namespace kernelpro::alu_v3

namespace kernelpro::simt {

enum class AluIsa : std::uint8_t { kV2, kV3 };

/// Whether handlers of `isa` were built and this processor runs them.
[[nodiscard]] bool HasAluIsa(AluIsa isa);
[[nodiscard]] AluIsa BestAluIsa();

/// SelectAlu for one instruction set, to compare them. Requires HasAluIsa(isa).
[[nodiscard]] AluDecode SelectAluFor(AluIsa isa, const ptx::Instruction& instruction);

}  // namespace kernelpro::simt
