// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/symbol_table.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "emulator/ptx/module.h"

namespace kernelpro::ptx {
namespace {

/// "%rd12" -> {"%rd", 12}; nothing when it does not end in a number as a range makes it.
std::optional<std::pair<std::string_view, std::uint64_t>> SplitNumber(std::string_view name) {
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') {
    --begin;
  }
  const std::string_view digits = name.substr(begin);
  if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  return std::pair{name.substr(0, begin), number};
}

}  // namespace

bool SymbolTable::Open() {
  if (scopes_.size() >= kDeepestScope) {
    return false;
  }
  scopes_.emplace_back();
  return true;
}

void SymbolTable::Close(std::vector<std::pair<LabelReference, Symbol>>& settled,
                        std::vector<LabelReference>& unknown) {
  KP_CHECK(!scopes_.empty()) << "closing a scope that is not open";
  const Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (const LabelReference& reference : scope.pending) {
    const auto found = scope.names.find(reference.name);
    if (found != scope.names.end()) {
      settled.emplace_back(reference, found->second);
    } else if (scopes_.empty()) {
      unknown.push_back(reference);
    } else {
      scopes_.back().pending.push_back(reference);
    }
  }
}

bool SymbolTable::Declare(std::string_view name, Symbol symbol) {
  return scopes_.back().names.emplace(name, symbol).second;
}

bool SymbolTable::DeclareRegister(std::string_view name, Type type) {
  return Declare(name,
                 {.kind = Symbol::Kind::kRegister, .type = type, .index = Operand::kNoRegister});
}

bool SymbolTable::DeclareRange(std::string_view prefix, std::uint64_t count, Type type) {
  return scopes_.back().ranges.emplace(prefix, Range{count, type}).second;
}

std::string SymbolTable::UniqueName(std::string_view name, bool taken) {
  std::uint32_t& uses = uses_of_name_[name];
  uses += taken && uses == 0 ? 2 : 1;
  return uses == 1 ? std::string(name) : std::string(name) + "." + std::to_string(uses);
}

std::string SymbolTable::UniqueVariableName(std::string_view name) {
  return UniqueName(name, module_names_.contains(name));
}

Symbol SymbolTable::Realise(std::string_view name, Symbol& symbol) {
  if (symbol.kind == Symbol::Kind::kRegister && symbol.index == Operand::kNoRegister) {
    symbol.index = static_cast<std::uint32_t>(function_.registers.size());
    function_.registers.push_back({UniqueName(name, false), symbol.type});
  }
  return symbol;
}

std::optional<Symbol> SymbolTable::Find(std::string_view name) {
  const auto numbered = SplitNumber(name);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->names.find(name); found != scope->names.end()) {
      return Realise(name, found->second);
    }
    if (!numbered) {
      continue;
    }
    const auto range = scope->ranges.find(numbered->first);
    if (range != scope->ranges.end() && numbered->second < range->second.count) {
      Symbol& made = scope->names[name];
      made = {.kind = Symbol::Kind::kRegister,
              .type = range->second.type,
              .index = Operand::kNoRegister};
      return Realise(name, made);
    }
  }
  return std::nullopt;
}

}  // namespace kernelpro::ptx
