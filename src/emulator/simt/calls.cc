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

constexpr std::uint32_t kDeepestCall = 1024;

void CopyArrays(const std::vector<CallOp::Copy>& copies, const std::byte* from, std::byte* to,
                LaneMask lanes) {
  for (const CallOp::Copy& copy : copies) {
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
      std::memcpy(to + copy.to + std::size_t{lane} * copy.to_stride,
                  from + copy.from + std::size_t{lane} * copy.from_stride, copy.bytes);
    }
  }
}

Frame& FreeFrame(Warp& warp, const FunctionCode& code, std::uint64_t local_base) {
  Frame* found = nullptr;
  for (const auto& frame : warp.frames) {
    if (frame->live == 0 && frame->code == &code) {
      found = frame.get();
      break;
    }
  }
  if (found == nullptr) {
    warp.frames.push_back(std::make_unique<Frame>());
    found = warp.frames.back().get();
    found->code = &code;
    found->storage = std::make_unique<AlignedBlock>();
    found->registers = found->storage->Reserve(code.block_bytes);
    found->constants_filled = false;
  }
  if (found->local_base != local_base) {
    found->local_base = local_base;
    found->constants_filled = false;
  }
  return *found;
}

}  // namespace

bool EnterCall(Context& context, Fragment& fragment, const Segment& segment, const Decoded& d) {
  const CallOp& call = context.code->calls[d.extra];
  if (call.builtin != Builtin::kNone) {
    fragment.segment = segment.next;
    return RunBuiltin(context, d, fragment.mask);
  }
  Frame& caller = *fragment.frame;
  const FunctionCode& code = *context.machine->kernel->functions[call.callee];
  const std::uint64_t local_base = caller.local_base + caller.code->local_bytes;
  const bool too_deep =
      caller.depth + 1 >= kDeepestCall || local_base + code.local_bytes > context.cta->local_bytes;
  if (too_deep) {
    Fault fault;
    fault.kind = FaultKind::kLocalOutOfBounds;
    fault.message =
        fmt::format("ran out of stack calling {}, {} calls deep", call.name, caller.depth + 1);
    context.machine->Report(context, d, std::countr_zero(fragment.mask), std::move(fault));
    return false;
  }
  Frame& frame = FreeFrame(*context.warp, code, local_base);
  frame.state = &context.machine->functions[call.callee];
  frame.caller = &caller;
  frame.call = &call;
  frame.call_segment = fragment.segment;
  frame.return_segment = segment.next;
  frame.depth = caller.depth + 1;
  frame.live = fragment.mask;
  if (!frame.constants_filled) {
    context.machine->FillConstants(*context.cta, *context.warp, frame);
  }
  std::memset(frame.registers, 0, code.cleared_bytes);
  CopyArrays(call.arguments, caller.registers, frame.registers, fragment.mask);
  fragment.frame = &frame;
  fragment.segment = 0;
  return true;
}

void ReturnFromCall(Warp& warp, Fragment& fragment) {
  Frame& frame = *fragment.frame;
  CopyArrays(frame.call->results, frame.registers, frame.caller->registers, fragment.mask);
  frame.live &= ~fragment.mask;
  fragment.frame = frame.caller;
  fragment.previous = frame.call_segment;
  fragment.segment = frame.return_segment;
  warp.regroup = warp.count > 1;
}

}  // namespace kernelpro::simt
