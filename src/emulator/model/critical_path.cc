// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/critical_path.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "emulator/model/memory_access.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/liveness.h"
#include "emulator/ptx/module.h"

namespace kernelpro::model {
namespace {

/// Cycles between a taken branch and the first instruction at its target.
constexpr double kBranchRefill = 8;

bool EndsInBranch(const ptx::Function& kernel, const Segment& segment) {
  const ptx::Instruction& last = kernel.body[segment.end - 1];
  return !last.parts.empty() && (last.parts.front() == "bra" || last.parts.front() == "brx");
}

bool LoopsToItself(const ptx::Function& kernel, const Segment& segment) {
  const ptx::Instruction& last = kernel.body[segment.end - 1];
  return EndsInBranch(kernel, segment) &&
         std::ranges::any_of(last.operands, [&](const ptx::Operand& operand) {
           return operand.kind == ptx::Operand::Kind::kLabel && operand.target == segment.first;
         });
}

/// Follows one pass over the segment.
class Schedule {
 public:
  void Add(std::uint32_t instruction, const ptx::RegisterAccess& use,
           const InstructionTiming& timing) {
    slots_ += timing.slots;
    double start = earliest_;
    for (const std::uint32_t reg : use.reads) {
      if (!written_.contains(reg)) {
        read_first_.insert(reg);
      }
      const auto found = ready_.find(reg);
      start = std::max(start, found == ready_.end() ? 0 : found->second);
    }
    if (timing.commits_copies) {
      Commit(instruction, start);
    }
    if (timing.copies_left) {
      start = Wait(instruction, start, timing);
    }
    start += timing.delay;
    latest_start_ = std::max(latest_start_, start);
    if (timing.copy_latency > 0) {
      const double ready = std::max(start, slots_) + timing.copy_latency;
      events_.push_back({CopyEvent::Kind::kCopy, instruction, ready});
      open_ready_ = std::max(open_ready_, ready);
    }
    for (const std::uint32_t reg : use.writes) {
      ready_[reg] = start + timing.latency;
      written_.insert(reg);
    }
  }

  [[nodiscard]] const std::vector<CopyEvent>& events() const { return events_; }

  [[nodiscard]] double cycles() const { return std::max(latest_start_, slots_); }

  /// When the last of the values that the next iteration starts from is ready.
  [[nodiscard]] double carried() const {
    double latest = 0;
    for (const std::uint32_t reg : read_first_) {
      const auto found = ready_.find(reg);
      latest = std::max(latest, found == ready_.end() ? 0 : found->second);
    }
    return latest;
  }

 private:
  void Commit(std::uint32_t instruction, double start) {
    events_.push_back({CopyEvent::Kind::kCommit, instruction, start});
    groups_.push_back(std::max(open_ready_, groups_.empty() ? 0 : groups_.back()));
    open_ready_ = 0;
  }

  /// Copies and waits keep their place among the instructions (they are volatile), and nothing
  /// behind a wait starts before it ends.
  [[nodiscard]] double Wait(std::uint32_t instruction, double start,
                            const InstructionTiming& timing) {
    const double comes = std::max(start, slots_);
    events_.push_back({CopyEvent::Kind::kWait, instruction, comes});
    const double ends = std::max(timing.copies_arrive, GroupsReady(*timing.copies_left));
    earliest_ = ends > comes ? ends : start;
    return earliest_;
  }

  /// When all groups of this segment but the `left` newest ones are there.
  [[nodiscard]] double GroupsReady(std::uint32_t left) const {
    return groups_.size() > left ? groups_[groups_.size() - 1 - left] : 0;
  }

  double slots_ = 0, latest_start_ = 0, earliest_ = 0, open_ready_ = 0;
  std::vector<double> groups_;
  std::vector<CopyEvent> events_;
  std::map<std::uint32_t, double> ready_;
  std::set<std::uint32_t> written_, read_first_;
};

}  // namespace

std::vector<Segment> CutIntoSegments(const ptx::Function& kernel) {
  std::vector<Segment> segments;
  for (const ptx::BasicBlock& block : ptx::BuildControlFlow(kernel).blocks) {
    std::uint32_t first = block.first;
    for (std::uint32_t i = block.first; i < block.end; ++i) {
      if (IsCtaBarrier(kernel.body[i]) || i + 1 == block.end) {
        segments.push_back({first, i + 1});
        first = i + 1;
      }
    }
  }
  return segments;
}

namespace {

Schedule RunSegment(const ptx::Function& kernel, const Segment& segment,
                    std::span<const InstructionTiming> timing) {
  Schedule schedule;
  for (std::uint32_t i = segment.first; i < segment.end; ++i) {
    schedule.Add(i, ptx::AccessOf(kernel.body[i]), timing[i]);
  }
  return schedule;
}

}  // namespace

std::vector<CopyEvent> CopyEvents(const ptx::Function& kernel, const Segment& segment,
                                  std::span<const InstructionTiming> timing) {
  return RunSegment(kernel, segment, timing).events();
}

double SegmentCycles(const ptx::Function& kernel, const Segment& segment,
                     std::span<const InstructionTiming> timing) {
  const Schedule schedule = RunSegment(kernel, segment, timing);
  const double refill = EndsInBranch(kernel, segment) ? kBranchRefill : 0;
  const double cycles = schedule.cycles() + refill;
  return LoopsToItself(kernel, segment) ? std::max(cycles, schedule.carried()) : cycles;
}

}  // namespace kernelpro::model
