// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "emulator/simt/faults.h"
#include "emulator/simt/machine.h"
#include "emulator/simt/race.h"

namespace kernelpro::simt {
namespace {

/// Every thread left the kernel by a way that leads round `at`: the barrier was completed by exits.
void ReportExitsRound(Machine& machine, Cta& cta, const Decoded& at, std::uint32_t segment) {
  const FunctionCode& code = *machine.kernel->functions[0];
  for (Warp& warp : cta.warps) {
    const bool all_left = warp.live == 0;
    if (!all_left || warp.last_segment <= segment || !Reaches(code, segment, warp.last_segment) ||
        Reaches(code, warp.last_segment, segment)) {
      continue;
    }
    Context context{.machine = &machine, .cta = &cta, .warp = &warp};
    context.Enter(warp.root);
    Fault fault;
    fault.kind = FaultKind::kDivergentBarrier;
    fault.fatal = false;
    fault.message =
        "ended without the barrier at which other threads of its block wait: every thread of the "
        "block must execute the same __syncthreads()";
    machine.Report(context, at, std::countr_zero(warp.lanes), std::move(fault));
    return;
  }
}

void ReportMixed(Machine& machine, Cta& cta, const Decoded& first, const Fragment& fragment,
                 Warp& warp) {
  Context context{.machine = &machine, .cta = &cta, .warp = &warp};
  context.Enter(*fragment.frame);
  Fault fault;
  fault.kind = FaultKind::kDivergentBarrier;
  fault.fatal = false;
  fault.message = fmt::format(
      "met threads that wait at another __syncthreads(){}: every thread of the block must execute "
      "the same one",
      At(machine.program->module(), LocationOf(*fragment.frame->code, first)));
  machine.Report(context, *fragment.waiting, std::countr_zero(fragment.mask), std::move(fault));
}

void WriteReduction(const Barrier& barrier, const BarrierOp& op, const Fragment& fragment) {
  std::byte* const slot = fragment.frame->registers + op.destination;
  if (op.reduce == BarrierOp::Reduce::kPopc) {
    for (LaneMask rest = fragment.mask; rest != 0; rest &= rest - 1) {
      std::memcpy(slot + std::countr_zero(rest) * 4, &barrier.popc, sizeof barrier.popc);
    }
    return;
  }
  const bool value = op.reduce == BarrierOp::Reduce::kAnd ? barrier.all : barrier.any;
  LaneMask old = 0;
  std::memcpy(&old, slot, sizeof old);
  old = value ? old | fragment.mask : old & ~fragment.mask;
  std::memcpy(slot, &old, sizeof old);
}

void Release(Machine& machine, Cta& cta, std::uint32_t id) {
  Barrier& barrier = cta.barriers[id];
  if (cta.race != nullptr) {
    cta.race->Release(id);
  }
  for (Warp& warp : cta.warps) {
    for (std::uint32_t i = 0; i < warp.count; ++i) {
      Fragment& fragment = warp.fragments[i];
      if (fragment.state != FragmentState::kAtBarrier || fragment.barrier != id) {
        continue;
      }
      const BarrierOp& op = fragment.frame->code->barriers[fragment.waiting->extra];
      if (op.reduce != BarrierOp::Reduce::kNone) {
        WriteReduction(barrier, op, fragment);
      }
      if (barrier.mixed && barrier.expected == 0 && op.aligned &&
          fragment.waiting != barrier.first) {
        ReportMixed(machine, cta, *barrier.first, fragment, warp);
      }
      fragment.state = FragmentState::kReady;
      fragment.waiting = nullptr;
      warp.regroup = true;
    }
  }
  barrier = Barrier{};
  machine.last_progress = machine.executed;
}

bool IsComplete(const Cta& cta, const Barrier& barrier) {
  const std::uint32_t expected = barrier.expected == 0 ? cta.live_threads : barrier.expected;
  return barrier.arrived != 0 && barrier.arrived >= expected;
}

std::uint32_t Lane(const std::byte* slot, int lane) {
  std::uint32_t value = 0;
  std::memcpy(&value, slot + lane * 4, sizeof value);
  return value;
}

void Reduce(Barrier& barrier, const BarrierOp& op, const std::byte* registers, LaneMask mask) {
  LaneMask source = 0;
  std::memcpy(&source, registers + op.source, sizeof source);
  source = (op.source_negated ? ~source : source) & mask;
  barrier.popc += static_cast<std::uint32_t>(std::popcount(source));
  barrier.all = barrier.all && source == mask;
  barrier.any = barrier.any || source != 0;
}

}  // namespace

bool ArriveAtBarrier(Context& context, Fragment& fragment, const Segment& segment,
                     const Decoded& d) {
  Machine& machine = *context.machine;
  Cta& cta = *context.cta;
  const BarrierOp& op = context.code->barriers[d.extra];
  const int lane = std::countr_zero(fragment.mask);
  const std::uint32_t id = Lane(context.registers + op.id, lane);
  std::uint32_t expected = op.count == kNoSlot ? 0 : Lane(context.registers + op.count, lane);
  Barrier* const barrier = id < cta.barriers.size() ? &cta.barriers[id] : nullptr;
  if (barrier == nullptr || (op.count != kNoSlot && (expected == 0 || expected % kWarpSize != 0)) ||
      (barrier->arrived != 0 && barrier->expected != expected)) {
    Fault fault;
    fault.kind = FaultKind::kDivergentBarrier;
    fault.message = fmt::format(
        "executed barrier {} for {} threads: ids are 0 to 15, counts are multiples of 32, and all "
        "arrivals must name the same count",
        id, expected);
    machine.Report(context, d, lane, std::move(fault));
    return false;
  }
  ++machine.report.barriers;
  barrier->expected = expected;
  // A counted barrier counts whole warps, whatever lanes of them exist.
  barrier->arrived += expected != 0 && op.aligned
                          ? kWarpSize
                          : static_cast<std::uint32_t>(std::popcount(fragment.mask));
  if (barrier->first == nullptr) {
    barrier->first = &d;
  }
  barrier->mixed = barrier->mixed || barrier->first != &d;
  if (op.reduce != BarrierOp::Reduce::kNone) {
    Reduce(*barrier, op, context.registers, fragment.mask);
  }
  if (cta.race != nullptr) {
    cta.race->Arrive(id, context.warp->index, !op.arrive);
  }
  fragment.segment = segment.next;
  if (!op.arrive) {
    fragment.state = FragmentState::kAtBarrier;
    fragment.barrier = static_cast<std::uint8_t>(id);
    fragment.waiting = &d;
  }
  return CompleteBarriers(machine, cta);
}

bool CompleteBarriers(Machine& machine, Cta& cta) {
  for (std::uint32_t id = 0; id < cta.barriers.size(); ++id) {
    const Barrier& barrier = cta.barriers[id];
    if (!IsComplete(cta, barrier)) {
      continue;
    }
    const std::uint64_t threads = machine.config->block.Count();
    if (barrier.expected == 0 && cta.live_threads < threads) {
      const FunctionCode& code = *machine.kernel->functions[0];
      for (std::uint32_t s = 0; s < code.segments.size(); ++s) {
        const Segment& segment = code.segments[s];
        if (segment.end > segment.body_end && &code.code[segment.body_end] == barrier.first) {
          ReportExitsRound(machine, cta, *barrier.first, s);
        }
      }
    }
    Release(machine, cta, id);
  }
  return true;
}

}  // namespace kernelpro::simt
