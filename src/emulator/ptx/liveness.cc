// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/liveness.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/module.h"

namespace kernelpro::ptx {
namespace {

using Registers = std::vector<std::uint32_t>;

constexpr std::uint64_t kMostEntries = std::uint64_t{32} << 20U;

void Collect(const Operand& operand, Registers& into) {
  if (operand.reg != Operand::kNoRegister) {
    into.push_back(operand.reg);
  }
  for (const Operand& element : operand.elements) {
    Collect(element, into);
  }
}

bool HasDestination(const Instruction& instruction) {
  constexpr std::array<std::string_view, 8> kNever = {
      "bra", "brx", "nanosleep", "setmaxnreg", "stackrestore", "st", "red", "cp"};
  if (instruction.operands.empty() || instruction.parts.empty() ||
      instruction.operands.front().kind == Operand::Kind::kAddress) {
    return false;
  }
  const std::string& base = instruction.parts.front();
  if (base == "bar" || base == "barrier") {
    return instruction.Has("red");
  }
  if (base == "tcgen05") {
    return instruction.Has("ld");
  }
  if (base == "call") {
    // `call f, (arguments)` has no list of returns, and `call f` no list at all.
    return instruction.operands.size() > 1 &&
           instruction.operands.front().kind == Operand::Kind::kVector;
  }
  return std::ranges::find(kNever, base) == kNever.end();
}

/// The registers that the instruction surely overwrites in every lane that runs it.
bool Kills(const Instruction& instruction) {
  return instruction.guard == Operand::kNoRegister;
}

std::uint32_t WordsOf(Type type) {
  return type == Type::kPred ? 0 : std::max(1U, SizeOf(type) / 4);
}

/// By register: the blocks that read it before they write it, and the blocks that overwrite it.
struct BlockSummary {
  std::vector<Registers> exposed_in;
  std::vector<Registers> killed_in;
};

BlockSummary Summarise(const Function& function, const ControlFlow& flow,
                       const std::vector<RegisterAccess>& access) {
  const std::size_t count = function.registers.size();
  BlockSummary summary{std::vector<Registers>(count), std::vector<Registers>(count)};
  const auto add = [](Registers& blocks, std::uint32_t number) {
    if (blocks.empty() || blocks.back() != number) {
      blocks.push_back(number);
    }
  };
  for (std::uint32_t number = 0; number < flow.blocks.size(); ++number) {
    const BasicBlock& block = flow.blocks[number];
    if (!block.reachable) {
      continue;
    }
    for (std::uint32_t i = block.first; i < block.end; ++i) {
      for (const std::uint32_t reg : access[i].reads) {
        const Registers& killed = summary.killed_in[reg];
        if (killed.empty() || killed.back() != number) {
          add(summary.exposed_in[reg], number);
        }
      }
      if (Kills(function.body[i])) {
        for (const std::uint32_t reg : access[i].writes) {
          add(summary.killed_in[reg], number);
        }
      }
    }
  }
  return summary;
}

/// Walks from the blocks that need a register back to those that set it, one register at a time:
/// the work is what the result holds.
class Propagation {
 public:
  Propagation(const ControlFlow& flow, Liveness& result)
      : flow_(flow),
        result_(result),
        in_(flow.blocks.size(), Operand::kNoRegister),
        out_(in_),
        killed_(in_) {}

  /// False when the result would grow too large.
  bool Run(std::uint32_t reg, const Registers& exposed_in, const Registers& killed_in) {
    for (const std::uint32_t block : killed_in) {
      killed_[block] = reg;
    }
    Registers work;
    const auto need = [&](std::uint32_t block) {
      if (in_[block] != reg) {
        in_[block] = reg;
        result_.live_in[block].push_back(reg);
        work.push_back(block);
      }
    };
    std::ranges::for_each(exposed_in, need);
    while (!work.empty() && entries_ <= kMostEntries) {
      const std::uint32_t block = work.back();
      work.pop_back();
      ++entries_;
      for (const std::uint32_t before : flow_.blocks[block].predecessors) {
        if (out_[before] == reg || !flow_.blocks[before].reachable) {
          continue;
        }
        out_[before] = reg;
        ++entries_;
        result_.live_out[before].push_back(reg);
        if (killed_[before] != reg) {
          need(before);
        }
      }
    }
    return entries_ <= kMostEntries;
  }

 private:
  const ControlFlow& flow_;
  Liveness& result_;
  Registers in_;  ///< by block: the register that was last put into live_in; likewise below
  Registers out_;
  Registers killed_;
  std::uint64_t entries_ = 0;
};

/// The set of live values at a point, with its weight.
class Pressure {
 public:
  explicit Pressure(const Function& function)
      : function_(function), live_(function.registers.size(), false) {}

  void Add(std::uint32_t reg) { Set(reg, true); }

  void Remove(std::uint32_t reg) { Set(reg, false); }

  [[nodiscard]] bool Has(std::uint32_t reg) const { return live_[reg]; }

  void Record(Liveness& result, std::uint32_t instruction) const {
    if (words_ > result.max_live_registers ||
        (words_ == result.max_live_registers && instruction < result.peak_instruction)) {
      result.max_live_registers = words_;
      result.peak_instruction = instruction;
    }
    result.max_live_predicates = std::max(result.max_live_predicates, predicates_);
  }

 private:
  void Set(std::uint32_t reg, bool live) {
    if (live_[reg] == live) {
      return;
    }
    live_[reg] = live;
    const Type type = function_.registers[reg].type;
    const std::uint32_t words = WordsOf(type);
    const std::uint32_t predicates = type == Type::kPred ? 1 : 0;
    words_ = live ? words_ + words : words_ - words;
    predicates_ = live ? predicates_ + predicates : predicates_ - predicates;
  }

  const Function& function_;
  std::vector<bool> live_;
  std::uint32_t words_ = 0;
  std::uint32_t predicates_ = 0;
};

void MeasureBlock(const Function& function, const std::vector<RegisterAccess>& access,
                  const BasicBlock& block, Pressure& pressure, Liveness& result) {
  for (std::uint32_t i = block.end; i-- > block.first;) {
    const bool kills = Kills(function.body[i]);
    Registers ends;  // a result that nobody reads still needs a place for a moment
    for (const std::uint32_t reg : access[i].writes) {
      if (kills || !pressure.Has(reg)) {
        ends.push_back(reg);
      }
      pressure.Add(reg);
    }
    pressure.Record(result, i);
    std::ranges::for_each(ends, [&](std::uint32_t reg) { pressure.Remove(reg); });
    std::ranges::for_each(access[i].reads, [&](std::uint32_t reg) { pressure.Add(reg); });
    pressure.Record(result, i);
  }
}

}  // namespace

RegisterAccess AccessOf(const Instruction& instruction) {
  RegisterAccess access;
  if (instruction.guard != Operand::kNoRegister) {
    access.reads.push_back(instruction.guard);
  }
  const bool has_destination = HasDestination(instruction);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    const bool written = i == 0 && has_destination;
    Collect(instruction.operands[i], written ? access.writes : access.reads);
  }
  if (has_destination && instruction.parts.front() == "wgmma") {
    access.reads.insert(access.reads.end(), access.writes.begin(), access.writes.end());
  }
  return access;
}

Result<Liveness> ComputeLiveness(const Function& function, const ControlFlow& flow) {
  std::vector<RegisterAccess> access;
  access.reserve(function.body.size());
  std::ranges::transform(function.body, std::back_inserter(access), AccessOf);
  const BlockSummary summary = Summarise(function, flow, access);
  Liveness result;
  result.live_in.resize(flow.blocks.size());
  result.live_out.resize(flow.blocks.size());
  Propagation propagation(flow, result);
  for (std::uint32_t reg = 0; reg < function.registers.size(); ++reg) {
    if (!propagation.Run(reg, summary.exposed_in[reg], summary.killed_in[reg])) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: liveness of {} registers over {} blocks needs more than {} "
                      "entries; the register estimate is not available",
                      function.name, function.registers.size(), flow.blocks.size(), kMostEntries));
    }
  }
  Pressure pressure(function);
  for (std::uint32_t number = 0; number < flow.blocks.size(); ++number) {
    const BasicBlock& block = flow.blocks[number];
    if (!block.reachable) {
      continue;
    }
    std::ranges::for_each(result.live_out[number], [&](auto reg) { pressure.Add(reg); });
    MeasureBlock(function, access, block, pressure, result);
    std::ranges::for_each(result.live_in[number], [&](auto reg) { pressure.Remove(reg); });
  }
  return result;
}

}  // namespace kernelpro::ptx
