// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/ptx/module.h"

/// An arithmetic opcode string taken apart: what the handler families select on. Every part of the
/// string is in here exactly once, so a family that accepts a spec has seen all its modifiers.
namespace kernelpro::simt {

enum class AluOp : std::uint8_t {
  kAbs,
  kAdd,
  kAddc,
  kAnd,
  kBfe,
  kBfi,
  kBfind,
  kBrev,
  kClz,
  kCnot,
  kCopysign,
  kCos,
  kCvt,
  kCvta,
  kDiv,
  kDp2a,
  kDp4a,
  kEx2,
  kFma,
  kLg2,
  kLop3,
  kMad,
  kMad24,
  kMadc,
  kMax,
  kMin,
  kMov,
  kMul,
  kMul24,
  kNeg,
  kNot,
  kOr,
  kPopc,
  kPrmt,
  kRcp,
  kRem,
  kRsqrt,
  kSad,
  kSelp,
  kSet,
  kSetp,
  kShf,
  kShl,
  kShr,
  kSin,
  kSlct,
  kSqrt,
  kSub,
  kSubc,
  kTanh,
  kTestp,
  kXor,
};

/// One bit per modifier that is neither a type nor a comparison.
enum AluFlag : std::uint64_t {
  kRn = 1ULL << 0U,
  kRz = 1ULL << 1U,
  kRm = 1ULL << 2U,
  kRp = 1ULL << 3U,
  kRna = 1ULL << 4U,
  kRni = 1ULL << 5U,
  kRzi = 1ULL << 6U,
  kRmi = 1ULL << 7U,
  kRpi = 1ULL << 8U,
  kFtz = 1ULL << 9U,
  kSat = 1ULL << 10U,
  kSatfinite = 1ULL << 11U,
  kApprox = 1ULL << 12U,
  kFull = 1ULL << 13U,
  kNaN = 1ULL << 14U,
  kXorsign = 1ULL << 15U,
  kAbsFlag = 1ULL << 16U,
  kRelu = 1ULL << 17U,
  kLo = 1ULL << 18U,
  kHi = 1ULL << 19U,
  kWide = 1ULL << 20U,
  kWrap = 1ULL << 21U,
  kClamp = 1ULL << 22U,
  kLeft = 1ULL << 23U,
  kRight = 1ULL << 24U,
  kShiftamt = 1ULL << 25U,
  kCc = 1ULL << 26U,
  kF4e = 1ULL << 27U,
  kB4e = 1ULL << 28U,
  kRc8 = 1ULL << 29U,
  kEcl = 1ULL << 30U,
  kEcr = 1ULL << 31U,
  kRc16 = 1ULL << 32U,
  kTo = 1ULL << 33U,
  kGlobal = 1ULL << 34U,
  kFinite = 1ULL << 35U,
  kInfinite = 1ULL << 36U,
  kNumber = 1ULL << 37U,
  kNotANumber = 1ULL << 38U,
  kNormal = 1ULL << 39U,
  kSubnormal = 1ULL << 40U,
};

inline constexpr std::uint64_t kFloatRounding = kRn | kRz | kRm | kRp;
inline constexpr std::uint64_t kDirected = kRz | kRm | kRp;
inline constexpr std::uint64_t kIntegerRounding = kRni | kRzi | kRmi | kRpi;

enum class Compare : std::uint8_t {
  kNone,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kLo,
  kLs,
  kHi,
  kHs,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan,
};

enum class Combine : std::uint8_t { kNone, kAnd, kOr, kXor };

struct AluSpec {
  AluOp op = AluOp::kMov;
  std::uint64_t flags = 0;
  ptx::Type type[2] = {ptx::Type::kNone, ptx::Type::kNone};  ///< as written: destination first
  int types = 0;
  Compare compare = Compare::kNone;
  Combine combine = Combine::kNone;

  [[nodiscard]] bool Has(std::uint64_t flag) const { return (flags & flag) != 0; }

  /// No modifier outside `allowed`, and at most one of each listed alternative group.
  [[nodiscard]] bool Only(std::uint64_t allowed) const { return (flags & ~allowed) == 0; }
};

/// nullopt when the base opcode or any modifier is unknown, repeated or one too many.
[[nodiscard]] std::optional<AluSpec> ParseAluSpec(const ptx::Instruction& instruction);

}  // namespace kernelpro::simt
