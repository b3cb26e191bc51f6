// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "sass/listing.h"

namespace kernelpro::sass {

/// A function from its instructions, one a line, with labels of their own and "#file:line" marks:
/// written out in nvdisasm's form and read back, so that tests also go through the parser.
inline Function Code(std::string_view body) {
  std::string text = "\t.target\tsm_90\n.text.kernel:\n";
  std::uint64_t address = 0;
  for (const std::string_view raw : Lines(body)) {
    const std::string_view line = Trim(raw);
    if (line.empty()) {
      continue;
    }
    if (line.ends_with(':')) {
      text += fmt::format("{}\n", line);
    } else if (line.starts_with('#')) {
      const std::size_t colon = line.find(':');
      text += fmt::format("\t//## File \"{}\", line {}\n", line.substr(1, colon - 1),
                          line.substr(colon + 1));
    } else {
      text += fmt::format("        /*{:04x}*/                   {} ;\n", address, line);
      address += 16;
    }
  }
  const auto listing = ParseListing(text, "fixture");
  EXPECT_TRUE(listing.ok()) << (listing.ok() ? "" : listing.error().message);
  return listing.ok() && !listing->functions.empty() ? listing->functions[0] : Function();
}

/// A product of tiles through registers: load, store to shared memory, barrier, compute.
inline constexpr std::string_view kTiledProduct = R"(
    MOV R1, c[0x0][0x28]
    S2R R0, SR_TID.X
    MOV R20, RZ
  #gemm.cu:12
  .L_x_0:
    LDG.E R4, desc[UR4][R2.64]
    LDG.E R5, desc[UR4][R6.64]
    STS [R8], R4
    STS [R9], R5
    BAR.SYNC.DEFER_BLOCKING 0x0
  #gemm.cu:17
    LDS R10, [R11]
    LDS.128 R12, [R16]
    FFMA R20, R10, R12, R20
    FFMA R20, R10, R13, R20
    FFMA R20, R10, R14, R20
    FFMA R20, R10, R15, R20
    BAR.SYNC.DEFER_BLOCKING 0x0
    IADD3 R2, P1, R2, 0x40, RZ
    IADD3.X R3, RZ, R3, RZ, P1, !PT
    IADD3 R21, R21, 0x1, RZ
    ISETP.GE.AND P0, PT, R21, c[0x0][0x170], PT
    @!P0 BRA `(.L_x_0)
    STG.E desc[UR4][R22.64], R20
    EXIT
  .L_x_9:
    BRA `(.L_x_9)
    NOP
    NOP
)";

/// The same with cp.async and three stages.
inline constexpr std::string_view kAsyncProduct = R"(
    MOV R20, RZ
  .L_x_0:
    LDGSTS.E.BYPASS.128 [R8], desc[UR4][R2.64]
    LDGSTS.E.BYPASS.128 [R9], desc[UR4][R6.64]
    LDGDEPBAR
    DEPBAR.LE SB0, 0x2
    BAR.SYNC.DEFER_BLOCKING 0x0
    LDSM.16.M88.4 R12, [R16]
    LDSM.16.M88.2 R24, [R17]
    HMMA.16816.F32 R28, R12, R24, R28
    IADD3 R21, R21, 0x1, RZ
    ISETP.GE.AND P0, PT, R21, c[0x0][0x170], PT
    @!P0 BRA `(.L_x_0)
    EXIT
)";

/// Follows pointers: each load needs the one before.
inline constexpr std::string_view kPointerChase = R"(
    MOV R4, c[0x0][0x160]
  .L_x_0:
    LDG.E.64 R2, desc[UR4][R2.64]
    ISETP.NE.U32.AND P0, PT, R2, RZ, PT
    ISETP.NE.AND.EX P0, PT, R3, RZ, PT, P0
    @P0 BRA `(.L_x_0)
    EXIT
)";

}  // namespace kernelpro::sass
