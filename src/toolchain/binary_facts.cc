// SPDX-License-Identifier: Apache-2.0
#include "toolchain/binary_facts.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace kernelpro {
namespace {

constexpr std::uint64_t kLargestLibrary = std::uint64_t{1} << 30U;
constexpr std::size_t kMostSegments = 64;  // A linker makes about six.
constexpr std::size_t kMostDriverWords = 1000;

Error Odd(std::string_view what) {
  return Fail(ErrorCode::kParse, fmt::format("not a usable shared library: {}", what));
}

void SortUnique(std::vector<std::string>* list) {
  std::ranges::sort(*list);
  list->erase(std::ranges::unique(*list).begin(), list->end());
}

/// A library as the loader maps it: reads by address, and never beyond what the file holds.
class Image {
 public:
  explicit Image(std::span<const std::byte> file) : file_(file) {}

  /// A T at a file offset.
  template <class T>
  [[nodiscard]] std::optional<T> At(std::uint64_t offset) const {
    if (offset > file_.size() || file_.size() - offset < sizeof(T)) {
      return std::nullopt;
    }
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof value);
    return value;
  }

  [[nodiscard]] Status AddSegment(const Elf64_Phdr& header) {
    if (header.p_offset > file_.size() || file_.size() - header.p_offset < header.p_filesz ||
        header.p_vaddr > std::numeric_limits<std::uint64_t>::max() - header.p_memsz) {
      return Odd("a segment lies outside the file");
    }
    if (segments_.size() >= kMostSegments) {
      return Odd("it has too many segments");
    }
    for (const Elf64_Phdr& other : segments_) {
      if (header.p_vaddr < other.p_vaddr + other.p_memsz &&
          other.p_vaddr < header.p_vaddr + header.p_memsz) {
        return Odd("segments overlap");
      }
    }
    segments_.push_back(header);
    return Ok();
  }

  /// From an address to the end of its segment's file part; empty when no segment holds it.
  [[nodiscard]] std::span<const std::byte> From(std::uint64_t address) const {
    for (const Elf64_Phdr& s : segments_) {
      if (address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) {
        const std::uint64_t skip = address - s.p_vaddr;
        return file_.subspan(s.p_offset + skip, s.p_filesz - skip);
      }
    }
    return {};
  }

  template <class T>
  [[nodiscard]] std::optional<T> Load(std::uint64_t address) const {
    const std::span<const std::byte> bytes = From(address);
    if (bytes.size() < sizeof(T)) {
      return std::nullopt;
    }
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  [[nodiscard]] const std::vector<Elf64_Phdr>& segments() const { return segments_; }

  [[nodiscard]] std::span<const std::byte> BytesOf(const Elf64_Phdr& segment) const {
    return file_.subspan(segment.p_offset, segment.p_filesz);
  }

 private:
  std::span<const std::byte> file_;
  std::vector<Elf64_Phdr> segments_;
};

/// The dynamic section: single values (the last one of a tag counts, as for the loader) and the
/// name offsets of the libraries.
struct Dynamic {
  std::uint64_t names = 0, names_size = 0, symbols = 0, hash = 0, gnu_hash = 0;
  std::array<std::pair<std::uint64_t, std::uint64_t>, 2> relocations = {};  ///< address, bytes
  std::vector<std::uint64_t> libraries;
};

Dynamic ReadDynamic(std::span<const std::byte> bytes) {
  Dynamic d;
  for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= bytes.size(); at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    std::memcpy(&entry, bytes.data() + at, sizeof entry);
    const std::uint64_t value = entry.d_un.d_val;
    switch (entry.d_tag) {
      case DT_NULL:
        return d;
      case DT_NEEDED:
      case DT_AUXILIARY:
      case DT_FILTER:
        d.libraries.push_back(value);
        break;
      case DT_STRTAB:
        d.names = value;
        break;
      case DT_STRSZ:
        d.names_size = value;
        break;
      case DT_SYMTAB:
        d.symbols = value;
        break;
      case DT_HASH:
        d.hash = value;
        break;
      case DT_GNU_HASH:
        d.gnu_hash = value;
        break;
      case DT_RELA:
        d.relocations[0].first = value;
        break;
      case DT_RELASZ:
        d.relocations[0].second = value;
        break;
      case DT_JMPREL:
        d.relocations[1].first = value;
        break;
      case DT_PLTRELSZ:
        d.relocations[1].second = value;
        break;
      default:
        break;
    }
  }
  return d;
}

class FactReader {
 public:
  FactReader(const Image& image, Dynamic dynamic) : image_(image), dynamic_(std::move(dynamic)) {
    const auto names = image.From(dynamic_.names);
    names_ = std::string_view(reinterpret_cast<const char*>(names.data()),
                              std::min<std::uint64_t>(names.size(), dynamic_.names_size));
  }

  [[nodiscard]] Result<BinaryFacts> Read() {
    BinaryFacts facts;
    for (const std::uint64_t offset : dynamic_.libraries) {
      KP_ASSIGN_OR_RETURN(std::string name, NameAt(offset));
      facts.needed.push_back(std::move(name));
    }
    KP_ASSIGN_OR_RETURN(const std::uint64_t count, SymbolCount());
    for (std::uint64_t i = 1; i < count; ++i) {
      const auto symbol = image_.Load<Elf64_Sym>(dynamic_.symbols + i * sizeof(Elf64_Sym));
      if (!symbol) {
        return Odd("its symbol table ends early");
      }
      KP_RETURN_IF_ERROR(Keep(*symbol, &facts));
    }
    for (const Elf64_Phdr& segment : image_.segments()) {
      CollectDriverWords(image_.BytesOf(segment), &facts.driver_words);
    }
    for (auto* list : {&facts.needed, &facts.imports, &facts.exports, &facts.driver_words}) {
      SortUnique(list);
    }
    return facts;
  }

 private:
  [[nodiscard]] Result<std::string> NameAt(std::uint64_t offset) const {
    const std::size_t end = offset < names_.size() ? names_.find('\0', offset) : names_.npos;
    if (end == names_.npos) {
      return Odd("a name lies outside the string table");
    }
    return std::string(names_.substr(offset, end - offset));
  }

  [[nodiscard]] Status Keep(const Elf64_Sym& symbol, BinaryFacts* facts) const {
    KP_ASSIGN_OR_RETURN(std::string name, NameAt(symbol.st_name));
    const unsigned binding = ELF64_ST_BIND(symbol.st_info);
    const unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
    if (name.empty() || binding == STB_LOCAL) {
      return Ok();
    }
    if (symbol.st_shndx == SHN_UNDEF) {
      facts->imports.push_back(std::move(name));
    } else if (visibility == STV_DEFAULT || visibility == STV_PROTECTED) {
      facts->exports.push_back(std::move(name));
    }
    return Ok();
  }

  /// The dynamic section does not say how many symbols there are: as many as the hash tables and
  /// the relocations speak of.
  [[nodiscard]] Result<std::uint64_t> SymbolCount() const {
    std::uint64_t count = 0;
    if (dynamic_.hash != 0) {
      const auto chains = image_.Load<std::uint32_t>(dynamic_.hash + 4);
      if (!chains) {
        return Odd("its hash table lies outside the file");
      }
      count = *chains;
    }
    if (dynamic_.gnu_hash != 0) {
      KP_ASSIGN_OR_RETURN(const std::uint64_t hashed, GnuHashCount());
      count = std::max(count, hashed);
    }
    for (const auto& [address, bytes] : dynamic_.relocations) {
      if (bytes == 0) {
        continue;
      }
      const std::span<const std::byte> table = image_.From(address);
      if (table.size() < bytes) {
        return Odd("its relocations lie outside the file");
      }
      for (std::size_t at = 0; at + sizeof(Elf64_Rela) <= bytes; at += sizeof(Elf64_Rela)) {
        Elf64_Rela relocation;
        std::memcpy(&relocation, table.data() + at, sizeof relocation);
        count = std::max<std::uint64_t>(count, ELF64_R_SYM(relocation.r_info) + 1);
      }
    }
    if (count > 1 && image_.From(dynamic_.symbols).size() / sizeof(Elf64_Sym) < count) {
      return Odd("its symbol table ends early");
    }
    return count;
  }

  [[nodiscard]] Result<std::uint64_t> GnuHashCount() const {
    const std::span<const std::byte> table = image_.From(dynamic_.gnu_hash);
    std::array<std::uint32_t, 4> header = {};  // buckets, first symbol, words of the filter, shift
    if (table.size() < sizeof header) {
      return Odd("its hash table lies outside the file");
    }
    std::memcpy(header.data(), table.data(), sizeof header);
    const auto [buckets, first, filter_words, shift] = header;
    static_cast<void>(shift);
    const std::uint64_t bucket_start = sizeof header + std::uint64_t{filter_words} * 8;
    const std::uint64_t chain_start = bucket_start + std::uint64_t{buckets} * 4;
    const auto word = [&table](std::uint64_t at, std::uint32_t* value) {
      if (table.size() < 4 || at > table.size() - 4) {
        return false;
      }
      std::memcpy(value, table.data() + at, 4);
      return true;
    };
    std::uint32_t last = 0;
    for (std::uint64_t b = 0; b < buckets; ++b) {
      std::uint32_t bucket = 0;
      if (!word(bucket_start + b * 4, &bucket)) {
        return Odd("its hash table ends early");
      }
      last = std::max(last, bucket);
    }
    if (last < first) {
      return first;  // No symbol is hashed; those in front of `first` are imports.
    }
    for (std::uint32_t hash = 0; (hash & 1U) == 0; ++last) {
      if (!word(chain_start + std::uint64_t{last - first} * 4, &hash)) {
        return Odd("its hash table ends early");
      }
    }
    return last;
  }

  /// Whole words cu[A-Z]..., up to a NUL.
  static void CollectDriverWords(std::span<const std::byte> bytes,
                                 std::vector<std::string>* words) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto in_word = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    for (std::size_t at = text.find("cu"); at != text.npos; at = text.find("cu", at + 1)) {
      std::size_t end = at + 2;
      while (end < text.size() && in_word(text[end])) {
        ++end;
      }
      const bool whole = (at == 0 || !in_word(text[at - 1])) && end < text.size() &&
                         text[end] == '\0' && end - at >= 5 && end - at <= 64;
      if (whole && text[at + 2] >= 'A' && text[at + 2] <= 'Z' && words->size() < kMostDriverWords) {
        words->emplace_back(text.substr(at, end - at));
      }
    }
  }

  const Image& image_;
  Dynamic dynamic_;
  std::string_view names_;
};

}  // namespace

Result<BinaryFacts> ParseBinaryFacts(std::span<const std::byte> file) {
  Image image(file);
  const auto header = image.At<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return Odd("it is no ELF file");
  }
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_type != ET_DYN || header->e_phentsize != sizeof(Elf64_Phdr)) {
    return Odd("it is no 64-bit little-endian shared object");
  }
  std::optional<Elf64_Phdr> dynamic;
  for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = image.At<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) {
      return Odd("its program headers lie outside the file");
    }
    if (segment->p_type == PT_LOAD) {
      KP_RETURN_IF_ERROR(image.AddSegment(*segment));
    } else if (segment->p_type == PT_DYNAMIC) {
      dynamic = segment;
    }
  }
  const auto bytes = dynamic ? image.From(dynamic->p_vaddr) : std::span<const std::byte>();
  if (bytes.empty()) {
    return Odd("it has no dynamic section");
  }
  return FactReader(image, ReadDynamic(bytes)).Read();
}

Result<BinaryFacts> ReadBinaryFacts(const std::filesystem::path& library) {
  KP_ASSIGN_OR_RETURN(const std::string file, ReadFile(library, kLargestLibrary));
  return ParseBinaryFacts(std::as_bytes(std::span(file)));
}

}  // namespace kernelpro
