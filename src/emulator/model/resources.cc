// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/model/dataflow.h"
#include "emulator/model/model.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/module.h"

namespace kernelpro::model {
namespace {

using LiveSet = std::vector<bool>;  ///< by register

/// 32-bit machine registers of one PTX register; predicates have their own file.
std::uint32_t Words(ptx::Type type) {
  if (type == ptx::Type::kPred) {
    return 0;
  }
  constexpr std::uint32_t kWordBytes = 4;
  return std::max(1U, (ptx::SizeOf(type) + kWordBytes - 1) / kWordBytes);
}

/// Which registers are alive where, by backward data flow over the basic blocks.
class Liveness {
 public:
  explicit Liveness(const ptx::Function& kernel)
      : kernel_(kernel), flow_(ptx::BuildControlFlow(kernel)) {
    for (const ptx::Instruction& op : kernel.body) {
      uses_.push_back(RegistersOf(op));
    }
    for (const ptx::Register& reg : kernel.registers) {
      words_.push_back(Words(reg.type));
    }
    live_in_.assign(flow_.blocks.size(), LiveSet(kernel.registers.size(), false));
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t block = flow_.blocks.size(); block-- > 0;) {
        LiveSet in = LiveOut(block);
        WalkBack(block, in);
        changed = changed || in != live_in_[block];
        live_in_[block] = std::move(in);
      }
    }
  }

  [[nodiscard]] std::uint32_t MaxWords() {
    std::uint32_t most = 0;
    for (std::size_t block = 0; block < flow_.blocks.size(); ++block) {
      LiveSet live = LiveOut(block);
      most = std::max(most, WalkBack(block, live));
    }
    return most;
  }

 private:
  [[nodiscard]] LiveSet LiveOut(std::size_t block) const {
    LiveSet out(kernel_.registers.size(), false);
    for (const std::uint32_t next : flow_.blocks[block].successors) {
      for (std::size_t reg = 0; reg < out.size(); ++reg) {
        out[reg] = out[reg] || live_in_[next][reg];
      }
    }
    return out;
  }

  [[nodiscard]] std::uint32_t Sum(const LiveSet& live) const {
    std::uint32_t sum = 0;
    for (std::size_t reg = 0; reg < live.size(); ++reg) {
      sum += live[reg] ? words_[reg] : 0;
    }
    return sum;
  }

  /// From the end of the block to its start; returns the most words alive on the way.
  std::uint32_t WalkBack(std::size_t block, LiveSet& live) const {
    std::uint32_t words = Sum(live);
    std::uint32_t most = words;
    const auto set = [&](std::uint32_t reg, bool alive) {
      if (live[reg] != alive) {
        words = alive ? words + words_[reg] : words - words_[reg];
        live[reg] = alive;
      }
    };
    for (std::uint32_t i = flow_.blocks[block].end; i-- > flow_.blocks[block].first;) {
      // A guarded write may leave the old value in place, so it ends no life.
      if (kernel_.body[i].guard == ptx::Operand::kNoRegister) {
        for (const std::uint32_t reg : uses_[i].writes) {
          set(reg, false);
        }
      }
      for (const std::uint32_t reg : uses_[i].reads) {
        set(reg, true);
      }
      most = std::max(most, words);
    }
    return most;
  }

  const ptx::Function& kernel_;
  ptx::ControlFlow flow_;
  std::vector<RegisterUse> uses_;
  std::vector<std::uint32_t> words_;
  std::vector<LiveSet> live_in_;
};

std::uint64_t SumBytes(const ptx::Function& kernel, ptx::Space space) {
  std::uint64_t bytes = 0;
  for (const ptx::Variable& variable : kernel.variables) {
    if (variable.space == space && !variable.is_extern) {
      const std::uint64_t unit = std::max(1U, variable.alignment);
      bytes = (bytes + unit - 1) / unit * unit + variable.bytes;
    }
  }
  return bytes;
}

}  // namespace

KernelResources EstimateResources(const ptx::Function& kernel) {
  constexpr std::uint32_t kOverhead = 8;
  constexpr std::uint32_t kMost = 255;
  KernelResources out;
  out.registers_per_thread = std::min(kMost, Liveness(kernel).MaxWords() + kOverhead);
  out.static_shared_bytes = SumBytes(kernel, ptx::Space::kShared);
  out.local_bytes_per_thread = SumBytes(kernel, ptx::Space::kLocal);
  return out;
}

}  // namespace kernelpro::model
