// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "emulator/simt/faults.h"
#include "emulator/simt/operations.h"

namespace kernelpro::simt {
namespace {

template <class T>
T* Lanes(std::byte* registers, std::uint32_t slot) {
  return reinterpret_cast<T*>(registers + slot);  // NOLINT: slots are aligned lane vectors
}

template <class T>
void Move(std::byte* registers, std::uint32_t to, std::uint32_t from, LaneMask mask) {
  T* const d = Lanes<T>(registers, to);
  const T* const s = Lanes<T>(registers, from);
  if (mask == kAllLanes) {
    std::memmove(d, s, sizeof(T) * kWarpSize);
    return;
  }
  for (unsigned i = 0; i < kWarpSize; ++i) {
    d[i] = (mask >> i & 1U) != 0 ? s[i] : d[i];
  }
}

void SetPredicate(std::byte* registers, std::uint32_t slot, LaneMask value, LaneMask mask) {
  LaneMask* const p = Lanes<LaneMask>(registers, slot);
  *p = (*p & ~mask) | (value & mask);
}

}  // namespace

void Move32(std::byte* registers, const AluOperands& operands, LaneMask mask) {
  Move<std::uint32_t>(registers, operands.dst, operands.src[0], mask);
}

void Move64(std::byte* registers, const AluOperands& operands, LaneMask mask) {
  Move<std::uint64_t>(registers, operands.dst, operands.src[0], mask);
}

void Add64(std::byte* registers, const AluOperands& operands, LaneMask mask) {
  std::uint64_t* const d = Lanes<std::uint64_t>(registers, operands.dst);
  const std::uint64_t* const a = Lanes<std::uint64_t>(registers, operands.src[0]);
  const std::uint64_t* const b = Lanes<std::uint64_t>(registers, operands.src[1]);
  for (unsigned i = 0; i < kWarpSize; ++i) {
    d[i] = (mask >> i & 1U) != 0 ? a[i] + b[i] : d[i];
  }
}

bool RunUnsupported(Context& context, const Decoded& d, LaneMask on) {
  Fault fault;
  fault.kind = FaultKind::kUnsupported;
  fault.message = fmt::format("reached unsupported: {}", context.code->notes[d.extra]);
  context.machine->Report(context, d, std::countr_zero(on), std::move(fault));
  return false;
}

bool RunNothing(Context& /*context*/, const Decoded& /*d*/, LaneMask /*on*/) {
  return true;
}

namespace {

/// Time is modelled as warp instructions executed so far by the launch: it advances, and the same
/// launch always reads the same values.
std::uint64_t ReadClock(const Context& context, ptx::Special special) {
  const std::uint64_t now = context.machine->executed;
  switch (special) {
    case ptx::Special::kClockHi:
    case ptx::Special::kGlobalTimerHi:
      return now >> 32U;
    default:
      return now;
  }
}

}  // namespace

bool RunClock32(Context& context, const Decoded& d, LaneMask on) {
  const auto now =
      static_cast<std::uint32_t>(ReadClock(context, static_cast<ptx::Special>(d.extra)));
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    Lanes<std::uint32_t>(context.registers, d.operands.dst)[std::countr_zero(rest)] = now;
  }
  context.warp->polled = true;
  return true;
}

bool RunClock64(Context& context, const Decoded& d, LaneMask on) {
  const std::uint64_t now = ReadClock(context, static_cast<ptx::Special>(d.extra));
  for (LaneMask rest = on; rest != 0; rest &= rest - 1) {
    Lanes<std::uint64_t>(context.registers, d.operands.dst)[std::countr_zero(rest)] = now;
  }
  context.warp->polled = true;
  return true;
}

bool RunIsWindow(Context& context, const Decoded& d, LaneMask on) {
  const std::uint64_t* const a = Lanes<std::uint64_t>(context.registers, d.operands.src[0]);
  const std::uint64_t first = Lanes<std::uint64_t>(context.registers, d.operands.src[1])[0];
  LaneMask inside = 0;
  for (unsigned i = 0; i < kWarpSize; ++i) {
    inside |= a[i] - first < kWindowBytes ? 1U << i : 0U;
  }
  SetPredicate(context.registers, d.operands.dst, inside, on);
  return true;
}

bool RunIsGlobal(Context& context, const Decoded& d, LaneMask on) {
  const std::uint64_t* const a = Lanes<std::uint64_t>(context.registers, d.operands.src[0]);
  LaneMask inside = 0;
  for (unsigned i = 0; i < kWarpSize; ++i) {
    const bool window = a[i] - kSharedWindow < kWindowBytes || a[i] - kLocalWindow < kWindowBytes ||
                        a[i] - kParamWindow < kWindowBytes;
    inside |= window ? 0U : 1U << i;
  }
  SetPredicate(context.registers, d.operands.dst, inside, on);
  return true;
}

}  // namespace kernelpro::simt
