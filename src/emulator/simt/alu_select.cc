// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_families.h"

namespace kernelpro::KP_ALU_ISA {

AluDecode Select(const AluSpec& spec) {
  using Family = AluDecode (*)(const AluSpec&);
  constexpr Family kFamilies[] = {SelectMove,    SelectInteger,        SelectBits,
                                  SelectCarry,   SelectFloat,          SelectRounded,
                                  SelectApprox,  SelectHalf,           SelectCompareHalf,
                                  SelectCompare, SelectConvertInteger, SelectConvertFloat};
  for (const Family select : kFamilies) {
    const AluDecode decode = select(spec);
    if (decode.run != nullptr) {
      return decode;
    }
  }
  return {};
}

}  // namespace kernelpro::KP_ALU_ISA
