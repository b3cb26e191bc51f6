// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "emulator/ptx/module.h"

namespace kernelpro::ptx {

/// What a name inside a function stands for.
struct Symbol {
  enum class Kind : std::uint8_t {
    kRegister,    ///< index into Function::registers
    kVariable,    ///< index into Function::variables
    kSlot,        ///< index into Function::call_slots
    kParameter,   ///< of the function, or of its returns
    kLabel,       ///< index into Function::body
    kTargetList,  ///< .branchtargets: number of the list
    kPrototype,   ///< .callprototype or .calltargets
  };
  Kind kind = Kind::kLabel;
  Type type = Type::kNone;  ///< kRegister
  std::uint32_t index = 0;
};

/// Where a label is named before it may be known. Labels are local to their scope and may come
/// after their use, so a reference is settled when its scope closes.
struct LabelReference {
  std::string_view name;
  std::uint32_t line = 0;
  /// Instruction::operands[operand] of body[holder], or entry `operand` of target list `holder`.
  std::uint32_t holder = 0;
  std::uint32_t operand = 0;
  bool in_target_list = false;
};

/// The nested scopes of one function body. Registers come into being at their first use: a range
/// like `%r<1000000>` costs nothing.
class SymbolTable {
 public:
  static constexpr std::size_t kDeepestScope = 64;

  /// `module_names` are the names that a function-scope variable must not take for itself.
  SymbolTable(Function& function, const std::unordered_set<std::string_view>& module_names)
      : function_(function), module_names_(module_names) {
    scopes_.emplace_back();
  }

  /// False beyond kDeepestScope.
  [[nodiscard]] bool Open();
  /// Settles the references that this scope's labels answer; `settled` gets them with their
  /// symbol. The rest moves outwards, or for the outermost scope to `unknown`.
  void Close(std::vector<std::pair<LabelReference, Symbol>>& settled,
             std::vector<LabelReference>& unknown);

  [[nodiscard]] std::size_t depth() const { return scopes_.size(); }

  /// False when the innermost scope already has the name.
  [[nodiscard]] bool Declare(std::string_view name, Symbol symbol);
  [[nodiscard]] bool DeclareRegister(std::string_view name, Type type);
  /// `%r<5>` is `%r0` to `%r4`.
  [[nodiscard]] bool DeclareRange(std::string_view prefix, std::uint64_t count, Type type);

  void Refer(LabelReference reference) { scopes_.back().pending.push_back(reference); }

  /// Innermost first; a register gets its index now if it has none.
  [[nodiscard]] std::optional<Symbol> Find(std::string_view name);

  /// `name`, or `name.2`, `name.3`, ... when the function or module has it already. PTX names have
  /// no dots, so made names never collide with written ones.
  [[nodiscard]] std::string UniqueVariableName(std::string_view name);

 private:
  struct Range {
    std::uint64_t count = 0;
    Type type = Type::kNone;
  };

  struct Scope {
    std::unordered_map<std::string_view, Symbol> names;
    std::unordered_map<std::string_view, Range> ranges;
    std::vector<LabelReference> pending;
  };

  Symbol Realise(std::string_view name, Symbol& symbol);
  [[nodiscard]] std::string UniqueName(std::string_view name, bool taken);

  Function& function_;
  const std::unordered_set<std::string_view>& module_names_;
  std::vector<Scope> scopes_;
  std::unordered_map<std::string_view, std::uint32_t> uses_of_name_;
};

}  // namespace kernelpro::ptx
