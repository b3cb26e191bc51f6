// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emulator/simt/alu_lanes.h"

/// The handler families of one instruction set. Each answers for the specs it implements exactly
/// and returns an empty AluDecode for all others.
namespace kernelpro::KP_ALU_ISA {

AluDecode Select(const AluSpec& spec);  // the first family that answers

AluDecode SelectMove(const AluSpec& spec);            // mov, cvta, selp, slct, logic on predicates
AluDecode SelectInteger(const AluSpec& spec);         // add ... rem, min, max, sad, dp4a
AluDecode SelectBits(const AluSpec& spec);            // and ... lop3, shifts, fields, prmt
AluDecode SelectCarry(const AluSpec& spec);           // add.cc, addc, madc, ...
AluDecode SelectFloat(const AluSpec& spec);           // f32 and f64, round to nearest
AluDecode SelectRounded(const AluSpec& spec);         // f32 and f64, .rz .rm .rp
AluDecode SelectApprox(const AluSpec& spec);          // .approx and .full
AluDecode SelectHalf(const AluSpec& spec);            // f16, bf16 and their pairs
AluDecode SelectCompare(const AluSpec& spec);         // setp, set, testp
AluDecode SelectCompareHalf(const AluSpec& spec);     // the same on f16 and bf16
AluDecode SelectConvertInteger(const AluSpec& spec);  // cvt that reads or writes an integer
AluDecode SelectConvertFloat(const AluSpec& spec);    // cvt between floats
AluDecode Pack(int bits, int elements);
AluDecode Unpack(int bits, int elements);

}  // namespace kernelpro::KP_ALU_ISA
