// SPDX-License-Identifier: Apache-2.0
#include "sass/opcode.h"

#include <algorithm>
#include <charconv>

namespace kernelpro::sass {
namespace {

using Words = std::string_view;

constexpr std::array<Words, kFigures> kNames = {"ffma",
                                                "fadd",
                                                "fmul",
                                                "fp64",
                                                "fp16",
                                                "mufu",
                                                "conversion",
                                                "integer",
                                                "moves",
                                                "mma_warp",
                                                "mma_warpgroup",
                                                "mma_tcgen05",
                                                "hmma_k8",
                                                "ldg",
                                                "stg",
                                                "lds",
                                                "sts",
                                                "ldsm",
                                                "ldl",
                                                "stl",
                                                "ldgsts",
                                                "tma",
                                                "bar",
                                                "membar",
                                                "nanosleep",
                                                "atom",
                                                "atom_cas",
                                                "red",
                                                "atoms",
                                                "shfl",
                                                "calls",
                                                "mbarrier_wait",
                                                "warpgroup_wait0",
                                                "setmaxnreg",
                                                "pdl",
                                                "cluster_barrier",
                                                "branches",
                                                "divergent_regions"};

/// Sorted, so that a lookup is a binary search.
constexpr std::array<Words, 47> kInteger = {
    "BFE",      "BFI",       "BMSK",  "BREV",     "FLO",    "I32",    "IABS",      "IADD",
    "IADD3",    "IDP",       "IDP4A", "IMAD",     "IMNMX",  "IMNMX3", "IMUL",      "INEG",
    "ISCADD",   "ISET",      "ISETP", "LEA",      "LOP",    "LOP3",   "LOP32I",    "PLOP3",
    "POPC",     "PRMT",      "PSETP", "SEL",      "SGXT",   "SHF",    "SHL",       "SHR",
    "VABSDIFF", "VABSDIFF4", "VADD",  "VADDMNMX", "VHMNMX", "VIADD",  "VIADDMNMX", "VIADDMNMX3",
    "VIMNMX",   "VIMNMX3",   "VMAD",  "VMNMX",    "VSET",   "VSETP",  "XMAD"};

/// Known and in no figure: fp32 compare and select, control, the scalar datapath, and so on.
constexpr std::array<Words, 127> kOther = {
    "ACQSHMINIT", "ARRIVES",     "BMOV",       "BPT",           "BREAK",        "BSYNC",
    "YIELD",      "CCTL",        "CCTLL",      "CCTLT",         "CGAERRBAR",    "CREDUX",
    "CS2UR",      "DEPBAR",      "ELECT",      "ENDCOLLECTIVE", "ERRBAR",       "EXIT",
    "FCHK",       "FENCE",       "FMNMX",      "FMNMX3",        "FSEL",         "FSET",
    "FSETP",      "FSWZ",        "FSWZADD",    "GETLMEMBASE",   "KILL",         "LDC",
    "LDCU",       "LDGDEPBAR",   "LDGMC",      "LDTM",          "LDTRAM",       "LEPC",
    "MATCH",      "NOP",         "OUT",        "PIXLD",         "PMTRIG",       "QSPC",
    "R2UR",       "REDUX",       "RET",        "RPCMOV",        "RTT",          "S2UR",
    "SETCTAID",   "SETLMEMBASE", "STAS",       "STTM",          "SUATOM",       "SULD",
    "SUQUERY",    "SURED",       "SUST",       "SYNCS",         "TEX",          "TLD",
    "TLD4",       "TMML",        "TTUCCTL",    "TXD",           "TXQ",          "UBLKPF",
    "UBMSK",      "UBREV",       "UCLEA",      "UCVOTE",        "UF2F",         "UF2FP",
    "UF2I",       "UF2IP",       "UFADD",      "UFFMA",         "UFLO",         "UFMNMX",
    "UFMUL",      "UFRND",       "UFSEL",      "UFSET",         "UFSETP",       "UGETNEXTWORKID",
    "UI2F",       "UI2FP",       "UI2I",       "UI2IP",         "UIABS",        "UIADD3",
    "UIMAD",      "UIMNMX",      "UISETP",     "ULDC",          "ULEA",         "ULEPC",
    "ULOP",       "ULOP3",       "ULOP32I",    "UMEMSETS",      "UMOV",         "UP2UR",
    "UPLOP3",     "UPOPC",       "UPRMT",      "UPSETP",        "UR2UP",        "USEL",
    "USETSHMSZ",  "USGXT",       "USHF",       "USHL",          "USHR",         "UTCATOMSWS",
    "UTCBAR",     "UTCCP",       "UTCSHIFT",   "UTMACCTL",      "UTMACMDFLUSH", "UTMAPF",
    "UVIADD",     "UVIMNMX",     "UVIRTCOUNT", "VOTE",          "VOTEU",        "WARPGROUP",
    "WARPSYNC"};

template <std::size_t N>
bool In(const std::array<Words, N>& words, Words word) {
  return std::ranges::binary_search(words, word);
}

static_assert(std::ranges::is_sorted(kInteger));

/// Two leading sources that are zero: -RZ, RZ, ... of HFMA2, or RZ, RZ of IMAD.
bool TwoZeroSources(Words operands) {
  const std::size_t first = operands.find(',');
  if (first == operands.npos) {
    return false;
  }
  const Words sources = operands.substr(first + 1);
  const std::size_t second = sources.find(',');
  const auto zero = [](Words source) {
    const std::size_t start = source.find_first_not_of(" -");
    return start != source.npos && source.substr(start).starts_with("RZ") &&
           source.find('[') == source.npos;
  };
  if (second == sources.npos || !zero(sources.substr(0, second))) {
    return false;
  }
  return zero(sources.substr(second + 1, sources.find(',', second + 1) - second - 1));
}

FigureSet Arithmetic(const Opcode& op, Words operands) {
  if (op.Is("FFMA", "FFMA2", "FFMA32I")) {
    return Bit(Figure::kFfma);
  }
  if (op.Is("FADD", "FADD2", "FADD32I")) {
    return Bit(Figure::kFadd);
  }
  if (op.Is("FMUL", "FMUL2", "FMUL32I")) {
    return Bit(Figure::kFmul);
  }
  if (op.Is("DADD", "DMUL", "DFMA", "DSETP", "DMNMX")) {
    return Bit(Figure::kFp64);
  }
  if (op.Is("MUFU")) {
    return Bit(Figure::kMufu) | (op.Modifier(0).ends_with("64H") ? Bit(Figure::kFp64) : 0);
  }
  if (op.Is("F2F", "F2FP", "F2I", "F2IP", "I2F", "I2FP", "I2IP", "FRND", "I2I")) {
    return Bit(Figure::kConversion);
  }
  if (op.Is("HFMA2", "HADD2", "HMUL2", "HMNMX2", "HSET2", "HSETP2", "HADD2_32I", "HFMA2_32I",
            "HMUL2_32I", "HMNMX3")) {
    if (op.Is("HADD2") && op.Has("F32")) {
      return Bit(Figure::kConversion);
    }
    const bool constant = op.Is("HFMA2") && TwoZeroSources(operands);
    return Bit(constant ? Figure::kMoves : Figure::kFp16);
  }
  if (op.Is("MOV", "MOV32I", "MOV64IUR", "CS2R", "S2R", "P2R", "R2P", "MOVM", "R2B", "B2R") ||
      (op.Is("IMAD") && (op.Modifier(0) == "MOV" || (!op.Has("X") && TwoZeroSources(operands))))) {
    return Bit(Figure::kMoves);
  }
  return IsInteger(op) ? Bit(Figure::kInteger) : 0;
}

FigureSet Matrix(const Opcode& op) {
  if (op.Is("HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA")) {
    const bool k8 = op.Is("HMMA") && op.Modifier(0) == "1688";
    return Bit(Figure::kMmaWarp) | (k8 ? Bit(Figure::kHmmaK8) : 0);
  }
  if (op.Is("HGMMA", "QGMMA", "IGMMA", "BGMMA")) {
    return Bit(Figure::kMmaWarpgroup);
  }
  const bool tcgen = op.base().starts_with("UTC") && op.base().ends_with("MMA");
  return tcgen ? Bit(Figure::kMmaTcgen05) : 0;
}

FigureSet Memory(const Opcode& op) {
  if (op.Is("LDG", "LD")) {
    return Bit(Figure::kLdg);
  }
  if (op.Is("STG", "ST")) {
    return Bit(Figure::kStg);
  }
  if (op.Is("STS", "STSM")) {
    return Bit(Figure::kSts);
  }
  if (op.Is("UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED")) {
    return Bit(Figure::kTma);
  }
  if (op.Is("ATOMG", "ATOM")) {
    return Bit(Figure::kAtom) | (op.Has("CAS") || op.Has("CAST") ? Bit(Figure::kAtomCas) : 0);
  }
  if (op.Is("RED", "REDG")) {
    return Bit(Figure::kRed);
  }
  return op.Is("LDS")      ? Bit(Figure::kLds)
         : op.Is("LDSM")   ? Bit(Figure::kLdsm)
         : op.Is("LDL")    ? Bit(Figure::kLdl)
         : op.Is("STL")    ? Bit(Figure::kStl)
         : op.Is("LDGSTS") ? Bit(Figure::kLdgsts)
         : op.Is("ATOMS")  ? Bit(Figure::kAtoms)
         : op.Is("SHFL")   ? Bit(Figure::kShfl)
                           : 0;
}

FigureSet Control(const Opcode& op, Words operands) {
  if (op.Is("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU")) {
    return Bit(Figure::kBranches);
  }
  if (op.Is("WARPGROUP") && op.Modifier(0) == "DEPBAR") {
    const bool all = operands.ends_with(", 0x0") || operands.ends_with(",0x0");
    return all ? Bit(Figure::kWarpgroupWait0) : 0;
  }
  if (op.Is("SYNCS")) {
    return op.Modifier(0) == "PHASECHK" ? Bit(Figure::kMbarrierWait) : 0;
  }
  return op.Is("BAR")                        ? Bit(Figure::kBar)
         : op.Is("MEMBAR")                   ? Bit(Figure::kMembar)
         : op.Is("NANOSLEEP")                ? Bit(Figure::kNanosleep)
         : op.Is("CALL")                     ? Bit(Figure::kCalls)
         : op.Is("USETMAXREG")               ? Bit(Figure::kSetmaxnreg)
         : op.Is("ACQBULK", "PREEXIT")       ? Bit(Figure::kPdl)
         : op.base().starts_with("UCGABAR_") ? Bit(Figure::kClusterBarrier)
         : op.Is("BSSY")                     ? Bit(Figure::kDivergentRegions)
                                             : 0;
}

}  // namespace

std::string_view FigureName(Figure figure) {
  return kNames[static_cast<std::size_t>(figure)];
}

Opcode::Opcode(std::string_view text) : base_(text.substr(0, text.find('.'))) {
  if (base_.size() < text.size()) {
    rest_ = text.substr(base_.size() + 1);
  }
}

bool Opcode::Has(std::string_view modifier) const {
  for (std::string_view rest = rest_; !rest.empty();) {
    const std::size_t dot = rest.find('.');
    if (rest.substr(0, dot) == modifier) {
      return true;
    }
    rest = dot == rest.npos ? std::string_view() : rest.substr(dot + 1);
  }
  return false;
}

std::string_view Opcode::Modifier(std::size_t index) const {
  std::string_view rest = rest_;
  for (; index > 0 && !rest.empty(); --index) {
    const std::size_t dot = rest.find('.');
    rest = dot == rest.npos ? std::string_view() : rest.substr(dot + 1);
  }
  return rest.substr(0, rest.find('.'));
}

FigureSet FiguresOf(const Opcode& opcode, std::string_view operands) {
  for (const FigureSet set : {Arithmetic(opcode, operands), Memory(opcode), Matrix(opcode)}) {
    if (set != 0) {
      return set;
    }
  }
  return Control(opcode, operands);
}

bool IsKnown(const Opcode& opcode) {
  return FiguresOf(opcode, "") != 0 || std::ranges::find(kOther, opcode.base()) != kOther.end();
}

bool IsMma(const Opcode& opcode) {
  return Matrix(opcode) != 0;
}

bool IsInteger(const Opcode& opcode) {
  return In(kInteger, opcode.base());
}

bool IsUniform(const Opcode& opcode) {
  return opcode.base().starts_with('U') || opcode.Is("R2UR", "S2UR", "CS2UR", "LDCU", "REDUX");
}

unsigned BytesPerLane(const Opcode& op) {
  if (op.Is("LDSM", "STSM")) {
    return op.Has("4") ? 16U : op.Has("2") ? 8U : 4U;
  }
  if (op.Has("256")) {
    return 32;
  }
  if (op.Has("128")) {
    return 16;
  }
  if (op.Has("64")) {
    return 8;
  }
  return op.Has("U8") || op.Has("S8") ? 1U : op.Has("U16") || op.Has("S16") ? 2U : 4U;
}

unsigned Latency(const Opcode& op) {
  if (op.Is("LDG", "LD", "ATOMG", "ATOM", "TEX", "TLD", "TLD4", "LDL")) {
    return 287;
  }
  if (op.Is("LDS", "LDSM", "SHFL", "ATOMS", "SYNCS", "LDTM", "LDC", "LDCU", "ULDC", "R2UR")) {
    return 29;
  }
  if (op.Is("MUFU", "F2F", "F2I", "I2F", "FRND", "POPC", "FLO", "BREV", "S2R", "S2UR", "CS2R")) {
    return 17;
  }
  if (op.Is("HMMA", "IMMA", "QMMA", "OMMA", "BMMA", "DMMA")) {
    return 32;
  }
  if (op.Is("HGMMA", "QGMMA", "IGMMA", "BGMMA")) {
    return 64;  // Of the tensor pipe alone, for the m64n128k16 form.
  }
  if (op.Is("DADD", "DMUL", "DFMA", "DSETP", "DMNMX")) {
    return 8;
  }
  if (op.Is("BAR", "MEMBAR")) {
    return 20;
  }
  return op.Is("HFMA2", "HADD2", "HMUL2") ? 5U : 4U;
}

}  // namespace kernelpro::sass
