// SPDX-License-Identifier: Apache-2.0
#include "evaluate/outcome.h"

#include <fmt/format.h>

namespace kernelpro {
namespace {

Verdict VerdictOf(simt::FaultKind kind) {
  switch (kind) {
    case simt::FaultKind::kOutOfBounds:
    case simt::FaultKind::kSharedOutOfBounds:
    case simt::FaultKind::kLocalOutOfBounds:
      return Verdict::kOutOfBounds;
    case simt::FaultKind::kWriteToReadOnly:
      return Verdict::kInputModified;
    case simt::FaultKind::kDeadlock:
    case simt::FaultKind::kBudget:
      return Verdict::kTimeout;
    case simt::FaultKind::kRace:
      return Verdict::kRace;
    case simt::FaultKind::kUninitialized:
      return Verdict::kNondeterministic;
    case simt::FaultKind::kUnsupported:
      return Verdict::kUnsupported;
    case simt::FaultKind::kMisaligned:
    case simt::FaultKind::kDivergentBarrier:
    case simt::FaultKind::kTrap:
    case simt::FaultKind::kBadShuffle:
      return Verdict::kRuntimeError;
  }
  return Verdict::kInfrastructureError;
}

/// The fault that decides: the first fatal one, else the first race.
const simt::Fault* DecidingFault(const CallOutcome& outcome) {
  for (const simt::Fault& fault : outcome.faults) {
    if (fault.fatal) {
      return &fault;
    }
  }
  for (const simt::Fault& fault : outcome.faults) {
    if (fault.kind != simt::FaultKind::kUninitialized) {
      return &fault;
    }
  }
  return nullptr;
}

Verdict VerdictOf(CallOutcome::End end) {
  switch (end) {
    case CallOutcome::End::kLoadFailed:
      return Verdict::kCompileError;
    case CallOutcome::End::kReturned:
    case CallOutcome::End::kCrashed:
    case CallOutcome::End::kExited:
    case CallOutcome::End::kDeviceFault:
      return Verdict::kRuntimeError;
    case CallOutcome::End::kTimedOut:
      return Verdict::kTimeout;
    case CallOutcome::End::kForbidden:
      return Verdict::kPolicyViolation;
    case CallOutcome::End::kOutOfMemory:
      return Verdict::kOutOfMemory;
    case CallOutcome::End::kUnsupported:
      return Verdict::kUnsupported;
    case CallOutcome::End::kDeviceLost:
      return Verdict::kInfrastructureError;
  }
  return Verdict::kInfrastructureError;
}

/// cudaError_t values (driver_types.h, stable across CUDA versions).
constexpr int kCudaErrorMemoryAllocation = 2;

}  // namespace

Condemnation JudgeCompileFailure(const CompileFailure& failure) {
  std::string reason = "it does not compile";
  for (const Diagnostic& d : failure.diagnostics) {
    if (d.severity == Diagnostic::Severity::kError) {
      reason = d.line == 0 ? d.text : fmt::format("{}:{}: {}", d.file, d.line, d.text);
      break;
    }
  }
  const bool forbidden = failure.kind == CompileFailure::Kind::kForbiddenFlag;
  return {forbidden ? Verdict::kPolicyViolation : Verdict::kCompileError, std::move(reason)};
}

std::optional<Condemnation> JudgeCall(const CallOutcome& outcome) {
  const bool ended_well =
      outcome.end == CallOutcome::End::kReturned || outcome.end == CallOutcome::End::kDeviceFault;
  if (!ended_well) {
    return Condemnation{VerdictOf(outcome.end), outcome.reason};
  }
  if (const simt::Fault* fault = DecidingFault(outcome); fault != nullptr) {
    return Condemnation{VerdictOf(fault->kind), fault->message};
  }
  if (outcome.end == CallOutcome::End::kDeviceFault) {
    return Condemnation{Verdict::kRuntimeError, outcome.reason};
  }
  if (outcome.cuda_error != 0) {
    return Condemnation{outcome.cuda_error == kCudaErrorMemoryAllocation ? Verdict::kOutOfMemory
                                                                         : Verdict::kLaunchError,
                        outcome.reason.empty()
                            ? fmt::format("kernelpro_run returned {} ({})", outcome.cuda_error_name,
                                          outcome.cuda_error)
                            : outcome.reason};
  }
  return std::nullopt;
}

}  // namespace kernelpro
