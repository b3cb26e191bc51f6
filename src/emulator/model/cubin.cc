// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/cubin.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro::model {
namespace {

struct OpcodeName {
  std::uint16_t id;  ///< low 9 bits: bits 9 to 11 only say where the operands come from
  std::string_view name;
};

/// Each was seen where ptxas 13.0 compiles a one-instruction PTX kernel for sm_80, sm_89 or sm_90
/// (fma.rn.f32 alone gives 0x223 and no other new id, and so on). Sorted by id.
constexpr std::array kNames = {
    OpcodeName{0x002, "MOV"},       OpcodeName{0x006, "VOTE"},    OpcodeName{0x007, "SEL"},
    OpcodeName{0x008, "FSEL"},      OpcodeName{0x009, "FMNMX"},   OpcodeName{0x00b, "FSETP"},
    OpcodeName{0x00c, "ISETP"},     OpcodeName{0x010, "IADD3"},   OpcodeName{0x011, "LEA"},
    OpcodeName{0x012, "LOP3"},      OpcodeName{0x013, "IABS"},    OpcodeName{0x016, "PRMT"},
    OpcodeName{0x017, "IMNMX"},     OpcodeName{0x019, "SHF"},     OpcodeName{0x01a, "SGXT"},
    OpcodeName{0x01c, "PLOP3"},     OpcodeName{0x020, "FMUL"},    OpcodeName{0x021, "FADD"},
    OpcodeName{0x023, "FFMA"},      OpcodeName{0x024, "IMAD"},    OpcodeName{0x025, "IMAD.WIDE"},
    OpcodeName{0x026, "IDP"},       OpcodeName{0x027, "IMAD.HI"}, OpcodeName{0x028, "DMUL"},
    OpcodeName{0x029, "DADD"},      OpcodeName{0x02a, "DSETP"},   OpcodeName{0x02b, "DFMA"},
    OpcodeName{0x030, "HADD2"},     OpcodeName{0x031, "HFMA2"},   OpcodeName{0x035, "HFMA2"},
    OpcodeName{0x036, "VIADD"},     OpcodeName{0x037, "IMMA"},    OpcodeName{0x03b, "LDSM"},
    OpcodeName{0x03c, "HMMA"},      OpcodeName{0x03e, "F2FP"},    OpcodeName{0x03f, "DMMA"},
    OpcodeName{0x040, "HMNMX2"},    OpcodeName{0x045, "I2FP"},    OpcodeName{0x048, "VIMNMX"},
    OpcodeName{0x0b9, "ULDC"},      OpcodeName{0x0c4, "REDUX"},   OpcodeName{0x100, "FLO"},
    OpcodeName{0x101, "BREV"},      OpcodeName{0x102, "FCHK"},    OpcodeName{0x105, "F2I"},
    OpcodeName{0x106, "I2F"},       OpcodeName{0x107, "FRND"},    OpcodeName{0x108, "MUFU"},
    OpcodeName{0x109, "POPC"},      OpcodeName{0x110, "F2F"},     OpcodeName{0x111, "F2I"},
    OpcodeName{0x112, "I2F"},       OpcodeName{0x118, "NOP"},     OpcodeName{0x119, "S2R"},
    OpcodeName{0x11a, "DEPBAR"},    OpcodeName{0x11d, "BAR"},     OpcodeName{0x141, "BSYNC"},
    OpcodeName{0x144, "CALL"},      OpcodeName{0x145, "BSSY"},    OpcodeName{0x147, "BRA"},
    OpcodeName{0x14d, "EXIT"},      OpcodeName{0x150, "RET"},     OpcodeName{0x15d, "NANOSLEEP"},
    OpcodeName{0x180, "LD"},        OpcodeName{0x181, "LDG"},     OpcodeName{0x182, "LDC"},
    OpcodeName{0x183, "LDL"},       OpcodeName{0x184, "LDS"},     OpcodeName{0x185, "ST"},
    OpcodeName{0x186, "STG"},       OpcodeName{0x187, "STL"},     OpcodeName{0x188, "STS"},
    OpcodeName{0x189, "SHFL"},      OpcodeName{0x18c, "ATOMS"},   OpcodeName{0x18d, "ATOMS.CAS"},
    OpcodeName{0x18e, "RED"},       OpcodeName{0x18f, "CCTL"},    OpcodeName{0x192, "MEMBAR"},
    OpcodeName{0x1a1, "MATCH"},     OpcodeName{0x1a6, "RED"},     OpcodeName{0x1a8, "ATOMG"},
    OpcodeName{0x1a9, "ATOMG.CAS"}, OpcodeName{0x1ab, "ERRBAR"},  OpcodeName{0x1ae, "LDGSTS"},
    OpcodeName{0x1af, "LDGDEPBAR"},
};

constexpr std::uint16_t kOpcodeMask = 0x1ff;
constexpr std::uint64_t kIdMask = 0xfff;
constexpr std::uint64_t kInstructionBytes = 16;
constexpr std::uint16_t kNop = 0x918;
constexpr std::string_view kTextPrefix = ".text.";

/// Little-endian reads that cannot leave the file.
class Bytes {
 public:
  explicit Bytes(std::string_view data) : data_(data) {}

  template <class T>
  [[nodiscard]] std::optional<T> At(std::uint64_t offset) const {
    if (offset > data_.size() || data_.size() - offset < sizeof(T)) {
      return std::nullopt;
    }
    T value{};
    std::memcpy(&value, data_.data() + offset, sizeof(T));
    return value;
  }

  [[nodiscard]] std::optional<std::string_view> Range(std::uint64_t offset,
                                                      std::uint64_t size) const {
    if (offset > data_.size() || data_.size() - offset < size) {
      return std::nullopt;
    }
    return data_.substr(offset, size);
  }

 private:
  std::string_view data_;
};

struct Section {
  std::uint32_t name = 0;
  std::uint64_t offset = 0, size = 0;
};

std::optional<Section> ReadSection(const Bytes& file, std::uint64_t header) {
  const auto name = file.At<std::uint32_t>(header);
  const auto offset = file.At<std::uint64_t>(header + 24);
  const auto size = file.At<std::uint64_t>(header + 32);
  if (!name || !offset || !size) {
    return std::nullopt;
  }
  return Section{*name, *offset, *size};
}

Error Bad(std::string_view what) {
  return Fail(ErrorCode::kParse, fmt::format("not a cubin that can be read: {}", what));
}

Result<std::vector<Section>> ReadSections(const Bytes& file) {
  constexpr std::uint64_t kHeaderBytes = 64;
  const auto magic = file.Range(0, 6);
  if (!magic || *magic != std::string_view("\x7f"
                                           "ELF\x02\x01",
                                           6)) {
    return Bad("no 64-bit little-endian ELF header");
  }
  const auto table = file.At<std::uint64_t>(40);
  const auto entry = file.At<std::uint16_t>(58);
  const auto count = file.At<std::uint16_t>(60);
  if (!table || !entry || !count || *entry < kHeaderBytes) {
    return Bad("the ELF header ends early or has a wrong section header size");
  }
  if (!file.Range(*table, std::uint64_t{*entry} * *count)) {
    return Bad("the section table lies outside the file");
  }
  std::vector<Section> sections;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto section = ReadSection(file, *table + i * *entry);
    if (!section) {
      return Bad(fmt::format("section header {} lies outside the file", i));
    }
    sections.push_back(*section);
  }
  return sections;
}

SassHistogram CountInstructions(std::string_view kernel, std::string_view code) {
  SassHistogram out;
  out.kernel = std::string(kernel);
  const Bytes bytes(code);
  std::vector<std::uint16_t> ids;
  for (std::uint64_t at = 0; at + kInstructionBytes <= code.size(); at += kInstructionBytes) {
    ids.push_back(static_cast<std::uint16_t>(bytes.At<std::uint64_t>(at).value_or(0) & kIdMask));
  }
  while (!ids.empty() && ids.back() == kNop) {
    ids.pop_back();
  }
  for (const std::uint16_t id : ids) {
    ++out.by_id[id];
  }
  out.instructions = ids.size();
  return out;
}

}  // namespace

std::string_view SassName(std::uint16_t id) {
  const auto opcode = static_cast<std::uint16_t>(id & kOpcodeMask);
  const auto found = std::ranges::lower_bound(kNames, opcode, {}, &OpcodeName::id);
  return found != kNames.end() && found->id == opcode ? found->name : std::string_view();
}

std::uint64_t SassHistogram::Count(std::string_view name) const {
  std::uint64_t sum = 0;
  for (const auto& [id, count] : by_id) {
    sum += !name.empty() && SassName(id) == name ? count : 0;
  }
  return sum;
}

Result<std::vector<SassHistogram>> ReadCubin(std::string_view bytes) {
  const Bytes file(bytes);
  KP_ASSIGN_OR_RETURN(const std::vector<Section> sections, ReadSections(file));
  const auto names_index = file.At<std::uint16_t>(62);
  if (!names_index || *names_index >= sections.size()) {
    return Bad("no table of section names");
  }
  const Section& names_section = sections[*names_index];
  const auto names = file.Range(names_section.offset, names_section.size);
  if (!names) {
    return Bad("the section names lie outside the file");
  }
  std::vector<SassHistogram> out;
  for (const Section& section : sections) {
    if (section.name >= names->size()) {
      return Bad("a section's name lies outside the table of names");
    }
    std::string_view name = names->substr(section.name);
    name = name.substr(0, name.find('\0'));
    if (!name.starts_with(kTextPrefix)) {
      continue;
    }
    const auto code = file.Range(section.offset, section.size);
    if (!code) {
      return Bad(fmt::format("section {} lies outside the file", name));
    }
    out.push_back(CountInstructions(name.substr(kTextPrefix.size()), *code));
  }
  return out;
}

}  // namespace kernelpro::model
