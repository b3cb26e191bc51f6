// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emulator/simt/code.h"
#include "emulator/simt/machine.h"

/// The operations that the decoder chooses from.
namespace kernelpro::simt {

// move.cc
void Move32(std::byte* registers, const AluOperands& operands, LaneMask mask);
void Move64(std::byte* registers, const AluOperands& operands, LaneMask mask);
void Add64(std::byte* registers, const AluOperands& operands, LaneMask mask);
[[nodiscard]] bool RunUnsupported(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunNothing(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunClock32(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunClock64(Context& context, const Decoded& d, LaneMask on);
/// dst: predicate; src[0]: address; src[1]: first address of the window (64-bit constant).
[[nodiscard]] bool RunIsWindow(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunIsGlobal(Context& context, const Decoded& d, LaneMask on);

// parameter.cc: .param arrays of calls; Access::offset is the byte in the block of lane 0,
// Access::operand[0] the stride.
[[nodiscard]] bool RunParameterLoad(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunParameterStore(Context& context, const Decoded& d, LaneMask on);

/// For ld, st of any space (extra: Access).
[[nodiscard]] Operation SelectAccess(const Access& access);
/// For atom, red (extra: Access). nullptr when the combination does not exist.
[[nodiscard]] Operation SelectAtomic(const Access& access);

// async_copy.cc: cp.async (extra: two Accesses, source and destination), commit_group, wait_group
// (extra: groups that may stay), wait_all.
[[nodiscard]] bool RunAsyncCopy(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunAsyncCommit(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunAsyncWait(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunAsyncWaitAll(Context& context, const Decoded& d, LaneMask on);

// mbarrier.cc (extra: Access of the object; value[0]: state or predicate written, operand[0]:
// count, state or parity). Access::op is not used.
[[nodiscard]] bool RunMBarrierInit(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunMBarrierInvalidate(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunMBarrierArrive(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunMBarrierArriveDrop(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunMBarrierWaitState(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunMBarrierWaitParity(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunMBarrierCopyArrive(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunMBarrierCopyArriveNoInc(Context& context, const Decoded& d, LaneMask on);

// warp_ops.cc: operands as the decoder's comments say; member mask in src[3] unless noted.
[[nodiscard]] bool RunShuffleIdx(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunShuffleUp(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunShuffleDown(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunShuffleBfly(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunVoteBallot(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunVoteAny(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunVoteAll(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunVoteUni(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunMatchAny32(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunMatchAny64(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunMatchAll32(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunMatchAll64(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] Operation SelectReduce(std::string_view op, ptx::Type type);
[[nodiscard]] bool RunActiveMask(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunElect(Context& context, const Decoded& d, LaneMask on);
[[nodiscard]] bool RunNanosleep(Context& context, const Decoded& d, LaneMask on);

}  // namespace kernelpro::simt
