// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <vector>

#include "emulator/simt/faults.h"
#include "emulator/simt/machine.h"

/// Which lanes of a warp run next. Fragments run lowest segment first, which with the numbering of
/// control_flow.h makes them meet at post-dominators; equal places merge. Three exceptions keep
/// every lane moving, as independent thread scheduling promises: a fragment that took a back edge
/// lets those inside the loop catch up; after many back edges another fragment gets a turn; and a
/// fragment at a rendezvous waits for the lanes that the instruction names.
namespace kernelpro::simt {
namespace {

constexpr std::uint32_t kCrowdedBackEdges = 1000;
constexpr std::uint32_t kTurnSegments = 512;

bool Before(const Fragment& a, const Fragment& b) {
  if (a.frame == b.frame) {
    return a.segment < b.segment;
  }
  const Frame* fa = a.frame;
  const Frame* fb = b.frame;
  std::uint32_t sa = a.segment;
  std::uint32_t sb = b.segment;
  const bool a_deeper = fa->depth > fb->depth;
  while (fa != fb) {
    if (fa->depth >= fb->depth) {
      sa = fa->call_segment;
      fa = fa->caller;
    } else {
      sb = fb->call_segment;
      fb = fb->caller;
    }
  }
  return sa != sb ? sa < sb : a_deeper;
}

bool CanMerge(const Fragment& a, const Fragment& b) {
  return a.frame == b.frame && a.segment == b.segment && a.state != FragmentState::kAtBarrier &&
         b.state != FragmentState::kAtBarrier;
}

/// Merges everything that is where `fragments[index]` is into it.
void MergeInto(Warp& warp, std::uint32_t index) {
  for (std::uint32_t j = 0; j < warp.count; ++j) {
    Fragment& into = warp.fragments[index];
    if (j == index || !CanMerge(into, warp.fragments[j])) {
      continue;
    }
    into.mask |= warp.fragments[j].mask;
    into.state = FragmentState::kReady;
    into.deferred = false;
    const std::uint32_t last = warp.count - 1;
    Remove(warp, warp.fragments[j]);
    if (index == last) {
      index = j;
    }
    if (warp.current == last) {
      warp.current = j;
    }
    --j;
  }
}

void MergeAll(Warp& warp) {
  for (std::uint32_t i = 0; i < warp.count; ++i) {
    MergeInto(warp, i);
  }
  warp.regroup = false;
}

/// A fragment at a loop header that came round the loop while others are still in its body.
bool MustWait(const Warp& warp, const Fragment& fragment) {
  if (!fragment.deferred) {
    return false;
  }
  const std::uint32_t end = fragment.frame->code->segments[fragment.segment].loop_end;
  for (std::uint32_t i = 0; i < warp.count; ++i) {
    const Fragment& other = warp.fragments[i];
    if (other.state != FragmentState::kReady || &other == &fragment) {
      continue;
    }
    std::uint32_t segment = other.segment;
    const Frame* frame = other.frame;
    while (frame != fragment.frame && frame->caller != nullptr) {
      segment = frame->call_segment;
      frame = frame->caller;
    }
    if (frame == fragment.frame && segment > fragment.segment && segment < end) {
      return true;
    }
  }
  return false;
}

Fragment* Lowest(Warp& warp) {
  Fragment* best = nullptr;
  for (std::uint32_t i = 0; i < warp.count; ++i) {
    Fragment& fragment = warp.fragments[i];
    if (fragment.state == FragmentState::kReady && !MustWait(warp, fragment) &&
        (best == nullptr || Before(fragment, *best))) {
      best = &fragment;
    }
  }
  return best;
}

/// The ready fragment after the current one, so that turns go round.
Fragment* Next(Warp& warp) {
  for (std::uint32_t i = 1; i < warp.count; ++i) {
    Fragment& fragment = warp.fragments[(warp.current + i) % warp.count];
    if (fragment.state == FragmentState::kReady) {
      return &fragment;
    }
  }
  return nullptr;
}

Fragment* Favoured(Warp& warp) {
  if (warp.crowded_back_edges >= kCrowdedBackEdges) {
    warp.crowded_back_edges = 0;
    const Fragment* next = Next(warp);
    warp.favoured = next == nullptr ? 0 : next->mask;
    warp.favoured_left = kTurnSegments;
  }
  if (warp.favoured == 0 || warp.favoured_left == 0) {
    warp.favoured = 0;
    return nullptr;
  }
  --warp.favoured_left;
  for (std::uint32_t i = 0; i < warp.count; ++i) {
    Fragment& fragment = warp.fragments[i];
    if (fragment.state == FragmentState::kReady && (fragment.mask & warp.favoured) != 0) {
      return &fragment;
    }
  }
  warp.favoured = 0;
  return nullptr;
}

/// Lanes about to run code behind a barrier at which lanes of their own warp wait: they went round
/// it, and the barrier is one that the whole warp must execute.
bool WentRound(const Fragment& parked, const Fragment& running) {
  const FunctionCode& code = *parked.frame->code;
  const Segment& barrier = code.segments[parked.segment];
  return parked.state == FragmentState::kParked && parked.frame == running.frame &&
         barrier.member_mask == kNoSlot && running.segment > parked.segment &&
         !code.segments[running.segment].exit_only &&
         Reaches(code, parked.segment, running.segment) &&
         !Reaches(code, running.segment, parked.segment);
}

bool CheckBarriersPassed(Context& context, Warp& warp, const Fragment& running) {
  for (std::uint32_t i = 0; i < warp.count; ++i) {
    const Fragment& parked = warp.fragments[i];
    if (!WentRound(parked, running)) {
      continue;
    }
    const FunctionCode& code = *parked.frame->code;
    context.Enter(*parked.frame);
    const Decoded& at = code.code[code.segments[parked.segment].begin];
    Fault fault;
    fault.kind = FaultKind::kDivergentBarrier;
    fault.message = fmt::format(
        "waits at a barrier that {} other threads of its warp went round: every thread of the "
        "block "
        "must execute the same {}",
        std::popcount(warp.live & ~parked.mask), "__syncthreads()");
    context.machine->Report(context, at, std::countr_zero(parked.mask), std::move(fault));
    return false;
  }
  return true;
}

}  // namespace

bool Reaches(const FunctionCode& code, std::uint32_t from, std::uint32_t to) {
  std::vector<bool> seen(code.segments.size(), false);
  std::vector<std::uint32_t> todo = code.segment_successors[from];
  while (!todo.empty()) {
    const std::uint32_t at = todo.back();
    todo.pop_back();
    if (at == to) {
      return true;
    }
    if (!seen[at]) {
      seen[at] = true;
      todo.insert(todo.end(), code.segment_successors[at].begin(),
                  code.segment_successors[at].end());
    }
  }
  return false;
}

void Split(Warp& warp, Fragment& fragment, LaneMask lanes, std::uint32_t segment) {
  Fragment& other = warp.fragments[warp.count++];
  other = fragment;
  other.mask = lanes;
  other.segment = segment;
  other.deferred = false;
  fragment.mask &= ~lanes;
}

void Remove(Warp& warp, Fragment& fragment) {
  fragment = warp.fragments[warp.count - 1];
  --warp.count;
}

bool HaveMet(const Context& context, const Warp& warp, const Fragment& fragment,
             const Segment& segment) {
  LaneMask needed = warp.live;
  if (segment.member_mask != kNoSlot) {
    const Decoded& d = context.code->code[segment.begin];
    LaneMask on = fragment.mask;
    if (d.guard != kNoSlot) {
      LaneMask guard = 0;
      std::memcpy(&guard, fragment.frame->registers + d.guard, sizeof guard);
      on &= d.guard_negated ? ~guard : guard;
    }
    std::uint32_t masks[kWarpSize];
    std::memcpy(masks, fragment.frame->registers + segment.member_mask, sizeof masks);
    LaneMask named = 0;
    for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
      named |= masks[std::countr_zero(rest)];
    }
    needed &= named;
  }
  return (needed & ~fragment.mask) == 0;
}

Stop Select(Context& context, Warp& warp) {
  if (warp.count == 0) {
    return Stop::kExited;
  }
  if (warp.count > 1) {
    if (warp.regroup) {
      MergeAll(warp);
    } else {
      if (warp.current < warp.count) {
        MergeInto(warp, warp.current);
      }
      MergeInto(warp, warp.count - 1);
    }
  }
  Fragment* chosen = warp.count > 1 ? Favoured(warp) : nullptr;
  if (chosen == nullptr) {
    chosen = Lowest(warp);
  }
  if (chosen == nullptr) {
    return Stop::kBlocked;
  }
  if (warp.count > 1 && !CheckBarriersPassed(context, warp, *chosen)) {
    return Stop::kFault;
  }
  chosen->deferred = false;
  warp.current = static_cast<std::uint32_t>(chosen - warp.fragments.data());
  return Stop::kSliceOver;
}

}  // namespace kernelpro::simt
