// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernelpro::sass {

using Words = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

template <class T>
void Append(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string Encoded(const Words& words) {
  std::string bytes;
  for (const auto& [low, high] : words) {
    Append(low, &bytes);
    Append(high, &bytes);
  }
  return bytes;
}

/// A cubin of named sections, as far as a reader looks at one.
struct CubinMaker {
  unsigned arch = 90;
  bool modern = true;  ///< ABI version 8
  std::vector<std::pair<std::string, std::string>> sections;

  /// A kernel of 24 registers whose symbol is the number of its section.
  void AddKernel(const std::string& name, const Words& words) {
    sections.emplace_back(".nv.constant0." + name, std::string(16, '\0'));
    sections.emplace_back(".text." + name, Encoded(words));
    std::string info;
    for (const std::uint32_t word : {0x00082f04U, static_cast<unsigned>(sections.size()), 24U}) {
      Append(word, &info);
    }
    sections.emplace_back(".nv.info", info);
  }

  [[nodiscard]] std::string Bytes() const {
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_ABIVERSION] = modern ? 8 : 7;
    header.e_machine = 190;
    header.e_flags = modern ? arch << 8U : arch;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(sections.size() + 2);
    header.e_shstrndx = static_cast<Elf64_Half>(sections.size() + 1);
    std::string body, names(1, '\0');
    std::vector<Elf64_Shdr> table(1);
    for (const auto& [name, bytes] : sections) {
      Elf64_Shdr section = {};
      section.sh_name = static_cast<Elf64_Word>(names.size());
      section.sh_type = SHT_PROGBITS;
      section.sh_offset = sizeof header + body.size();
      section.sh_size = bytes.size();
      section.sh_info = static_cast<Elf64_Word>(table.size());
      table.push_back(section);
      names += name + '\0';
      body += bytes;
    }
    Elf64_Shdr strings = {};
    strings.sh_type = SHT_STRTAB;
    strings.sh_offset = sizeof header + body.size();
    strings.sh_size = names.size();
    table.push_back(strings);
    body += names;
    header.e_shoff = sizeof header + body.size();
    std::string file;
    Append(header, &file);
    file += body;
    for (const Elf64_Shdr& section : table) {
      Append(section, &file);
    }
    return file;
  }
};

/// One entry of a fat binary; kind 1: PTX, 2: machine code.
struct FatEntry {
  std::uint16_t kind = 2;
  std::string payload;
  std::uint64_t flags = 0;
  std::uint32_t arch = 90;
};

inline std::string FatBinary(const std::vector<FatEntry>& entries) {
  std::string body;
  for (const FatEntry& entry : entries) {
    const std::size_t start = body.size();
    Append(entry.kind, &body);
    Append(std::uint16_t{0x101}, &body);
    Append(std::uint32_t{64}, &body);
    Append(std::uint64_t{entry.payload.size()}, &body);
    body.append(12, '\0');
    Append(entry.arch, &body);
    body.append(8, '\0');
    Append(entry.flags, &body);
    body.resize(start + 64, '\0');
    body += entry.payload;
  }
  std::string file;
  Append(std::uint32_t{0xBA55ED50}, &file);
  Append(std::uint16_t{1}, &file);
  Append(std::uint16_t{16}, &file);
  Append(std::uint64_t{body.size()}, &file);
  return file + body;
}

/// LDC, LDG, FFMA, STG, EXIT, then the padding of every function on sm_90.
inline const Words kScaleKernel = {
    {0x00000a00ff017b82, 0x000fe20000000800}, {0x0000000402007981, 0x000ea8000c1e1900},
    {0x0000000400057223, 0x000fca0000000005}, {0x0000000502007986, 0x000fe2000c101904},
    {0x000000000000794d, 0x000fea0003800000}, {0xfffffffc00fc7947, 0x000fc0000383ffff},
    {0x0000000000007918, 0x000fc00000000000}};

}  // namespace kernelpro::sass
