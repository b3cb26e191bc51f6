// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/simt/faults.h"
#include "emulator/simt/machine.h"

namespace kernelpro::simt {
namespace {

/// The lanes of `fragment` leave the kernel.
bool Exit(Context& context, Warp& warp, Fragment& fragment, const Segment& segment) {
  const LaneMask lanes = fragment.mask;
  const std::uint32_t left_from = segment.exit_only ? fragment.previous : fragment.segment;
  if (fragment.frame->depth == 0) {
    warp.last_segment = std::max(warp.last_segment, left_from);
  }
  for (Frame* frame = fragment.frame; frame != nullptr; frame = frame->caller) {
    frame->live &= ~lanes;
  }
  warp.live &= ~lanes;
  context.cta->live_threads -= static_cast<std::uint32_t>(std::popcount(lanes));
  Remove(warp, fragment);
  for (std::uint32_t i = 0; i < warp.count; ++i) {
    if (warp.fragments[i].state == FragmentState::kParked) {
      warp.fragments[i].state = FragmentState::kReady;
    }
  }
  warp.regroup = true;
  context.machine->last_progress = context.machine->executed;
  return CompleteBarriers(*context.machine, *context.cta);
}

bool Trap(Context& context, const Fragment& fragment, const Decoded& d) {
  Fault fault;
  fault.kind = FaultKind::kTrap;
  fault.message = "executed a trap instruction";
  context.machine->Report(context, d, std::countr_zero(fragment.mask), std::move(fault));
  return false;
}

/// brx.idx: one fragment for each target that is taken.
bool BranchIndexed(Context& context, Warp& warp, Fragment& fragment, const Decoded& d) {
  const std::vector<std::uint32_t>& table = context.code->branch_tables[d.extra];
  std::uint32_t index[kWarpSize];
  std::memcpy(index, context.registers + d.operands.src[0], sizeof index);
  LaneMask rest = fragment.mask;
  bool first = true;
  while (rest != 0) {
    const int lane = std::countr_zero(rest);
    if (index[lane] >= table.size()) {
      Fault fault;
      fault.kind = FaultKind::kTrap;
      fault.message = fmt::format("branched through a table of {} targets with index {}",
                                  table.size(), index[lane]);
      context.machine->Report(context, d, lane, std::move(fault));
      return false;
    }
    const std::uint32_t target = table[index[lane]];
    LaneMask same = 0;
    for (LaneMask r = rest; r != 0; r &= r - 1) {
      const int other = std::countr_zero(r);
      if (index[other] < table.size() && table[index[other]] == target) {
        same |= 1U << static_cast<unsigned>(other);
      }
    }
    rest &= ~same;
    if (rest == 0) {
      fragment.segment = target;
    } else {
      if (first) {
        ++context.counters[d.instruction].divergent;
        first = false;
      }
      Split(warp, fragment, same, target);
      warp.regroup = true;
    }
  }
  return true;
}

}  // namespace

bool Terminate(Context& context, Warp& warp, const Segment& segment, const Decoded& d) {
  Fragment& fragment = warp.fragments[warp.current];
  if (d.guard != kNoSlot) {
    LaneMask guard = 0;
    std::memcpy(&guard, context.registers + d.guard, sizeof guard);
    const LaneMask on = fragment.mask & (d.guard_negated ? ~guard : guard);
    context.counters[d.instruction].lanes_on += static_cast<std::uint64_t>(std::popcount(on));
    if (on != fragment.mask) {
      const LaneMask off = fragment.mask & ~on;
      if (on == 0) {
        fragment.previous = fragment.segment;
        fragment.segment = segment.next;
        return true;
      }
      fragment.previous = fragment.segment;
      Split(warp, fragment, off, segment.next);
    }
  }
  switch (d.kind) {
    case Kind::kExit:
      return Exit(context, warp, fragment, segment);
    case Kind::kReturn:
      ReturnFromCall(warp, fragment);
      return true;
    case Kind::kTrap:
      return Trap(context, fragment, d);
    case Kind::kBranchIndexed:
      fragment.previous = fragment.segment;
      return BranchIndexed(context, warp, fragment, d);
    case Kind::kCall:
      fragment.previous = fragment.segment;
      return EnterCall(context, fragment, segment, d);
    case Kind::kBarrier:
      fragment.previous = fragment.segment;
      return ArriveAtBarrier(context, fragment, segment, d);
    default:
      return false;
  }
}

}  // namespace kernelpro::simt
