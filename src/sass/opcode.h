// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kernelpro::sass {

/// What an instruction is counted as, in figures of the name `sass.<name>`; one instruction can be
/// several ("mma_warp" and "hmma_k8"). Uniform-datapath arithmetic is in none: it is done once a
/// warp.
enum class Figure : std::uint8_t {
  kFfma,        ///< FFMA, FFMA2
  kFadd,        ///< FADD, FADD2
  kFmul,        ///< FMUL, FMUL2
  kFp64,        ///< DADD DMUL DFMA DSETP DMNMX, MUFU.*64H
  kFp16,        ///< HFMA2 HADD2 HMUL2 HMNMX2 HSET2 HSETP2 that compute
  kMufu,        ///< MUFU
  kConversion,  ///< F2F F2FP F2I I2F I2FP FRND I2I, HADD2.F32 (widens a half)
  kInteger,     ///< IMAD IADD3 LEA LOP3 SHF ISETP ...: per thread, without moves in disguise
  kMoves,       ///< MOV IMAD.MOV CS2R S2R P2R R2P MOVM and HFMA2 that loads a constant
  kMmaWarp,     ///< HMMA IMMA DMMA BMMA QMMA OMMA
  kMmaWarpgroup,
  kMmaTcgen05,
  kHmmaK8,  ///< HMMA.1688: half the work of HMMA.16816 an instruction
  kLdg,     ///< LDG, and generic LD
  kStg,     ///< STG, and generic ST
  kLds,
  kSts,  ///< STS, STSM
  kLdsm,
  kLdl,
  kStl,
  kLdgsts,
  kTma,
  kBar,
  kMembar,
  kNanosleep,
  kAtom,     ///< ATOMG, generic ATOM, compare-and-swap included
  kAtomCas,  ///< of these, compare-and-swap
  kRed,
  kAtoms,
  kShfl,
  kCalls,
  kMbarrierWait,    ///< SYNCS.PHASECHK
  kWarpgroupWait0,  ///< WARPGROUP.DEPBAR.LE gsb0, 0x0
  kSetmaxnreg,
  kPdl,  ///< ACQBULK, PREEXIT
  kClusterBarrier,
  kBranches,
  kDivergentRegions,  ///< BSSY
  kCount,
};

inline constexpr std::size_t kFigures = static_cast<std::size_t>(Figure::kCount);

/// "ffma", "mma_warp", ...
[[nodiscard]] std::string_view FigureName(Figure figure);

/// The pieces of "LDG.E.128"; views into it.
class Opcode {
 public:
  explicit Opcode(std::string_view text);

  [[nodiscard]] std::string_view base() const { return base_; }

  /// Whether a modifier is exactly this word: "128" is none of HMMA.16816's.
  [[nodiscard]] bool Has(std::string_view modifier) const;

  /// Modifiers by position, from 0; empty past the end.
  [[nodiscard]] std::string_view Modifier(std::size_t index) const;

  template <class... Words>
  [[nodiscard]] bool Is(Words... words) const {
    return ((base_ == words) || ...);
  }

 private:
  std::string_view base_;
  std::string_view rest_;  ///< "E.128"
};

/// Bit set over Figure.
using FigureSet = std::uint64_t;

[[nodiscard]] constexpr FigureSet Bit(Figure figure) {
  return FigureSet{1} << static_cast<unsigned>(figure);
}

/// How an instruction counts. `operands` tells moves in disguise and wait_group 0; it may be empty.
[[nodiscard]] FigureSet FiguresOf(const Opcode& opcode, std::string_view operands);

/// Whether the opcode is in a family that this module knows, counted or not (NOP, UMOV, EXIT).
[[nodiscard]] bool IsKnown(const Opcode& opcode);

[[nodiscard]] bool IsMma(const Opcode& opcode);  ///< of any of the three kinds
[[nodiscard]] bool IsInteger(const Opcode& opcode);
[[nodiscard]] bool IsUniform(const Opcode& opcode);  ///< the scalar datapath: U* and its like

/// Bytes that a load or store moves for one lane: LDG.E.128 -> 16, LDSM.16.M88.4 -> 16.
[[nodiscard]] unsigned BytesPerLane(const Opcode& opcode);

/// Cycles from issue to a usable result on an H200, for dependence chains. Measured there: FFMA 4,
/// IMAD 4, DFMA 8, MUFU 17, LDS 29, LDG (from L2) 287, BAR 20; others are their like.
[[nodiscard]] unsigned Latency(const Opcode& opcode);

}  // namespace kernelpro::sass
