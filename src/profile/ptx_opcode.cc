// SPDX-License-Identifier: Apache-2.0
#include "profile/ptx_opcode.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace kernelpro {
namespace {

using Parts = std::vector<std::string_view>;

bool Has(const Parts& parts, std::string_view part) {
  return std::find(parts.begin() + 1, parts.end(), part) != parts.end();
}

template <std::size_t N>
bool IsOneOf(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

bool IsHalf(const Parts& parts) {
  constexpr std::array<std::string_view, 4> kHalves = {"f16", "f16x2", "bf16", "bf16x2"};
  return IsOneOf(parts.back(), kHalves);
}

MemorySpace SpaceOf(const Parts& parts) {
  for (const std::string_view part : parts) {
    if (part == "global") {
      return MemorySpace::kGlobal;
    }
    if (part.starts_with("shared")) {
      return MemorySpace::kShared;
    }
    if (part == "local") {
      return MemorySpace::kLocal;
    }
    if (part == "const" || part == "param") {
      return MemorySpace::kConstant;
    }
  }
  return MemorySpace::kGeneric;
}

MemoryAccess AccessOf(const Parts& parts) {
  const std::string_view base = parts.front();
  if (base == "ld" || base == "ldu") {
    return MemoryAccess::kLoad;
  }
  if (base == "st") {
    return MemoryAccess::kStore;
  }
  if (base == "atom") {
    return MemoryAccess::kAtomic;
  }
  if (base == "red") {
    return MemoryAccess::kReduction;
  }
  if (base == "cp" && Has(parts, "async") && Has(parts, "global")) {
    return MemoryAccess::kAsyncCopy;
  }
  return MemoryAccess::kNone;
}

OpClass DoubleClass(std::string_view base) {
  if (base == "add" || base == "sub") {
    return OpClass::kDadd;
  }
  if (base == "mul") {
    return OpClass::kDmul;
  }
  if (base == "fma" || base == "mad") {
    return OpClass::kDfma;
  }
  return OpClass::kDoubleOther;
}

OpClass FloatClass(std::string_view base) {
  constexpr std::array<std::string_view, 9> kSpecials = {"ex2", "lg2",   "sin",  "cos", "tanh",
                                                         "rcp", "rsqrt", "sqrt", "div"};
  if (IsOneOf(base, kSpecials)) {
    return OpClass::kSpecial;
  }
  if (base == "add" || base == "sub") {
    return OpClass::kFadd;
  }
  if (base == "mul") {
    return OpClass::kFmul;
  }
  if (base == "fma" || base == "mad") {
    return OpClass::kFfma;
  }
  return OpClass::kFloatOther;
}

OpClass ArithmeticClass(const Parts& parts) {
  const std::string_view base = parts.front();
  constexpr std::array<std::string_view, 14> kBits = {"and",  "or",   "xor", "not",  "cnot",
                                                      "shl",  "shr",  "shf", "lop3", "prmt",
                                                      "popc", "brev", "bfe", "bfi"};
  constexpr std::array<std::string_view, 13> kIntegers = {"add",  "sub",  "mul", "mad", "min",
                                                          "max",  "abs",  "neg", "sad", "setp",
                                                          "addc", "madc", "dp4a"};
  if (parts.back() == "f64") {
    return DoubleClass(base);
  }
  if (parts.back() == "f32") {
    return FloatClass(base);
  }
  if (IsHalf(parts)) {
    return base == "ex2" || base == "tanh" ? OpClass::kSpecial : OpClass::kHalf;
  }
  if (base == "div" || base == "rem") {
    return OpClass::kIntegerDivision;
  }
  if (IsOneOf(base, kBits)) {
    return OpClass::kBit;
  }
  return IsOneOf(base, kIntegers) ? OpClass::kInteger : OpClass::kOther;
}

OpClass ClassOf(const Parts& parts) {
  const std::string_view base = parts.front();
  constexpr std::array<std::string_view, 6> kControls = {"bra",  "brx",  "ret",
                                                         "exit", "call", "trap"};
  constexpr std::array<std::string_view, 4> kMoves = {"mov", "cvta", "selp", "slct"};
  if (base == "bar" || base == "barrier") {
    return Has(parts, "warp") ? OpClass::kOther : OpClass::kBarrier;
  }
  if (base == "mma" || base == "wmma" || base == "wgmma") {
    return OpClass::kTensor;
  }
  if (IsOneOf(base, kControls)) {
    return OpClass::kControl;
  }
  if (base == "shfl" || base == "vote" || base == "redux" || base == "match") {
    return OpClass::kShuffle;
  }
  if (base == "cvt") {
    return OpClass::kConversion;
  }
  if (IsOneOf(base, kMoves)) {
    return OpClass::kMove;
  }
  return ArithmeticClass(parts);
}

}  // namespace

PtxOpcode ClassifyPtx(std::string_view opcode) {
  const Parts parts = Split(opcode, '.');
  PtxOpcode result;
  if (parts.empty() || parts.front().empty()) {
    return result;
  }
  result.access = AccessOf(parts);
  if (result.access != MemoryAccess::kNone) {
    result.op = OpClass::kMemory;
    result.space =
        result.access == MemoryAccess::kAsyncCopy ? MemorySpace::kGlobal : SpaceOf(parts);
    result.is_f64 = parts.back() == "f64";
    return result;
  }
  result.op = ClassOf(parts);
  if (result.op == OpClass::kConversion && parts.size() >= 3) {
    const std::string_view from = parts.back();
    const std::string_view to = parts[parts.size() - 2];
    const bool from_double = from == "f64";
    const bool to_double = to == "f64";
    const bool other_is_float = (from_double ? to : from).find('f') != std::string_view::npos;
    result.is_f64 = from_double || to_double;
    result.converts_f64 = from_double != to_double && other_is_float;
    return result;
  }
  result.is_f64 = parts.back() == "f64" && result.op != OpClass::kMove;
  return result;
}

}  // namespace kernelpro
