// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/simt/isa.h"
#include "emulator/simt/machine.h"

namespace kernelpro::simt {
namespace {

/// Back edges of a warp that reads flags, without leaving the CPU to others.
constexpr std::uint64_t kSpinBackEdges = 10'000;

KP_SIMT_INLINE LaneMask GuardedLanes(const std::byte* registers, const Decoded& d, LaneMask mask) {
  LaneMask guard = 0;
  std::memcpy(&guard, registers + d.guard, sizeof guard);
  return mask & (d.guard_negated ? ~guard : guard);
}

/// The body of a segment; false on a fatal fault.
KP_SIMT_INLINE bool RunBody(Context& context, const Segment& segment, LaneMask mask) {
  const Decoded* const code = context.code->code.data();
  const Decoded* const end = code + segment.body_end;
  std::byte* const registers = context.registers;
  for (const Decoded* d = code + segment.begin; d != end; ++d) {
    LaneMask on = mask;
    if (d->guard != kNoSlot) {
      on = GuardedLanes(registers, *d, mask);
      context.counters[d->instruction].lanes_on += static_cast<std::uint64_t>(std::popcount(on));
      if (on == 0) {
        continue;
      }
    }
    if (d->kind == Kind::kAlu) {
      d->alu(registers, d->operands, on);
    } else if (!d->operation(context, *d, on)) {
      return false;
    }
  }
  return true;
}

KP_SIMT_INLINE void TakeBranch(Context& context, Warp& warp, Fragment& fragment,
                               const Segment& segment, const Decoded& d) {
  const LaneMask mask = fragment.mask;
  LaneMask taken = mask;
  if (d.guard != kNoSlot) {
    taken = GuardedLanes(context.registers, d, mask);
    context.counters[d.instruction].lanes_on += static_cast<std::uint64_t>(std::popcount(taken));
  }
  if (taken == mask) {
    fragment.segment = d.target;
  } else if (taken == 0) {
    fragment.segment = segment.next;
  } else {
    ++context.counters[d.instruction].divergent;
    Split(warp, fragment, mask & ~taken, segment.next);
    fragment.segment = d.target;
  }
}

bool OverBudget(Context& context, const Decoded& at) {
  Machine& machine = *context.machine;
  if (machine.executed < machine.config->instruction_budget) {
    return false;
  }
  Fault fault;
  fault.kind = FaultKind::kBudget;
  fault.message = fmt::format(
      "was running when the launch had executed {} warp instructions, its "
      "budget: an endless loop, or too much work for emulation",
      machine.executed);
  const Warp& warp = *context.warp;
  machine.Report(context, at, std::countr_zero(warp.fragments[warp.current].mask),
                 std::move(fault));
  return true;
}

/// Bookkeeping of a back edge; true when the warp seems to wait for another one.
KP_SIMT_INLINE bool CountBackEdge(Warp& warp, Fragment& fragment) {
  ++warp.back_edges;
  if (warp.count > 1) {
    ++warp.crowded_back_edges;
    fragment.deferred = true;
  }
  return warp.yields || (warp.polled && warp.back_edges >= kSpinBackEdges);
}

KP_SIMT_INLINE Stop RunWarpBody(Machine& machine, Warp& warp, std::int64_t slice) {
  Context context{.machine = &machine, .cta = warp.cta, .warp = &warp};
  warp.back_edges = 0;
  warp.polled = false;
  warp.yields = false;
  const std::uint64_t left = machine.config->instruction_budget - machine.executed;
  slice = std::min(slice, static_cast<std::int64_t>(std::min<std::uint64_t>(left, 1ULL << 62U)));
  if (const Stop stop = Select(context, warp); stop != Stop::kSliceOver) {
    return stop;
  }
  for (;;) {
    Fragment& fragment = warp.fragments[warp.current];
    context.Enter(*fragment.frame);
    const Segment& segment = context.code->segments[fragment.segment];
    const std::uint32_t from = fragment.segment;
    const Decoded* const last = &context.code->code[segment.body_end];
    bool moved_on = true;  // the current fragment is still there, and ready
    if (segment.rendezvous && fragment.mask != warp.live &&
        !HaveMet(context, warp, fragment, segment)) {
      fragment.state = FragmentState::kParked;
      moved_on = false;
    } else {
      const LaneMask mask = fragment.mask;
      context.active = mask;
      SegmentCount& count = fragment.frame->state->segments[from];
      ++count.warps;
      count.lanes += static_cast<std::uint64_t>(std::popcount(mask));
      const std::uint32_t length = segment.end - segment.begin;
      machine.executed += length;
      slice -= length;
      if (!RunBody(context, segment, mask)) {
        return Stop::kFault;
      }
      const bool plain = segment.body_end == segment.end || last->kind == Kind::kBranch;
      if (!plain) {
        if (!Terminate(context, warp, segment, *last)) {
          return Stop::kFault;
        }
        moved_on = false;
      } else {
        fragment.previous = from;
        if (segment.body_end == segment.end) {
          fragment.segment = segment.next;
        } else {
          TakeBranch(context, warp, fragment, segment, *last);
        }
        if (fragment.segment <= from && CountBackEdge(warp, fragment)) {
          return OverBudget(context, *last) ? Stop::kFault : Stop::kSpinning;
        }
      }
    }
    if (warp.count != 1 || !moved_on) {
      if (const Stop stop = Select(context, warp); stop != Stop::kSliceOver) {
        return stop;
      }
    }
    if (slice <= 0) {
      return OverBudget(context, *last) ? Stop::kFault : Stop::kSliceOver;
    }
  }
}

#if KP_SIMT_HAS_V3
KP_SIMT_V3 Stop RunWarpV3(Machine& machine, Warp& warp, std::int64_t slice) {
  return RunWarpBody(machine, warp, slice);
}
#endif

Stop RunWarpBase(Machine& machine, Warp& warp, std::int64_t slice) {
  return RunWarpBody(machine, warp, slice);
}

}  // namespace

Stop RunWarp(Machine& machine, Warp& warp, std::int64_t slice) {
#if KP_SIMT_HAS_V3
  if (HasV3()) {
    return RunWarpV3(machine, warp, slice);
  }
#endif
  return RunWarpBase(machine, warp, slice);
}

}  // namespace kernelpro::simt
