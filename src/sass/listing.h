// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// Machine code (SASS) of sm_70 and later: reading listings, loops, figures, who waits for whom.
namespace kernelpro::sass {

/// One instruction of 16 bytes, as the disassembler prints it:
///
///   /*0520*/   @!P0 LDG.E.128 R4, desc[UR4][R2.64+0x10] ;   /* 0x0000100402047981 */
struct Instruction {
  std::uint64_t address = 0;           ///< byte offset in the function
  std::string predicate;               ///< "@!P0"; empty: none
  std::string opcode;                  ///< with its modifiers: "LDG.E.128"
  std::string operands;                ///< "R4, desc[UR4][R2.64+0x10]"
  std::vector<std::uint64_t> targets;  ///< of a branch or BSSY, as far as printed
  std::uint32_t file = 0;              ///< in Function::files, from 1; 0: unknown
  std::uint32_t line = 0;
  std::optional<std::array<std::uint64_t, 2>> encoding;  ///< low word, high word

  /// "@!P0 LDG.E.128 R4, desc[UR4][R2.64+0x10]"
  [[nodiscard]] std::string Text() const;
};

struct Function {
  std::string name;                       ///< mangled
  std::string arch;                       ///< "sm_90a"; empty: the listing does not say
  std::vector<std::string> files;         ///< source files that its line marks name
  std::vector<Instruction> instructions;  ///< by address, without gaps of nvdisasm's JSON

  /// Source file of an instruction; empty when there is none.
  [[nodiscard]] std::string_view FileOf(const Instruction& instruction) const;
  /// 90 for "sm_90a"; 0 when unknown.
  [[nodiscard]] int Architecture() const;
};

/// What a listing held beside its functions.
struct Listing {
  std::vector<Function> functions;   ///< in file order; the same name may stand for several archs
  std::uint32_t empty_binaries = 0;  ///< "code for sm_XX" without a function behind it
};

/// Reads what `cuobjdump -sass`, `nvdisasm` (any of -c -g -gi -hex) or `nvdisasm -json` printed;
/// the form is found from the text. An instruction's line is the innermost one that -gi names
/// outside CUDA's own headers, if there is one. Any
/// byte sequence is safe; time and memory grow linearly with the text. Errors, each with
/// "label:line": kParse when the text is none of these (and what it looks like: assembler input,
/// PTX, a ptxas log, a compute-sanitizer log...), is cut, or holds code older than sm_70; kNotFound
/// when it is a listing without any function.
[[nodiscard]] Result<Listing> ParseListing(std::string_view text, std::string_view label);

}  // namespace kernelpro::sass
