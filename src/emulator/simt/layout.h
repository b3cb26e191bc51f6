// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "emulator/ptx/module.h"
#include "emulator/simt/code.h"

namespace kernelpro::simt {

/// True for the types whose lanes take 8 bytes in the register block.
[[nodiscard]] inline bool Is64(ptx::Type type) {
  return ptx::SizeOf(type) == 8;
}

/// Places the registers, constants and parameter arrays of one function in its register block.
class SlotTable {
 public:
  explicit SlotTable(const ptx::Function& function);

  [[nodiscard]] std::uint32_t Register(std::uint32_t index) const { return registers_[index]; }

  /// Slot of a vector with these contents; equal constants share one.
  [[nodiscard]] std::uint32_t Constant(ConstantSlot wanted);
  /// `bytes` for each lane, lane-major.
  [[nodiscard]] ParameterArray Array(std::uint32_t bytes);
  /// A slot for results that nobody wants; wide enough for any.
  [[nodiscard]] std::uint32_t Scratch();
  /// The predicate that holds the carry flag.
  [[nodiscard]] std::uint32_t Carry();
  void Finish(FunctionCode& code);

 private:
  using Key = std::tuple<ConstantSlot::Kind, bool, bool, std::uint8_t, ptx::Special, std::uint64_t>;

  std::vector<std::uint32_t> registers_;
  std::uint32_t register_bytes_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t scratch_ = kNoSlot;
  std::uint32_t carry_ = kNoSlot;
  std::map<Key, std::uint32_t> known_;
  std::vector<ConstantSlot> constants_;
};

/// Where a name points, as code of one kernel sees it.
struct Symbol {
  ptx::Space space = ptx::Space::kNone;
  std::uint64_t value = 0;  ///< device address, or offset in its space
};

using SymbolTable = std::map<std::string, Symbol, std::less<>>;

/// Offsets of the shared variables that `functions` (a kernel and what it calls) mention.
/// Dynamic (`extern`) arrays all start where the static ones end, as CUDA has it.
struct SharedLayout {
  SymbolTable symbols;
  std::uint64_t static_bytes = 0;
};

[[nodiscard]] SharedLayout LayOutShared(const ptx::Module& module,
                                        const std::vector<const ptx::Function*>& functions);

/// The kernel first, then every function with a body that it can call, in order of discovery.
[[nodiscard]] std::vector<const ptx::Function*> Reachable(const ptx::Module& module,
                                                          const ptx::Function& kernel);

}  // namespace kernelpro::simt
