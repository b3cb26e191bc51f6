// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "emulator/simt/decode.h"
#include "emulator/simt/operations.h"

namespace kernelpro::simt {

using ptx::Space;
using ptx::Type;

namespace {

constexpr std::uint64_t kMostGroupsLeft = 1U << 16U;

/// What changes neither the value nor what is counted.
bool IsCopyHint(std::string_view part) {
  static constexpr std::string_view kHints[] = {
      "async",          "ca",      "cg",       "shared",  "global", "shared::cta",
      "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B"};
  return std::ranges::find(kHints, part) != std::end(kHints);
}

}  // namespace

/// cp.async: the copy itself, or what makes groups of copies and waits for them.
bool Decoder::AsyncCopy(const Instruction& in, Decoded& d) {
  d.kind = Kind::kOperation;
  if (!in.Has("async") || in.Has("bulk")) {
    return Fail("");
  }
  if (in.Has("mbarrier")) {
    return CopyArrival(in, d);
  }
  if (in.Has("commit_group")) {
    d.operation = RunAsyncCommit;
    return in.operands.empty() || Fail("an unusual form");
  }
  if (in.Has("wait_all")) {
    d.operation = RunAsyncWaitAll;
    return in.operands.empty() || Fail("an unusual form");
  }
  if (in.Has("wait_group")) {
    if (in.operands.size() != 1 || in.operands[0].kind != Operand::Kind::kInteger) {
      return Fail("an unusual form");
    }
    d.operation = RunAsyncWait;
    d.extra = static_cast<std::uint32_t>(std::min(in.operands[0].bits, kMostGroupsLeft));
    return true;
  }
  return CopyOperands(in, d);
}

/// [dst], [src], cp-size {, src-size or ignore-src} {, cache-policy}
bool Decoder::CopyOperands(const Instruction& in, Decoded& d) {
  for (std::size_t i = 1; i < in.parts.size(); ++i) {
    if (!IsCopyHint(in.parts[i])) {
      return Fail(fmt::format("the modifier .{}", in.parts[i]));
    }
  }
  const std::size_t policy = in.Has("L2::cache_hint") ? 1 : 0;
  const std::size_t count = in.operands.size();
  if (count < 3 + policy || count > 4 + policy || in.Has("ca") == in.Has("cg") ||
      !in.Has("global") || in.operands[2].kind != Operand::Kind::kInteger) {
    return Fail("an unusual form");
  }
  const std::uint64_t bytes = in.operands[2].bits;
  if (bytes != 16 && (in.Has("cg") || (bytes != 4 && bytes != 8))) {
    return Fail(fmt::format("a copy of {} bytes", bytes));
  }
  Access source;
  source.space = Space::kGlobal;
  source.width = static_cast<std::uint8_t>(bytes);
  source.skip_l1 = in.Has("cg");
  Access destination = source;
  destination.space = Space::kShared;
  destination.is_store = true;
  if (!Address(in.operands[0], destination) || !Address(in.operands[1], source)) {
    return false;
  }
  if (!source.address_64) {
    return Fail("32-bit global addresses");
  }
  if (count == 4 + policy) {
    const Operand& last = in.operands[3];
    const bool ignore = IsRegister(last) && RegisterType(last) == Type::kPred;
    std::uint32_t& slot = ignore ? source.operand2 : source.operand[0];
    slot = Source(last, ignore ? Type::kPred : Type::kB32);
    source.operand2_negated = ignore && last.negated;
    if (slot == kNoSlot) {
      return false;
    }
  }
  d.operation = RunAsyncCopy;
  d.extra = static_cast<std::uint32_t>(out_.accesses.size());
  out_.accesses.push_back(source);
  out_.accesses.push_back(destination);
  return true;
}

namespace {

Space MBarrierSpace(const ptx::Instruction& in) {
  return in.Has("shared") || in.Has("shared::cta") ? Space::kShared : Space::kGeneric;
}

}  // namespace

bool Decoder::CopyArrival(const Instruction& in, Decoded& d) {
  Access access;
  access.space = MBarrierSpace(in);
  access.width = 8;
  if (!in.Has("arrive") || in.operands.size() != 1 || !Address(in.operands[0], access)) {
    return Fail("an unusual form");
  }
  d.operation = in.Has("noinc") ? RunMBarrierCopyArriveNoInc : RunMBarrierCopyArrive;
  d.extra = static_cast<std::uint32_t>(out_.accesses.size());
  out_.accesses.push_back(access);
  return true;
}

/// init [m], count; inval [m]; arrive{_drop} {state,} [m] {, count}; {test,try}_wait p, [m], state
/// or parity {, hint}
bool Decoder::MBarrier(const Instruction& in, Decoded& d) {
  if (in.Has("expect_tx") || in.Has("complete_tx") || in.Has("shared::cluster") ||
      in.Has("cluster") || in.Has("noComplete") || in.parts.back() != "b64" ||
      in.parts.size() < 3) {
    return Fail("");
  }
  const std::string& what = in.parts[1];
  const bool waits = what == "test_wait" || what == "try_wait";
  const bool arrives = what == "arrive" || what == "arrive_drop";
  std::size_t at = 0;  // of the address
  Access access;
  access.space = MBarrierSpace(in);
  access.width = 8;
  if (waits ||
      (arrives && !in.operands.empty() && in.operands[0].kind != Operand::Kind::kAddress)) {
    at = 1;
  }
  if (in.operands.size() <= at || !Address(in.operands[at], access)) {
    return Fail("an unusual form");
  }
  if (at == 1 && in.operands[0].kind != Operand::Kind::kSink) {
    access.value[0] = Destination(in.operands[0], waits ? Type::kPred : Type::kB64);
    if (access.value[0] == kNoSlot) {
      return false;
    }
  }
  const bool needs_more = waits || what == "init";
  const std::size_t more = in.operands.size() - at - 1;
  if (more < (needs_more ? 1U : 0U) || more > (what == "inval" ? 0U : 1U) + (waits ? 1U : 0U)) {
    return Fail("an unusual form");
  }
  if (more > 0) {
    const bool state = waits && !in.Has("parity");
    access.operand[0] = Source(in.operands[at + 1], state ? Type::kB64 : Type::kB32);
    if (access.operand[0] == kNoSlot) {
      return false;
    }
  }
  d.kind = Kind::kOperation;
  if (waits) {
    d.operation = in.Has("parity") ? RunMBarrierWaitParity : RunMBarrierWaitState;
  } else if (arrives) {
    d.operation = what == "arrive" ? RunMBarrierArrive : RunMBarrierArriveDrop;
  } else if (what == "init" || what == "inval") {
    d.operation = what == "init" ? RunMBarrierInit : RunMBarrierInvalidate;
  } else {
    return Fail("");
  }
  d.extra = static_cast<std::uint32_t>(out_.accesses.size());
  out_.accesses.push_back(access);
  return true;
}

}  // namespace kernelpro::simt
