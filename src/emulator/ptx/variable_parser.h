// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/budget.h"
#include "emulator/ptx/cursor.h"
#include "emulator/ptx/module.h"

namespace kernelpro::ptx {

/// What stands between the state space and the name: `.align 8 .v2 .f32`, `.ptr .global .align 4`.
struct Declaration {
  Type type = Type::kNone;
  std::uint32_t alignment = 0;  ///< 0 when not given
  std::uint32_t lanes = 1;      ///< .v2, .v4
};

/// The largest size that a declaration may give; nothing is allocated for it.
inline constexpr std::uint64_t kLargestVariable = std::uint64_t{1} << 62U;

/// Everything up to the name. With `is_parameter`, .ptr and the state space it points to are
/// taken and forgotten.
[[nodiscard]] Result<Declaration> ParseDeclaration(Cursor& cursor, bool is_parameter);

/// `[4][8]` after a name: {4, 8}; 0 for `[]`, which only the first may be.
[[nodiscard]] Result<std::vector<std::uint64_t>> ParseDimensions(Cursor& cursor);

/// After `(` or another opening: one parameter, `.param .align 8 .b8 name[16]`. The offset is left
/// 0; `name` is a view into the text.
[[nodiscard]] Result<Parameter> ParseParameter(Cursor& cursor, std::string_view& name);

/// Puts `parameter` behind `end`, aligned, and moves `end` after it; false when the block would
/// pass its limit of 256 MiB.
[[nodiscard]] bool PlaceParameter(Parameter& parameter, std::uint32_t& end);

/// After the state space: one or more variables up to and with `;`.
class VariableParser {
 public:
  VariableParser(Cursor& cursor, Budget& budget) : cursor_(cursor), budget_(budget) {}

  /// `add` gets each variable and the line of its name, and may refuse it.
  Status Parse(
      Space space, bool is_extern,
      const std::function<Status(Variable, std::string_view name, std::uint32_t line)>& add);

 private:
  /// One byte of an address: `0xFF00(generic(sym)+4)` is byte 1.
  struct AddressByte {
    Variable::Relocation address;
    std::uint32_t byte = 0;
    std::uint32_t line = 0;
  };

  Status ParseVariable(const Declaration& declaration, Variable& variable);
  Status ParseList(Variable& variable, std::size_t level, std::uint64_t base, std::uint64_t& count);
  Status ParseValue(Variable& variable, std::uint64_t offset);
  Status ParseAddress(Variable::Relocation& address);
  Status ParseAddressByte(Variable& variable, std::uint64_t offset, const Token& mask);
  Status ParseNumber(Variable& variable, std::uint64_t offset);
  Status Store(Variable& variable, std::uint64_t offset, std::uint64_t bits);
  /// Runs of address bytes become relocations.
  Status JoinAddressBytes(Variable& variable);

  Cursor& cursor_;
  Budget& budget_;
  std::vector<std::uint64_t> dimensions_;  ///< of the variable in hand, .v2/.v4 as the last one
  std::vector<AddressByte> address_bytes_;
};

}  // namespace kernelpro::ptx
