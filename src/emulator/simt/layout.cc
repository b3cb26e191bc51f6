// SPDX-License-Identifier: Apache-2.0
#include "emulator/simt/layout.h"

#include <algorithm>
#include <set>
#include <utility>

namespace kernelpro::simt {
namespace {

constexpr std::uint32_t kSlotAlignment = 128;

template <class T>
T RoundUp(T value, T unit) {
  return (value + unit - 1) / unit * unit;
}

void CollectSymbols(const ptx::Operand& operand, std::set<std::string, std::less<>>& names) {
  if (!operand.text.empty()) {
    names.insert(operand.text);
  }
  for (const ptx::Operand& element : operand.elements) {
    CollectSymbols(element, names);
  }
}

std::set<std::string, std::less<>> SymbolsOf(const std::vector<const ptx::Function*>& functions) {
  std::set<std::string, std::less<>> names;
  for (const ptx::Function* function : functions) {
    for (const ptx::Instruction& instruction : function->body) {
      for (const ptx::Operand& operand : instruction.operands) {
        CollectSymbols(operand, names);
      }
    }
  }
  return names;
}

}  // namespace

SlotTable::SlotTable(const ptx::Function& function) {
  registers_.resize(function.registers.size(), kNoSlot);
  std::uint32_t offset = 0;
  for (std::size_t i = 0; i < registers_.size(); ++i) {
    if (function.registers[i].type == ptx::Type::kPred) {
      registers_[i] = offset;
      offset += 4;
    }
  }
  offset = RoundUp(offset, kSlotAlignment);
  for (std::size_t i = 0; i < registers_.size(); ++i) {
    const ptx::Type type = function.registers[i].type;
    if (type != ptx::Type::kPred) {
      registers_[i] = offset;
      offset += std::max(4U, ptx::SizeOf(type)) * kWarpSize;
    }
  }
  register_bytes_ = offset;
  next_ = offset;
}

std::uint32_t SlotTable::Constant(ConstantSlot wanted) {
  const Key key{wanted.kind,  wanted.is_64,   wanted.sign_extend,
                wanted.width, wanted.special, wanted.bits};
  const auto [it, inserted] = known_.try_emplace(key, next_);
  if (inserted) {
    wanted.slot = next_;
    next_ += wanted.kind == ConstantSlot::Kind::kPredicate ? kSlotAlignment
                                                           : (wanted.is_64 ? 256U : 128U);
    constants_.push_back(wanted);
  }
  return it->second;
}

ParameterArray SlotTable::Array(std::uint32_t bytes) {
  const ParameterArray array{
      .slot = next_, .stride = RoundUp(std::max(bytes, 1U), 16U), .bytes = bytes};
  next_ = RoundUp(next_ + array.stride * kWarpSize, kSlotAlignment);
  return array;
}

std::uint32_t SlotTable::Scratch() {
  if (scratch_ == kNoSlot) {
    scratch_ = next_;
    next_ += 2 * kSlotAlignment;
  }
  return scratch_;
}

std::uint32_t SlotTable::Carry() {
  if (carry_ == kNoSlot) {
    carry_ = next_;
    next_ += kSlotAlignment;
  }
  return carry_;
}

void SlotTable::Finish(FunctionCode& code) {
  code.cleared_bytes = register_bytes_;
  code.block_bytes = std::max(next_, kSlotAlignment);
  code.constants = std::move(constants_);
}

SharedLayout LayOutShared(const ptx::Module& module,
                          const std::vector<const ptx::Function*>& functions) {
  const auto names = SymbolsOf(functions);
  SharedLayout layout;
  std::vector<const ptx::Variable*> dynamic;
  std::uint64_t offset = 0;
  const auto place = [&](const ptx::Variable& variable) {
    if (variable.space != ptx::Space::kShared || layout.symbols.contains(variable.name)) {
      return;
    }
    if (variable.bytes == 0) {
      dynamic.push_back(&variable);
      return;
    }
    offset = RoundUp<std::uint64_t>(offset, std::max(variable.alignment, 1U));
    layout.symbols[variable.name] = Symbol{ptx::Space::kShared, offset};
    offset += variable.bytes;
  };
  for (const ptx::Function* function : functions) {
    for (const ptx::Variable& variable : function->variables) {
      place(variable);
    }
  }
  for (const ptx::Variable& variable : module.variables) {
    if (names.contains(variable.name)) {
      place(variable);
    }
  }
  layout.static_bytes = offset;
  std::uint64_t alignment = 16;
  for (const ptx::Variable* variable : dynamic) {
    alignment = std::max<std::uint64_t>(alignment, variable->alignment);
  }
  for (const ptx::Variable* variable : dynamic) {
    layout.symbols[variable->name] = Symbol{ptx::Space::kShared, RoundUp(offset, alignment)};
  }
  if (!dynamic.empty()) {
    layout.static_bytes = RoundUp(offset, alignment);
  }
  return layout;
}

std::vector<const ptx::Function*> Reachable(const ptx::Module& module,
                                            const ptx::Function& kernel) {
  std::vector<const ptx::Function*> found{&kernel};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const ptx::Instruction& instruction : found[i]->body) {
      if (instruction.parts.empty() || instruction.parts[0] != "call") {
        continue;
      }
      for (const ptx::Operand& operand : instruction.operands) {
        const ptx::Function* callee =
            operand.kind == ptx::Operand::Kind::kSymbol ? module.Find(operand.text) : nullptr;
        if (callee != nullptr && !callee->is_declaration &&
            std::ranges::find(found, callee) == found.end()) {
          found.push_back(callee);
        }
      }
    }
  }
  return found;
}

}  // namespace kernelpro::simt
