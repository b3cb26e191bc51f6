// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/alu_spec.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "emulator/ptx/module.h"

namespace kernelpro::simt {
namespace {

template <class T>
struct Entry {
  std::string_view name;
  T value;
};

constexpr Entry<AluOp> kOps[] = {
    {"abs", AluOp::kAbs},     {"add", AluOp::kAdd},     {"addc", AluOp::kAddc},
    {"and", AluOp::kAnd},     {"bfe", AluOp::kBfe},     {"bfi", AluOp::kBfi},
    {"bfind", AluOp::kBfind}, {"brev", AluOp::kBrev},   {"clz", AluOp::kClz},
    {"cnot", AluOp::kCnot},   {"cos", AluOp::kCos},     {"copysign", AluOp::kCopysign},
    {"cvt", AluOp::kCvt},     {"cvta", AluOp::kCvta},   {"div", AluOp::kDiv},
    {"dp2a", AluOp::kDp2a},   {"dp4a", AluOp::kDp4a},   {"ex2", AluOp::kEx2},
    {"fma", AluOp::kFma},     {"lg2", AluOp::kLg2},     {"lop3", AluOp::kLop3},
    {"mad", AluOp::kMad},     {"madc", AluOp::kMadc},   {"mad24", AluOp::kMad24},
    {"max", AluOp::kMax},     {"min", AluOp::kMin},     {"mov", AluOp::kMov},
    {"mul", AluOp::kMul},     {"neg", AluOp::kNeg},     {"mul24", AluOp::kMul24},
    {"not", AluOp::kNot},     {"or", AluOp::kOr},       {"popc", AluOp::kPopc},
    {"prmt", AluOp::kPrmt},   {"rcp", AluOp::kRcp},     {"rem", AluOp::kRem},
    {"sad", AluOp::kSad},     {"rsqrt", AluOp::kRsqrt}, {"selp", AluOp::kSelp},
    {"set", AluOp::kSet},     {"setp", AluOp::kSetp},   {"shf", AluOp::kShf},
    {"shl", AluOp::kShl},     {"shr", AluOp::kShr},     {"sin", AluOp::kSin},
    {"slct", AluOp::kSlct},   {"sqrt", AluOp::kSqrt},   {"sub", AluOp::kSub},
    {"subc", AluOp::kSubc},   {"tanh", AluOp::kTanh},   {"xor", AluOp::kXor},
    {"testp", AluOp::kTestp},
};

constexpr Entry<std::uint64_t> kFlags[] = {
    {"rn", kRn},
    {"rz", kRz},
    {"rm", kRm},
    {"rp", kRp},
    {"rna", kRna},
    {"rni", kRni},
    {"rzi", kRzi},
    {"rmi", kRmi},
    {"rpi", kRpi},
    {"ftz", kFtz},
    {"sat", kSat},
    {"satfinite", kSatfinite},
    {"approx", kApprox},
    {"full", kFull},
    {"NaN", kNaN},
    {"xorsign", kXorsign},
    {"abs", kAbsFlag},
    {"relu", kRelu},
    {"lo", kLo},
    {"hi", kHi},
    {"wide", kWide},
    {"wrap", kWrap},
    {"clamp", kClamp},
    {"l", kLeft},
    {"r", kRight},
    {"shiftamt", kShiftamt},
    {"cc", kCc},
    {"f4e", kF4e},
    {"b4e", kB4e},
    {"rc8", kRc8},
    {"ecl", kEcl},
    {"ecr", kEcr},
    {"rc16", kRc16},
    {"to", kTo},
    {"global", kGlobal},
    {"finite", kFinite},
    {"infinite", kInfinite},
    {"number", kNumber},
    {"notanumber", kNotANumber},
    {"normal", kNormal},
    {"subnormal", kSubnormal},
};

constexpr Entry<Compare> kCompares[] = {
    {"eq", Compare::kEq},   {"ne", Compare::kNe},   {"lt", Compare::kLt},   {"le", Compare::kLe},
    {"gt", Compare::kGt},   {"ge", Compare::kGe},   {"lo", Compare::kLo},   {"ls", Compare::kLs},
    {"hi", Compare::kHi},   {"hs", Compare::kHs},   {"equ", Compare::kEqu}, {"neu", Compare::kNeu},
    {"ltu", Compare::kLtu}, {"leu", Compare::kLeu}, {"gtu", Compare::kGtu}, {"geu", Compare::kGeu},
    {"num", Compare::kNum}, {"nan", Compare::kNan},
};

constexpr Entry<Combine> kCombines[] = {
    {"and", Combine::kAnd},
    {"or", Combine::kOr},
    {"xor", Combine::kXor},
};

template <class T, std::size_t N>
const T* Find(const Entry<T> (&table)[N], std::string_view name) {
  for (const auto& entry : table) {
    if (entry.name == name) {
      return &entry.value;
    }
  }
  return nullptr;
}

/// Comparison parts of set and setp, whose names ("lo", "hi", "and") mean other things elsewhere.
bool TakeComparison(std::string_view part, AluSpec* spec) {
  if (const auto* compare = Find(kCompares, part); compare && spec->compare == Compare::kNone) {
    spec->compare = *compare;
    return true;
  }
  if (const auto* combine = Find(kCombines, part); combine && spec->combine == Combine::kNone) {
    spec->combine = *combine;
    return true;
  }
  return false;
}

bool TakePart(std::string_view part, AluSpec* spec) {
  if ((spec->op == AluOp::kSet || spec->op == AluOp::kSetp) && TakeComparison(part, spec)) {
    return true;
  }
  if (const auto* flag = Find(kFlags, part)) {
    const bool repeated = spec->Has(*flag);
    spec->flags |= *flag;
    return !repeated;
  }
  const ptx::Type type = ptx::ParseType(part);
  if (type == ptx::Type::kNone || spec->types == 2) {
    return false;
  }
  spec->type[spec->types++] = type;
  return true;
}

}  // namespace

std::optional<AluSpec> ParseAluSpec(const ptx::Instruction& instruction) {
  if (instruction.parts.empty()) {
    return std::nullopt;
  }
  const auto* op = Find(kOps, instruction.parts[0]);
  if (op == nullptr) {
    return std::nullopt;
  }
  AluSpec spec;
  spec.op = *op;
  for (std::size_t i = 1; i < instruction.parts.size(); ++i) {
    if (!TakePart(instruction.parts[i], &spec)) {
      return std::nullopt;
    }
  }
  if (spec.types == 0) {
    return std::nullopt;
  }
  return spec;
}

}  // namespace kernelpro::simt
