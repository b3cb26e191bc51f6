// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "kernelpro/profile.h"

namespace kernelpro::sass {

/// What one encoded instruction is: its opcode without most modifiers ("LDG", "IMAD.MOV",
/// "HMMA"). Empty: not among the encodings that were verified with the compiler.
[[nodiscard]] std::string_view DecodeOpcode(std::uint64_t low, std::uint64_t high, int arch);

/// Figures of a function from its encoding alone, without a disassembler.
struct Histogram {
  /// The `sass.*` of the whole function that opcodes alone give; those that need modifiers
  /// (hmma_k8, warpgroup_wait0, mbarrier_wait, fp64's MUFU) or the control flow (loops, fusible,
  /// every sass.loop.*) are absent.
  std::map<std::string, Metric> metrics;
  std::map<std::string, std::uint64_t> opcodes;  ///< "unknown_0x1b3" for those not decoded
};

/// `code`: 16 bytes an instruction, little endian, sm_70 to sm_120. Padding at the end is left out.
[[nodiscard]] Histogram HistogramOf(std::span<const std::byte> code, int arch);

}  // namespace kernelpro::sass
