// SPDX-License-Identifier: Apache-2.0
#include "sass/cubin.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace kernelpro::sass {
namespace {

constexpr std::uint16_t kCudaMachine = 190;
constexpr std::uint32_t kFatMagic = 0xBA55ED50;
constexpr std::size_t kMostSections = 200'000;
constexpr std::size_t kMostCubins = 10'000;

using Bytes = std::span<const std::byte>;

/// A T at an offset; nothing past the end.
template <class T>
std::optional<T> At(Bytes bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) {
    return std::nullopt;
  }
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::optional<Bytes> Part(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) {
    return std::nullopt;
  }
  return bytes.subspan(offset, size);
}

std::string_view NameAt(Bytes names, std::uint64_t offset) {
  if (offset >= names.size()) {
    return {};
  }
  const std::string_view text(reinterpret_cast<const char*>(names.data()) + offset,
                              names.size() - offset);
  const std::size_t end = text.find('\0');
  return end == text.npos ? std::string_view() : text.substr(0, end);
}

/// The number stands in the second byte of the flags since ABI version 8 (CUDA 13), in the first
/// before.
unsigned ArchOf(const Elf64_Ehdr& header) {
  const bool modern = header.e_ident[EI_ABIVERSION] >= 8;
  return (modern ? header.e_flags >> 8U : header.e_flags) & 0xffU;
}

/// The letter of "sm_90a" is only in the command line of ptxas, which a note keeps.
std::string WithLetter(unsigned number, std::string_view note) {
  const std::string plain = fmt::format("sm_{}", number);
  const std::size_t at = note.find(plain);
  if (at != note.npos && at + plain.size() < note.size()) {
    const char letter = note[at + plain.size()];
    if (letter == 'a' || letter == 'f') {
      return plain + letter;
    }
  }
  return plain;
}

class CubinReader {
 public:
  CubinReader(Bytes file, std::string_view label) : file_(file), label_(label) {}

  Result<Cubin> Read() {
    const auto header = At<Elf64_Ehdr>(file_, 0);
    if (!header || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr)) {
      return Odd("its ELF header is not that of a 64-bit cubin");
    }
    Cubin cubin;
    KP_RETURN_IF_ERROR(Sections(*header));
    std::string_view options;
    std::uint64_t code_bytes = 0;
    std::set<std::string_view> with_parameters;
    for (const Section& section : sections_) {
      if (section.name.starts_with(".nv.constant0.")) {
        with_parameters.insert(section.name.substr(14));
      }
    }
    for (const Section& section : sections_) {
      cubin.lineinfo =
          cubin.lineinfo || section.name == ".debug_line" || section.name == ".nv_debug_line_sass";
      cubin.debug = cubin.debug || section.name == ".debug_info";
      if (section.name == ".note.nv.tkinfo") {
        options = {reinterpret_cast<const char*>(section.bytes.data()), section.bytes.size()};
      }
      if (section.name.starts_with(".text.") && section.header.sh_type == SHT_PROGBITS) {
        CubinFunction function;
        function.name = std::string(section.name.substr(6));
        function.code = section.bytes.first(section.bytes.size() / 16 * 16);
        function.registers = Registers(section);
        function.entry = with_parameters.contains(section.name.substr(6));
        code_bytes += function.code.size();
        cubin.functions.push_back(std::move(function));
      }
    }
    if (code_bytes > file_.size()) {
      return Odd("its code sections overlap");
    }
    cubin.arch = WithLetter(ArchOf(*header), options);
    cubin.exact = options.find(cubin.arch) != options.npos;
    if (ArchOf(*header) < 70) {
      cubin.functions.clear();  // Instructions of another form.
    }
    return cubin;
  }

 private:
  struct Section {
    std::string_view name;
    Elf64_Shdr header = {};
    Bytes bytes;
  };

  [[nodiscard]] Error Odd(std::string_view what) const {
    return Fail(ErrorCode::kParse, fmt::format("{}: a damaged cubin: {}", label_, what));
  }

  [[nodiscard]] Status Sections(const Elf64_Ehdr& header) {
    const auto names_header = At<Elf64_Shdr>(
        file_, header.e_shoff + std::uint64_t{header.e_shstrndx} * sizeof(Elf64_Shdr));
    const auto names =
        names_header ? Part(file_, names_header->sh_offset, names_header->sh_size) : std::nullopt;
    if (!names || header.e_shoff > file_.size()) {
      return Odd("its section names lie outside the file");
    }
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(header.e_shnum, kMostSections); ++i) {
      const auto section = At<Elf64_Shdr>(file_, header.e_shoff + i * sizeof(Elf64_Shdr));
      if (!section) {
        return Odd("its section headers lie outside the file");
      }
      const bool in_file = section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL;
      const auto bytes = in_file ? Part(file_, section->sh_offset, section->sh_size) : Bytes();
      if (!bytes) {
        return Odd("a section lies outside the file");
      }
      sections_.push_back({NameAt(*names, section->sh_name), *section, *bytes});
      if (sections_.back().name == ".nv.info") {
        RegisterCounts(*bytes);
      }
    }
    return Ok();
  }

  /// ".nv.info": records of {format, attribute, size}; attribute 0x2f gives {symbol, registers}.
  void RegisterCounts(Bytes info) {
    constexpr std::uint8_t kSized = 4, kRegisterCount = 0x2f;
    for (std::uint64_t at = 0;;) {
      const auto format = At<std::uint8_t>(info, at);
      const auto attribute = At<std::uint8_t>(info, at + 1);
      const auto size = At<std::uint16_t>(info, at + 2);
      if (!format || !attribute || !size) {
        return;
      }
      const auto symbol = At<std::uint32_t>(info, at + 4);
      const auto count = At<std::uint32_t>(info, at + 8);
      if (*format == kSized && *attribute == kRegisterCount && *size >= 8 && symbol && count) {
        registers_[*symbol] = *count;
      }
      at += 4 + (*format == kSized ? std::uint64_t{*size} : 0);
    }
  }

  /// Code sections name their function's symbol in sh_info; below sm_90 the number of registers
  /// stands in its upper byte.
  [[nodiscard]] std::optional<std::uint32_t> Registers(const Section& section) const {
    const std::uint32_t upper = section.header.sh_info >> 24U;
    const auto found = registers_.find(section.header.sh_info & 0xffffffU);
    return found != registers_.end() ? std::optional(found->second)
           : upper > 0               ? std::optional(upper)
                                     : std::nullopt;
  }

  Bytes file_;
  std::string_view label_;
  std::vector<Section> sections_;
  std::map<std::uint32_t, std::uint32_t> registers_;
};

bool IsCubin(Bytes bytes) {
  const auto header = At<Elf64_Ehdr>(bytes, 0);
  return header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
         header->e_machine == kCudaMachine;
}

/// A fat binary: a header of 16 bytes, then entries of a header and a payload each.
struct EntryHeader {
  std::uint16_t kind = 0, unknown = 0;
  std::uint32_t header_size = 0;
  std::uint64_t size = 0;
  std::uint32_t compressed_size = 0, options = 0;
  std::uint16_t minor = 0, major = 0;
  std::uint32_t arch = 0, name_offset = 0, name_size = 0;
  std::uint64_t flags = 0, zero = 0, original_size = 0;
};

static_assert(sizeof(EntryHeader) == 64);

constexpr std::uint16_t kPtx = 1, kElf = 2;
constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000;

class FatReader {
 public:
  FatReader(Bytes file, std::string_view label) : file_(file), label_(label) {}

  [[nodiscard]] Status Scan(GpuCode* code) {
    // The magic number is looked for everywhere: in a program it stands in a section whose
    // headers may be stripped. An entry's end is where the search goes on.
    constexpr std::string_view kMagic("\x50\xED\x55\xBA", 4);
    const std::string_view text(reinterpret_cast<const char*>(file_.data()), file_.size());
    for (std::size_t at = text.find(kMagic); at != text.npos; at = text.find(kMagic, at)) {
      const auto header_size = At<std::uint16_t>(file_, at + 6);
      const auto fat_size = At<std::uint64_t>(file_, at + 8);
      const auto body = header_size && *header_size >= 16 && fat_size
                            ? Part(file_, at + *header_size, *fat_size)
                            : std::nullopt;
      if (!body) {
        at += 4;
        continue;
      }
      KP_RETURN_IF_ERROR(Entries(*body, code));
      at += *header_size + body->size();
    }
    return Ok();
  }

 private:
  [[nodiscard]] Status Entries(Bytes body, GpuCode* code) {
    std::uint64_t at = 0;
    while (const auto entry = At<EntryHeader>(body, at)) {
      const auto payload = entry->header_size >= sizeof(EntryHeader)
                               ? Part(body, at + entry->header_size, entry->size)
                               : std::nullopt;
      if (!payload || (payload->empty() && entry->header_size == 0)) {
        return Fail(ErrorCode::kParse, fmt::format("{}: a damaged fat binary", label_));
      }
      code->ptx += entry->kind == kPtx ? 1U : 0U;
      if (entry->kind == kElf) {
        KP_RETURN_IF_ERROR(Elf(*entry, *payload, code));
      }
      at += entry->header_size + entry->size;
    }
    return Ok();
  }

  [[nodiscard]] Status Elf(const EntryHeader& entry, Bytes payload, GpuCode* code) {
    if (code->cubins.size() + code->compressed.size() >= kMostCubins) {
      return Fail(ErrorCode::kParse, fmt::format("{}: more than {} cubins", label_, kMostCubins));
    }
    if (IsCubin(payload)) {
      KP_ASSIGN_OR_RETURN(Cubin cubin, CubinReader(payload, label_).Read());
      code->cubins.push_back(std::move(cubin));
    } else {
      const char* how = (entry.flags & kZstd) != 0  ? "zstd"
                        : (entry.flags & kLz4) != 0 ? "lz4"
                                                    : "unknown form";
      code->compressed.push_back(fmt::format("sm_{} ({})", entry.arch, how));
    }
    return Ok();
  }

  Bytes file_;
  std::string_view label_;
};

}  // namespace

bool LooksLikeBinary(std::span<const std::byte> file) {
  const auto magic = At<std::uint32_t>(file, 0);
  return magic && (*magic == kFatMagic || std::memcmp(file.data(), ELFMAG, SELFMAG) == 0);
}

Result<GpuCode> ReadGpuCode(std::span<const std::byte> file, std::string_view label) {
  GpuCode code;
  if (IsCubin(file)) {
    KP_ASSIGN_OR_RETURN(Cubin cubin, CubinReader(file, label).Read());
    code.cubins.push_back(std::move(cubin));
  } else if (LooksLikeBinary(file)) {
    KP_RETURN_IF_ERROR(FatReader(file, label).Scan(&code));
  } else {
    return Fail(ErrorCode::kParse, fmt::format("{}: neither an ELF file nor a fat binary", label));
  }
  std::erase_if(code.cubins, [](const Cubin& cubin) { return cubin.functions.empty(); });
  if (!code.cubins.empty()) {
    return code;
  }
  if (!code.compressed.empty()) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: its GPU code is compressed ({}); give the listing of `cuobjdump "
                            "-sass`, or build with `nvcc -cubin` or `-Xfatbin=-compress=false`",
                            label, fmt::join(code.compressed, ", ")));
  }
  return Fail(ErrorCode::kNotFound,
              fmt::format("{}: no GPU machine code in it{}", label,
                          code.ptx > 0 ? ", only PTX (-arch=compute_XX): name an sm_XX" : ""));
}

}  // namespace kernelpro::sass
