// SPDX-License-Identifier: Apache-2.0
#include "sass/cubin_histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sass/opcode.h"

namespace kernelpro::sass {
namespace {

struct Entry {
  std::uint16_t number;  ///< bits 0 to 8; bits 9 to 11 say what the operands are
  std::string_view opcode;
};

/// Checked by compiling kernels that hold a known number of one instruction for sm_80, sm_90a and
/// sm_100a (CUDA 13.0), and against listings that print the encoding.
constexpr std::array kEntries = std::to_array<Entry>({
    {0x002, "MOV"},           {0x003, "P2R"},          {0x004, "R2P"},      {0x005, "CS2R"},
    {0x006, "VOTE"},          {0x007, "SEL"},          {0x008, "FSEL"},     {0x009, "FMNMX"},
    {0x00a, "FSET"},          {0x00b, "FSETP"},        {0x00c, "ISETP"},    {0x010, "IADD3"},
    {0x011, "LEA"},           {0x012, "LOP3"},         {0x013, "IABS"},     {0x016, "PRMT"},
    {0x017, "IMNMX"},         {0x019, "SHF"},          {0x01a, "SGXT"},     {0x01b, "BMSK"},
    {0x01c, "PLOP3"},         {0x020, "FMUL"},         {0x021, "FADD"},     {0x023, "FFMA"},
    {0x024, "IMAD"},          {0x025, "IMAD.WIDE"},    {0x026, "IDP"},      {0x027, "IMAD.HI"},
    {0x028, "DMUL"},          {0x029, "DADD"},         {0x02a, "DSETP"},    {0x02b, "DFMA"},
    {0x02d, "PREEXIT"},       {0x02e, "ACQBULK"},      {0x02f, "ELECT"},    {0x030, "HADD2"},
    {0x031, "HFMA2"},         {0x032, "HMUL2"},        {0x033, "HSET2"},    {0x034, "HSETP2"},
    {0x035, "HFMA2.MMA"},     {0x036, "VIADD"},        {0x037, "IMMA"},     {0x03a, "MOVM"},
    {0x03b, "LDSM"},          {0x03c, "HMMA"},         {0x03d, "BMMA"},     {0x03e, "F2FP"},
    {0x03f, "DMMA"},          {0x040, "HMNMX2"},       {0x044, "STSM"},     {0x045, "I2FP"},
    {0x046, "VIADDMNMX"},     {0x048, "VIMNMX"},       {0x049, "FFMA2"},    {0x04a, "FMUL2"},
    {0x04b, "FADD2"},         {0x082, "UMOV"},         {0x086, "VOTEU"},    {0x087, "USEL"},
    {0x08c, "UISETP"},        {0x090, "UIADD3"},       {0x091, "ULEA"},     {0x092, "ULOP3"},
    {0x099, "USHF"},          {0x09c, "UPLOP3"},       {0x0a4, "UIMAD"},    {0x0a5, "UIMAD.WIDE"},
    {0x0b9, "ULDC"},          {0x0bd, "UFLO"},         {0x0bf, "UPOPC"},    {0x0ca, "R2UR"},
    {0x100, "FLO"},           {0x101, "BREV"},         {0x102, "FCHK"},     {0x104, "F2F"},
    {0x105, "F2I"},           {0x106, "I2F"},          {0x107, "FRND"},     {0x108, "MUFU"},
    {0x109, "POPC"},          {0x110, "F2F"},          {0x111, "F2I"},      {0x112, "I2F"},
    {0x113, "FRND"},          {0x118, "NOP"},          {0x119, "S2R"},      {0x11a, "DEPBAR"},
    {0x11b, "ENDCOLLECTIVE"}, {0x11c, "B2R"},          {0x11d, "BAR"},      {0x141, "BSYNC"},
    {0x142, "BREAK"},         {0x143, "CALL"},         {0x144, "CALL"},     {0x145, "BSSY"},
    {0x146, "YIELD"},         {0x147, "BRA"},          {0x148, "WARPSYNC"}, {0x149, "BRX"},
    {0x14a, "JMP"},           {0x14d, "EXIT"},         {0x150, "RET"},      {0x15c, "BPT"},
    {0x15d, "NANOSLEEP"},     {0x160, "TEX"},          {0x180, "LD"},       {0x181, "LDG"},
    {0x182, "LDC"},           {0x183, "LDL"},          {0x184, "LDS"},      {0x185, "ST"},
    {0x186, "STG"},           {0x187, "STL"},          {0x188, "STS"},      {0x189, "SHFL"},
    {0x18a, "ATOM"},          {0x18b, "ATOM.CAS"},     {0x18c, "ATOMS"},    {0x18d, "ATOMS.CAS"},
    {0x18e, "RED"},           {0x18f, "CCTL"},         {0x192, "MEMBAR"},   {0x1a1, "MATCH"},
    {0x1a3, "ATOMG"},         {0x1a6, "RED"},          {0x1a7, "SYNCS"},    {0x1a8, "ATOMG"},
    {0x1a9, "ATOMG.CAS"},     {0x1ab, "ERRBAR"},       {0x1ac, "LDCU"},     {0x1ae, "LDGSTS"},
    {0x1af, "LDGDEPBAR"},     {0x1b2, "SYNCS"},        {0x1b4, "UTMALDG"},  {0x1b5, "UTMASTG"},
    {0x1b6, "UTMAREDG"},      {0x1b7, "UTMACMDFLUSH"}, {0x1b8, "UTMAPF"},   {0x1ba, "UBLKCP"},
    {0x1bb, "UBLKRED"},       {0x1c2, "R2UR"},         {0x1c3, "S2UR"},     {0x1c4, "REDUX"},
    {0x1c5, "WARPGROUP"},     {0x1c6, "FENCE"},        {0x1c7, "UCGABAR_"}, {0x1c8, "USETMAXREG"},
    {0x1e9, "UTCBAR"},        {0x1ea, "UTCMMA"},       {0x1ee, "LDTM"},     {0x1f0, "HGMMA"},
    {0x1f1, "IGMMA"},         {0x1f3, "QGMMA"},
});
static_assert(std::ranges::is_sorted(kEntries, {}, &Entry::number));

constexpr unsigned kZeroRegister = 0xff;
constexpr std::size_t kInstructionBytes = 16;

unsigned Byte(std::uint64_t word, unsigned shift) {
  return static_cast<unsigned>(word >> shift) & 0xffU;
}

/// The two factors are RZ: what is left moves the addend. In forms 4, 6, 7 and e the second factor
/// stands in the upper word, because the lower one holds an immediate or a constant's place.
bool OnlyMoves(std::uint64_t low, std::uint64_t high) {
  const unsigned form = static_cast<unsigned>(low >> 9U) & 7U;
  const bool addend_below = form == 2 || form == 3 || form == 7;
  const unsigned second = addend_below ? Byte(high, 0) : form == 1 ? Byte(low, 32) : 0;
  return Byte(low, 24) == kZeroRegister && second == kZeroRegister;
}

/// What stands behind the last instruction of every function, before and since sm_90.
bool IsBranchToItself(std::uint64_t low) {
  return low == 0xfffffff000007947U || low == 0xfffffffc00fc7947U;
}

/// IMAD.X
bool AddsCarry(std::uint64_t high) {
  return ((high >> 10U) & 1U) != 0;
}

/// The function field of MUFU: 6 and 7 are RCP64H and RSQ64H.
bool IsDoubleMufu(std::uint64_t high) {
  const unsigned function = static_cast<unsigned>(high >> 10U) & 0xfU;
  return function == 6 || function == 7;
}

/// Figures that an encoding without its modifiers cannot give.
constexpr std::array kNeedModifiers = {Figure::kHmmaK8, Figure::kWarpgroupWait0,
                                       Figure::kMbarrierWait};

void PutMetrics(const std::array<std::uint64_t, kFigures>& counts, std::size_t size,
                std::uint64_t unknown, int arch, Histogram* out) {
  const auto put = [out](std::string_view name, double value, std::string_view unit) {
    out->metrics["sass." + std::string(name)] = {value, std::string(unit), Provenance::kCounted};
  };
  for (std::size_t f = 0; f < kFigures; ++f) {
    if (std::ranges::find(kNeedModifiers, static_cast<Figure>(f)) == kNeedModifiers.end()) {
      put(FigureName(static_cast<Figure>(f)), static_cast<double>(counts[f]), "inst");
    }
  }
  const auto at = [&counts](Figure figure) { return counts[static_cast<std::size_t>(figure)]; };
  put("mma",
      static_cast<double>(at(Figure::kMmaWarp) + at(Figure::kMmaWarpgroup) +
                          at(Figure::kMmaTcgen05)),
      "inst");
  put("instructions", static_cast<double>(size), "inst");
  put("code_bytes", static_cast<double>(size * kInstructionBytes), "byte");
  put("unknown.pct",
      size == 0 ? 0 : 100.0 * static_cast<double>(unknown) / static_cast<double>(size), "%");
  if (arch > 0) {
    put("arch", arch, "");
  }
}

}  // namespace

std::string_view DecodeOpcode(std::uint64_t low, std::uint64_t high, int arch) {
  const auto number = static_cast<std::uint16_t>(low & 0x1ffU);
  const auto found = std::ranges::lower_bound(kEntries, number, {}, &Entry::number);
  if (found == kEntries.end() || found->number != number) {
    return {};
  }
  if (number == 0x024 && OnlyMoves(low, high) && !AddsCarry(high)) {
    return "IMAD.MOV";
  }
  if (number == 0x030 && Byte(low, 24) == kZeroRegister) {
    return "HADD2.F32";  // -RZ + x: widens a half.
  }
  if (number == 0x036 && arch > 0 && arch < 80) {
    return "HMMA";  // HMMA.884 of Volta has the number that VIADD has today.
  }
  if ((low & 0xfffU) == 0x5abU) {
    return "CGAERRBAR";
  }
  if (number == 0x18e || number == 0x1a6) {
    return arch >= 90 ? "REDG" : "RED";
  }
  if (number == 0x108 && IsDoubleMufu(high)) {
    return "MUFU.64H";
  }
  return found->opcode;
}

Histogram HistogramOf(std::span<const std::byte> code, int arch) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> words(code.size() / kInstructionBytes);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::memcpy(&words[i].first, code.data() + i * kInstructionBytes, 8);
    std::memcpy(&words[i].second, code.data() + i * kInstructionBytes + 8, 8);
  }
  const auto decode = [&words, arch](std::size_t i) {
    return DecodeOpcode(words[i].first, words[i].second, arch);
  };
  std::size_t size = words.size();
  while (size > 0 && decode(size - 1) == "NOP") {
    --size;
  }
  if (size > 1 && IsBranchToItself(words[size - 1].first)) {
    --size;
  }
  while (size > 0 && decode(size - 1) == "NOP") {
    --size;
  }
  Histogram out;
  std::array<std::uint64_t, kFigures> counts = {};
  std::uint64_t unknown = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const auto [low, high] = words[i];
    const std::string_view opcode = decode(i);
    if (opcode.empty()) {
      ++unknown;
      ++out.opcodes[fmt::format("unknown_0x{:03x}", low & 0xfffU)];
      continue;
    }
    ++out.opcodes[std::string(opcode)];
    const bool constant = opcode.starts_with("HFMA2") && OnlyMoves(low, high);
    FigureSet set = FiguresOf(Opcode(opcode), constant ? "R0, -RZ, RZ, 1, 1" : "");
    for (std::size_t f = 0; set != 0; ++f, set >>= 1U) {
      counts[f] += set & 1U;
    }
  }
  PutMetrics(counts, size, unknown, arch, &out);
  return out;
}

}  // namespace kernelpro::sass
