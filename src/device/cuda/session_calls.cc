// SPDX-License-Identifier: Apache-2.0
// The calls of a session: into the candidate, and what comes back.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "device/cuda/session.h"
#include "device/cuda/session_message.h"
#include "device/protocol/bytes.h"
#include "device/protocol/cuda_error.h"
#include "device/protocol/runner_message.h"

namespace kernelpro::cuda {
namespace {

using protocol::Frame;
using protocol::RunnerMessage;
using referee::Deadline;
using referee::RunnerEnd;
using std::chrono::milliseconds;

constexpr milliseconds kPollStep{10};
constexpr milliseconds kDeathPatience{2'000};
/// How long a call behind a shut gate is given to return, and what it started to show itself.
constexpr milliseconds kGatePatience{200};
constexpr milliseconds kGateWatch{2};

simt::Fault FaultOf(std::int32_t code) {
  simt::Fault fault;
  fault.message = fmt::format("the GPU stopped a kernel: {} ({})", protocol::CudaErrorText(code),
                              protocol::CudaErrorName(code));
  fault.kind = code == protocol::kErrorIllegalAddress      ? simt::FaultKind::kOutOfBounds
               : code == protocol::kErrorMisalignedAddress ? simt::FaultKind::kMisaligned
                                                           : simt::FaultKind::kTrap;
  return fault;
}

/// After the i32 that JudgeReturn reads; false when it is not all there.
bool DecodeFigures(const Frame& answer, protocol::CudaFigures* figures) {
  protocol::ByteReader in(answer.payload);
  (void)in.U32();
  figures->synchronize = static_cast<std::int32_t>(in.U32());
  figures->last_error = static_cast<std::int32_t>(in.U32());
  figures->capturing = in.U8();
  figures->threads = in.U32();
  figures->persisting = in.U64();
  figures->stream_us = in.F64();
  figures->context_us = in.F64();
  return in.Complete();
}

}  // namespace

protocol::CallReport ReportOf(const protocol::CudaFigures& figures) {
  protocol::CallReport report;
  if (figures.synchronize != 0) {
    report.sticky_error = figures.synchronize;
    report.faults.push_back(FaultOf(figures.synchronize));
  }
  if (figures.last_error != 0) {
    report.out_of_memory = figures.last_error == protocol::kErrorMemoryAllocation;
    report.errors.push_back(
        {.error = figures.last_error,
         .launch = true,
         .text = fmt::format("{} ({})", protocol::CudaErrorText(figures.last_error),
                             protocol::CudaErrorName(figures.last_error))});
  }
  return report;
}

Result<CallOutcome> CudaSession::Call(const CallRequest& request, const std::stop_token& stop) {
  if (load_failure_) {
    return *std::exchange(load_failure_, std::nullopt);
  }
  if (!ended_.empty()) {
    return Fail(ErrorCode::kUnavailable, "the session has ended: " + ended_);
  }
  KP_RETURN_IF_ERROR(gpu_.MakeCurrent());
  KP_RETURN_IF_ERROR(gpu_.Synchronize());  // Poison and inputs are there before the candidate is.
  KP_ASSIGN_OR_RETURN(std::vector<std::byte> image, Image(request.arguments, request.pointers));
  const Deadline deadline = After(request.wall_limit);
  const std::uint64_t sequence = ++sequence_;
  const auto kind = request.prepare ? RunnerMessage::kPrepare : RunnerMessage::kRun;
  RunnerEnd end;
  end.kind = RunnerEnd::Kind::kGone;
  if (runner_->socket().Send(Message(kind, sequence, std::move(image)), deadline)) {
    end = Await(sequence, deadline, stop);
  }
  end.prepare = request.prepare;
  protocol::CudaFigures figures;
  return Finish(std::move(end), &figures, request.wall_limit);
}

Result<CallOutcome> CudaSession::Finish(RunnerEnd end, protocol::CudaFigures* figures,
                                        milliseconds wall_limit) {
  if (end.kind == RunnerEnd::Kind::kCancelled) {
    End("stopped on request");
    return Fail(ErrorCode::kCancelled, "the call was stopped on request");
  }
  return Conclude(std::move(end), figures, wall_limit);
}

Result<CallOutcome> CudaSession::CallGated(const GatedRequest& request,
                                           const std::stop_token& stop) {
  if (load_failure_ || !ended_.empty()) {
    return Fail(ErrorCode::kUnavailable, "the session has ended: " + ended_);
  }
  KP_RETURN_IF_ERROR(gpu_.MakeCurrent());
  KP_RETURN_IF_ERROR(gpu_.Synchronize());
  KP_ASSIGN_OR_RETURN(std::vector<std::byte> image, Image(request.arguments, request.pointers));
  const Deadline deadline = After(request.wall_limit);
  const std::uint64_t sequence = ++sequence_;
  const auto number = static_cast<std::uint32_t>(sequence);
  protocol::Doorbell& bell = runner_->doorbell();
  RunnerEnd end;
  end.kind = RunnerEnd::Kind::kGone;
  protocol::CudaFigures figures;
  if (!runner_->socket().Send(Message(RunnerMessage::kGated, sequence, std::move(image)),
                              deadline)) {
    return Finish(std::move(end), &figures, request.wall_limit);
  }
  // A candidate that waits for its own work inside the call does not return before the gate opens.
  end = Await(sequence, After(kGatePatience), stop, &bell.warm);
  const bool waits = end.kind == RunnerEnd::Kind::kTimedOut;
  if (end.kind != RunnerEnd::Kind::kAnswered && !waits) {
    return Finish(std::move(end), &figures, request.wall_limit);
  }
  if (waits || end.answer.kind == 0) {
    std::this_thread::sleep_for(kGateWatch);
    const Status looked = request.look();
    bell.gate.store(number, std::memory_order_release);
    KP_RETURN_IF_ERROR(looked);
    end = Await(sequence, deadline, stop);
  }
  bell.gate.store(number, std::memory_order_release);
  return Finish(std::move(end), &figures, request.wall_limit);
}

Result<std::vector<std::byte>> CudaSession::PackBatch(const BatchRequest& request) const {
  protocol::ByteWriter out;
  out.U32(static_cast<std::uint32_t>(request.arguments.size()));
  out.U32(static_cast<std::uint32_t>(request.warm_up.size()));
  out.U32(static_cast<std::uint32_t>(request.timed.size()));
  for (const auto* calls : {&request.warm_up, &request.timed}) {
    for (const std::vector<PointerSlot>& pointers : *calls) {
      KP_ASSIGN_OR_RETURN(const std::vector<std::byte> image, Image(request.arguments, pointers));
      out.Raw(image);
    }
  }
  if (out.bytes().size() > protocol::kBatchLimit) {
    return Fail(ErrorCode::kInvalidArgument, "too many calls in one batch");
  }
  return out.Take();
}

Result<BatchOutcome> CudaSession::TimeBatch(const BatchRequest& request,
                                            const std::stop_token& stop) {
  if (load_failure_ || !ended_.empty()) {
    return Fail(ErrorCode::kUnavailable, "the session has ended: " + ended_);
  }
  KP_RETURN_IF_ERROR(gpu_.MakeCurrent());
  KP_RETURN_IF_ERROR(gpu_.Synchronize());
  KP_ASSIGN_OR_RETURN(std::vector<std::byte> order, PackBatch(request));
  const Deadline deadline = After(request.wall_limit);
  const std::uint64_t sequence = ++sequence_;
  const auto number = static_cast<std::uint32_t>(sequence);
  protocol::Doorbell& bell = runner_->doorbell();
  BatchOutcome outcome;
  const auto conclude = [&](RunnerEnd end) -> Result<BatchOutcome> {
    protocol::CudaFigures figures;
    KP_ASSIGN_OR_RETURN(outcome.call, Finish(std::move(end), &figures, request.wall_limit));
    outcome.stray_threads = figures.threads;
    outcome.stream_us = figures.stream_us;
    outcome.context_us = figures.context_us;
    outcome.persisting_l2_bytes = figures.persisting;
    return outcome;
  };
  const auto failed = [](const RunnerEnd& end) {
    return end.kind != RunnerEnd::Kind::kAnswered || end.answer.kind != 0;
  };
  RunnerEnd end;
  end.kind = RunnerEnd::Kind::kGone;
  if (!runner_->socket().Send(Message(RunnerMessage::kBatch, sequence, std::move(order)),
                              deadline)) {
    return conclude(std::move(end));
  }
  end = Await(sequence, deadline, stop, &bell.warm);
  if (failed(end)) {
    return conclude(std::move(end));
  }
  KP_RETURN_IF_ERROR(request.fill());
  KP_RETURN_IF_ERROR(gpu_.Synchronize());
  bell.wake.store(number, std::memory_order_release);
  end = Await(sequence, deadline, stop, &bell.awake);
  if (failed(end)) {
    return conclude(std::move(end));
  }
  const auto start = std::chrono::steady_clock::now();
  bell.go.store(number, std::memory_order_release);
  end = Await(sequence, deadline, stop, &bell.done);
  const auto finish = std::chrono::steady_clock::now();
  outcome.wall_us = std::chrono::duration<double, std::micro>(finish - start).count();
  if (!failed(end)) {
    end = Await(sequence, deadline, stop);
  }
  return conclude(std::move(end));
}

bool CudaSession::Take(const Frame& frame, std::uint64_t sequence, RunnerEnd* end) {
  const auto kind = static_cast<RunnerMessage>(frame.kind);
  if (kind == RunnerMessage::kForbidden) {
    protocol::ByteReader in(frame.payload);
    end->forbidden = static_cast<int>(in.U32());
    return false;  // It ends itself now; if not, the wall limit does.
  }
  const bool expected = frame.sequence == sequence &&
                        (kind == RunnerMessage::kReturned || kind == RunnerMessage::kNoEntry ||
                         kind == RunnerMessage::kOutOfMemory || kind == RunnerMessage::kThrew ||
                         kind == RunnerMessage::kLoaded || kind == RunnerMessage::kLoadFailed);
  end->kind = expected ? RunnerEnd::Kind::kAnswered : RunnerEnd::Kind::kForged;
  end->answer = frame;
  return true;
}

std::optional<RunnerEnd> CudaSession::Look(std::uint64_t sequence) {
  RunnerEnd end;
  referee::FrameSocket& socket = runner_->socket();
  socket.Fill();
  while (const auto frame = socket.Next()) {
    if (Take(*frame, sequence, &end)) {
      return end;
    }
  }
  if (socket.broken() || socket.closed()) {
    end.kind = socket.broken() ? RunnerEnd::Kind::kForged : RunnerEnd::Kind::kGone;
    return end;
  }
  if (end.forbidden) {  // It has said its last word.
    end.kind = RunnerEnd::Kind::kGone;
    return end;
  }
  return std::nullopt;
}

RunnerEnd CudaSession::Await(std::uint64_t sequence, Deadline deadline, const std::stop_token& stop,
                             const std::atomic<std::uint32_t>* bell) {
  constexpr int kSpins = 4096;  // some 40 us between looks at the slower things
  RunnerEnd end;
  while (true) {
    for (int i = 0; bell != nullptr && i < kSpins; ++i) {
      if (bell->load(std::memory_order_acquire) == static_cast<std::uint32_t>(sequence)) {
        return end;  // kAnswered without an answer: the bell rang.
      }
      __builtin_ia32_pause();
    }
    if (bell == nullptr) {
      std::array<pollfd, 2> polls{
          {{runner_->socket().fd(), POLLIN, 0}, {runner_->output(), POLLIN, 0}}};
      ::poll(polls.data(), polls.size(), referee::PollTimeout(deadline, kPollStep));
    }
    runner_->ReadOutput(&output_, referee::kPrintedLimit);
    if (auto seen = Look(sequence)) {
      return std::move(*seen);
    }
    if (runner_->ResidentBytes() > host_memory_bytes_) {
      end.kind = RunnerEnd::Kind::kAnswered;
      end.answer = Message(RunnerMessage::kOutOfMemory, sequence);
      return end;
    }
    if (stop.stop_requested() || std::chrono::steady_clock::now() >= deadline) {
      end.kind = stop.stop_requested() ? RunnerEnd::Kind::kCancelled : RunnerEnd::Kind::kTimedOut;
      return end;
    }
  }
}

CallOutcome CudaSession::Conclude(RunnerEnd end, protocol::CudaFigures* figures,
                                  milliseconds wall_limit) {
  end.host_memory_bytes = host_memory_bytes_;
  if (end.kind == RunnerEnd::Kind::kGone && !runner_->RunsAfter(kDeathPatience)) {
    end.process = runner_->Finish();
  }
  if (end.kind == RunnerEnd::Kind::kAnswered &&
      end.answer.kind == static_cast<std::uint16_t>(RunnerMessage::kReturned) &&
      !DecodeFigures(end.answer, figures)) {
    end.kind = RunnerEnd::Kind::kForged;
  }
  runner_->ReadOutput(&output_, referee::kPrintedLimit);
  CallOutcome outcome =
      referee::Judge(end, ReportOf(*figures), std::exchange(output_, std::string()));
  if (outcome.end == CallOutcome::End::kTimedOut) {
    outcome.reason = fmt::format(
        "the call did not end within {} s: a kernel that runs on, or host code that does not "
        "return",
        static_cast<double>(wall_limit.count()) / 1000);
  }
  if (outcome.end == CallOutcome::End::kReturned && outcome.cuda_error == 0 &&
      figures->capturing != 0) {
    outcome.end = CallOutcome::End::kForbidden;
    outcome.reason = "the candidate left the stream in capture mode";
  }
  if (outcome.end != CallOutcome::End::kReturned) {
    End(outcome.reason);
  }
  return outcome;
}

}  // namespace kernelpro::cuda
