// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/shared_merge.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/model/critical_path.h"
#include "emulator/model/memory_access.h"
#include "emulator/ptx/liveness.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/report.h"

namespace kernelpro::model {
namespace {

constexpr std::int64_t kVectorBytes = 16;
constexpr std::uint32_t kWordBytes = 4;
constexpr std::uint32_t kAlignmentMask = 15;

using Base = std::pair<std::uint32_t, std::string>;   ///< register, or the name of a variable
using Group = std::map<std::int64_t, std::uint32_t>;  ///< byte offset -> instruction

bool IsScalarSharedLoad(const ptx::Instruction& op) {
  const MemoryAccess access = MemoryAccessOf(op);
  return access.kind == MemoryKind::kLoad && access.space == ptx::Space::kShared &&
         access.bytes_per_lane == kWordBytes && op.parts.front() == "ld" &&
         op.guard == ptx::Operand::kNoRegister && op.operands.size() == 2 && !op.Has("volatile") &&
         op.operands[0].kind == ptx::Operand::Kind::kRegister &&
         op.operands[1].kind == ptx::Operand::Kind::kAddress;
}

bool WritesSharedMemory(const ptx::Instruction& op) {
  const MemoryAccess access = MemoryAccessOf(op);
  const bool may_be_shared =
      access.space == ptx::Space::kShared || access.space == ptx::Space::kGeneric;
  return access.kind == MemoryKind::kAsyncCopy ||
         (may_be_shared &&
          (access.kind == MemoryKind::kStore || access.kind == MemoryKind::kAtomic)) ||
         (!op.parts.empty() && op.parts.front() == "call");
}

class Merger {
 public:
  explicit Merger(std::span<const simt::InstructionCounters> counters) : counters_(counters) {
    for (const simt::InstructionCounters& c : counters) {
      out_.push_back({1, static_cast<double>(c.wavefronts), false});
    }
  }

  void Visit(const ptx::Instruction& op, std::uint32_t index) {
    if (WritesSharedMemory(op)) {
      groups_.clear();
    }
    if (IsScalarSharedLoad(op)) {
      const ptx::Operand& address = op.operands[1];
      Group& group = groups_[{address.reg, address.text}];
      group[address.offset] = index;
      TakeVector(group, address.offset);
    }
    for (const std::uint32_t reg : ptx::AccessOf(op).writes) {
      std::erase_if(groups_, [&](const auto& entry) { return entry.first.first == reg; });
    }
  }

  void Forget() { groups_.clear(); }

  [[nodiscard]] std::vector<SharedMerge>& result() { return out_; }

 private:
  /// Merges the aligned group of four words around `offset` when it is complete.
  void TakeVector(Group& group, std::int64_t offset) {
    const std::int64_t start = offset - ((offset % kVectorBytes) + kVectorBytes) % kVectorBytes;
    std::array<std::uint32_t, 4> members{};
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto found = group.find(start + static_cast<std::int64_t>(i * kWordBytes));
      if (found == group.end()) {
        return;
      }
      members[i] = found->second;
    }
    if ((counters_[members[0]].address_bits & kAlignmentMask) != 0) {
      return;
    }
    double wavefronts = 0;
    for (const std::uint32_t index : members) {
      wavefronts += static_cast<double>(counters_[index].wavefronts);
    }
    const double least = 2 * static_cast<double>(counters_[members[0]].requests);
    const double merged = std::max(least, wavefronts / 4);
    for (const std::uint32_t index : members) {
      out_[index] = {0.25, merged / 4, true};
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      group.erase(start + static_cast<std::int64_t>(i * kWordBytes));
    }
  }

  std::span<const simt::InstructionCounters> counters_;
  std::map<Base, Group> groups_;
  std::vector<SharedMerge> out_;
};

}  // namespace

std::vector<SharedMerge> MergeSharedLoads(const ptx::Function& kernel,
                                          std::span<const Segment> segments,
                                          std::span<const simt::InstructionCounters> counters) {
  Merger merger(counters);
  for (const Segment& segment : segments) {
    merger.Forget();
    for (std::uint32_t i = segment.first; i < segment.end; ++i) {
      merger.Visit(kernel.body[i], i);
    }
  }
  for (std::uint32_t i = 0; i < counters.size(); ++i) {
    const MemoryAccess access = MemoryAccessOf(kernel.body[i]);
    const bool wide = access.space == ptx::Space::kShared &&
                      access.bytes_per_lane == kVectorBytes && access.kind == MemoryKind::kLoad;
    if (wide) {
      SharedMerge& entry = merger.result()[i];
      entry.wavefronts = std::max(entry.wavefronts, 2 * static_cast<double>(counters[i].requests));
    }
  }
  return std::move(merger.result());
}

}  // namespace kernelpro::model
