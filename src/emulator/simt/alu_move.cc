// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_families.h"

namespace kernelpro::KP_ALU_ISA {
namespace {

using ptx::Type;

/// Logic on predicates works on whole lane masks.
template <auto F, int kSources>
AluDecode OnMasks() {
  AluDecode decode;
  decode.run = [](std::byte* registers, const AluOperands& operands, LaneMask mask) {
    StorePredicate(registers, operands.dst,
                   F(Predicate(registers, operands.src[0]), Predicate(registers, operands.src[1])),
                   mask);
  };
  decode.dst = Type::kPred;
  decode.sources = kSources;
  for (int k = 0; k < kSources; ++k) {
    decode.src[k] = Type::kPred;
  }
  return decode;
}

AluDecode SelectPredicate(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kMov:
      return OnMasks<[](LaneMask a, LaneMask /*b*/) { return a; }, 1>();
    case AluOp::kNot:
      return OnMasks<[](LaneMask a, LaneMask /*b*/) { return ~a; }, 1>();
    case AluOp::kAnd:
      return OnMasks<[](LaneMask a, LaneMask b) { return a & b; }, 2>();
    case AluOp::kOr:
      return OnMasks<[](LaneMask a, LaneMask b) { return a | b; }, 2>();
    case AluOp::kXor:
      return OnMasks<[](LaneMask a, LaneMask b) { return a ^ b; }, 2>();
    default:
      return {};
  }
}

template <class T>
AluDecode SelectSized(const AluSpec& spec) {
  switch (spec.op) {
    case AluOp::kMov:
      return kLanewise<[](T a) -> T { return a; }>;
    case AluOp::kSelp:
      return kLanewise<[](T a, T b, bool c) -> T { return c ? a : b; }>;
    default:
      return {};
  }
}

/// slct: a when c >= 0, else b; with an f32 c a NaN selects b and -0 selects a.
template <class T>
AluDecode SelectSlct(const AluSpec& spec) {
  if (spec.type[1] == Type::kS32 && spec.flags == 0) {
    return kLanewise<[](T a, T b, s32 c) -> T { return c >= 0 ? a : b; }>;
  }
  if (spec.type[1] != Type::kF32 || !spec.Only(simt::kFtz)) {
    return {};
  }
  if (spec.Has(simt::kFtz)) {
    return kLanewise<[](T a, T b, float c) -> T { return -0x1p-126F < c ? a : b; }>;
  }
  return kLanewise<[](T a, T b, float c) -> T { return c >= 0.0F ? a : b; }>;
}

bool IsMoveType(AluOp op, Type type) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kB32:
    case Type::kU32:
    case Type::kS32:
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF32:
    case Type::kF64:
      return true;
    case Type::kPred:
      return op == AluOp::kMov;
    default:
      return false;
  }
}

int BitsOf(Type type) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
      return 16;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
      return 64;
    default:
      return 32;
  }
}

/// Parts of an unpacked value; each destination gets its own part of the one source.
template <class Whole, class Part, int kElements>
AluDecode UnpackAs() {
  AluDecode decode;
  decode.dst = TypeOf<Part>();
  decode.src[0] = TypeOf<Whole>();
  decode.sources = 1;
  decode.run = [](std::byte* registers, const AluOperands& operands, LaneMask mask) {
    const u32 destinations[4] = {operands.dst, operands.dst2, operands.dst3, operands.dst4};
    Whole whole[kWarpSize];
    for (int i = 0; i < kWarpSize; ++i) {
      whole[i] = static_cast<Whole>(Lanes<Whole>(registers, operands.src[0])[i]);
    }
    for (int element = 0; element < kElements; ++element) {
      Storage<Part>* const out = Lanes<Part>(registers, destinations[element]);
      const unsigned shift = 8U * sizeof(Part) * static_cast<unsigned>(element);
      for (int i = 0; i < kWarpSize; ++i) {
        const auto value = static_cast<Storage<Part>>(static_cast<Part>(whole[i] >> shift));
        out[i] = (mask & kLaneBit[i]) != 0 ? value : out[i];
      }
    }
  };
  return decode;
}

}  // namespace

AluDecode SelectMove(const AluSpec& spec) {
  if (spec.op == AluOp::kCvta) {
    const bool global = spec.flags == simt::kGlobal || spec.flags == (simt::kGlobal | simt::kTo);
    if (!global || spec.types != 1 || spec.type[0] != Type::kU64) {
      return {};
    }
    return kLanewise<[](u64 a) -> u64 { return a; }>;
  }
  if (spec.types == 1 && spec.type[0] == Type::kPred && spec.flags == 0) {
    return SelectPredicate(spec);
  }
  if (!IsMoveType(spec.op, spec.type[0])) {
    return {};
  }
  const int bits = BitsOf(spec.type[0]);
  if (spec.op == AluOp::kSlct && spec.types == 2) {
    return bits == 16   ? SelectSlct<u16>(spec)
           : bits == 32 ? SelectSlct<u32>(spec)
                        : SelectSlct<u64>(spec);
  }
  if (spec.types != 1 || spec.flags != 0) {
    return {};
  }
  return bits == 16   ? SelectSized<u16>(spec)
         : bits == 32 ? SelectSized<u32>(spec)
                      : SelectSized<u64>(spec);
}

AluDecode Pack(int bits, int elements) {
  if (bits == 32 && elements == 2) {
    return kLanewise<[](u16 a, u16 b) -> u32 { return a | (u32{b} << 16U); }>;
  }
  if (bits == 64 && elements == 2) {
    return kLanewise<[](u32 a, u32 b) -> u64 { return a | (u64{b} << 32U); }>;
  }
  if (bits == 16 && elements == 2) {
    return kLanewise<[](u8 a, u8 b) -> u16 { return static_cast<u16>(a | (u32{b} << 8U)); }>;
  }
  if (bits == 32 && elements == 4) {
    return kLanewise<[](u8 a, u8 b, u8 c, u8 d) -> u32 {
      return a | (u32{b} << 8U) | (u32{c} << 16U) | (u32{d} << 24U);
    }>;
  }
  if (bits == 64 && elements == 4) {
    return kLanewise<[](u16 a, u16 b, u16 c, u16 d) -> u64 {
      return a | (u64{b} << 16U) | (u64{c} << 32U) | (u64{d} << 48U);
    }>;
  }
  return {};
}

AluDecode Unpack(int bits, int elements) {
  if (bits == 32 && elements == 2) {
    return UnpackAs<u32, u16, 2>();
  }
  if (bits == 64 && elements == 2) {
    return UnpackAs<u64, u32, 2>();
  }
  if (bits == 16 && elements == 2) {
    return UnpackAs<u16, u8, 2>();
  }
  if (bits == 32 && elements == 4) {
    return UnpackAs<u32, u8, 4>();
  }
  if (bits == 64 && elements == 4) {
    return UnpackAs<u64, u16, 4>();
  }
  return {};
}

}  // namespace kernelpro::KP_ALU_ISA
