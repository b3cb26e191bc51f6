// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/code.h"
#include "emulator/simt/layout.h"

namespace kernelpro::simt {

/// What the decoders of one kernel's functions share.
struct DecodeScope {
  const ptx::Module* module = nullptr;
  SymbolTable symbols;  ///< module variables and this kernel's shared variables
  std::vector<const ptx::Function*> functions;
  std::vector<const FunctionCode*> codes;  ///< by the same index
};

/// Turns one function's body into FunctionCode. Construct the decoders of all functions of a kernel
/// before running any: callers need the parameter arrays of callees.
class Decoder {
 public:
  Decoder(const DecodeScope& scope, FunctionCode& out);
  void Run();

 private:
  using Instruction = ptx::Instruction;
  using Operand = ptx::Operand;

  // decode.cc
  void DecodeOne(std::uint32_t index);
  [[nodiscard]] bool Dispatch(const Instruction& in, Decoded& d);
  [[nodiscard]] bool Alu(const Instruction& in, Decoded& d);
  void Unsupported(const Instruction& in, Decoded& d);

  // decode_operands.cc
  [[nodiscard]] std::uint32_t Source(const Operand& operand, ptx::Type type);
  [[nodiscard]] std::uint32_t Destination(const Operand& operand, ptx::Type type);
  [[nodiscard]] std::uint32_t SymbolSlot(const Operand& operand, bool is_64);
  [[nodiscard]] std::uint32_t Bits(std::uint64_t bits, bool is_64);
  [[nodiscard]] std::optional<Symbol> FindSymbol(std::string_view name) const;
  [[nodiscard]] bool IsRegister(const Operand& operand) const;
  [[nodiscard]] ptx::Type RegisterType(const Operand& operand) const;
  [[nodiscard]] bool Fail(std::string why);

  // decode_move.cc
  [[nodiscard]] bool Mov(const Instruction& in, Decoded& d);
  [[nodiscard]] bool Pack(const Instruction& in, Decoded& d);
  [[nodiscard]] bool Cvta(const Instruction& in, Decoded& d);
  [[nodiscard]] bool IsSpace(const Instruction& in, Decoded& d);

  // decode_async.cc
  [[nodiscard]] bool AsyncCopy(const Instruction& in, Decoded& d);
  [[nodiscard]] bool MBarrier(const Instruction& in, Decoded& d);
  [[nodiscard]] bool CopyArrival(const Instruction& in, Decoded& d);
  [[nodiscard]] bool CopyOperands(const Instruction& in, Decoded& d);

  // decode_memory.cc
  [[nodiscard]] bool LoadStore(const Instruction& in, Decoded& d);
  [[nodiscard]] bool Parameter(const Instruction& in, Decoded& d, Access access);
  [[nodiscard]] bool LaunchParameter(const Instruction& in, Decoded& d, const Access& access);
  [[nodiscard]] bool ReadModifiers(const Instruction& in, Access& access);
  [[nodiscard]] bool Address(const Operand& operand, Access& access);
  [[nodiscard]] bool Values(const Operand& operand, Access& access, bool destination);
  [[nodiscard]] bool Atomic(const Instruction& in, Decoded& d);

  // decode_control.cc
  [[nodiscard]] bool Branch(const Instruction& in, Decoded& d);
  [[nodiscard]] bool BranchIndexed(const Instruction& in, Decoded& d);
  [[nodiscard]] bool Leave(const Instruction& in, Decoded& d);
  [[nodiscard]] bool Call(const Instruction& in, Decoded& d);
  [[nodiscard]] bool CallCopies(const Instruction& in, const FunctionCode& callee, CallOp& call);
  [[nodiscard]] bool Barrier(const Instruction& in, Decoded& d);

  // decode_warp.cc
  [[nodiscard]] bool WarpOperation(const Instruction& in, Decoded& d);
  [[nodiscard]] bool Shuffle(const Instruction& in, Decoded& d);
  [[nodiscard]] bool Vote(const Instruction& in, Decoded& d);
  [[nodiscard]] bool Match(const Instruction& in, Decoded& d);
  [[nodiscard]] bool Reduce(const Instruction& in, Decoded& d);

  // decode_segments.cc
  void BuildSegments();
  void AddBlock(std::uint32_t block);
  void CloseSegment(std::uint32_t block, bool ends_block);
  void ResolveTargets();
  [[nodiscard]] std::uint32_t SegmentAt(std::uint32_t instruction) const;

  const DecodeScope& scope_;
  FunctionCode& out_;
  const ptx::Function& function_;
  SlotTable slots_;
  SymbolTable locals_;
  ptx::ControlFlow flow_;
  std::vector<Decoded> decoded_;     ///< by body index
  std::vector<bool> omitted_;        ///< pragmas and the like
  std::vector<bool> needs_meeting_;  ///< rendezvous instructions
  std::vector<std::uint32_t> first_segment_of_block_;
  std::string why_;  ///< of the instruction being decoded
};

}  // namespace kernelpro::simt
