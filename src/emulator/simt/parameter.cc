// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include "emulator/simt/operations.h"

namespace kernelpro::simt {
namespace {

template <class Visit>
void ForEachElement(Context& context, const Access& access, LaneMask on, Visit visit) {
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    std::byte* const array =
        context.registers + access.offset + std::size_t{lane} * access.operand[0];
    for (std::uint32_t e = 0; e < access.elements; ++e) {
      if (access.value[e] != kNoSlot) {
        const std::uint32_t lane_bytes = access.value_64[e] ? 8 : 4;
        visit(array + e * access.width, context.registers + access.value[e] + lane * lane_bytes,
              lane_bytes);
      }
    }
  }
}

}  // namespace

bool RunParameterLoad(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  ForEachElement(
      context, access, on, [&](const std::byte* array, std::byte* value, std::uint32_t lane_bytes) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, array, access.width);
        if (access.sign_extend && access.width < 8) {
          const unsigned shift = 64U - access.width * 8U;
          bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
        }
        std::memcpy(value, &bits, lane_bytes);
      });
  return true;
}

bool RunParameterStore(Context& context, const Decoded& d, LaneMask on) {
  const Access& access = context.code->accesses[d.extra];
  ForEachElement(context, access, on,
                 [&](std::byte* array, const std::byte* value, std::uint32_t /*lane_bytes*/) {
                   std::memcpy(array, value, access.width);
                 });
  return true;
}

}  // namespace kernelpro::simt
