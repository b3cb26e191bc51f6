// SPDX-License-Identifier: Apache-2.0
#include "device/referee/session.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "device/buffer_range.h"
#include "device/protocol/bytes.h"
#include "device/protocol/sandbox_report.h"

namespace kernelpro::referee {
namespace {

using protocol::ControlKind;
using protocol::Frame;
using protocol::RunnerMessage;
using std::chrono::milliseconds;

/// The GPU answers everything but a launch at once; generous because the machine may be busy.
constexpr milliseconds kGpuPatience{20'000};
/// After the wall limit: is the GPU idle (the host code hangs), or does a kernel still run?
constexpr milliseconds kLateReportPatience{300};
/// How often a request to stop is looked at.
constexpr milliseconds kStopPoll{20};
/// How long a runner whose socket closed may take to end.
constexpr milliseconds kDeathPatience{1'000};
/// Instructions that static constructors may spend on kernels.
constexpr std::uint64_t kLoadBudget = 1'000'000'000ULL;
/// Read of the candidate's output in one go, so that a flood cannot hold the referee.
constexpr int kMostOutputReads = 64;

Deadline After(milliseconds patience) {
  return std::chrono::steady_clock::now() + patience;
}

}  // namespace

Result<std::unique_ptr<Session>> EmulatedSession::Open(const Programs& programs,
                                                       const std::string& gpu,
                                                       const SessionRequest& request) {
  KP_ASSIGN_OR_RETURN(const std::uint64_t secret, SecretSeed());
  KP_ASSIGN_OR_RETURN(Processes processes, Processes::Start(programs, gpu, request));
  std::unique_ptr<EmulatedSession> session(
      new EmulatedSession(std::move(processes), request, Rng(secret)));
  KP_RETURN_IF_ERROR(session->Load(request));
  return std::unique_ptr<Session>(std::move(session));
}

EmulatedSession::EmulatedSession(Processes processes, const SessionRequest& request,
                                 Rng guard_patterns)
    : processes_(std::move(processes)),
      host_memory_bytes_(request.host_memory_bytes),
      guard_patterns_(guard_patterns) {}

EmulatedSession::~EmulatedSession() {
  if (processes_.output >= 0) {
    ::close(processes_.output);
  }
}

template <class Answer, class Message>
std::optional<Answer> EmulatedSession::AskGpu(ControlKind kind, const Message& message,
                                              Deadline deadline, int descriptor) {
  const Frame request = protocol::ToFrame(kind, ++sequence_, message);
  if (!processes_.gpu || !processes_.gpu_socket.Send(request, deadline, descriptor)) {
    return std::nullopt;
  }
  const auto frame = processes_.gpu_socket.Wait(deadline);
  if (!frame || frame->sequence != request.sequence || frame->kind != request.kind) {
    return std::nullopt;
  }
  return protocol::DecodeControl<Answer>(*frame);
}

Status EmulatedSession::Load(const SessionRequest& request) {
  const auto opened = AskGpu<protocol::Answer>(
      ControlKind::kOpen, protocol::OpenMessage{request.kernels}, After(kGpuPatience));
  if (!opened || !opened->error.empty()) {
    return Fail(ErrorCode::kUnavailable,
                opened ? opened->error : "the emulated GPU's process did not start");
  }
  // Static constructors of the candidate may already use the GPU.
  (void)AskGpu<protocol::Answer>(ControlKind::kBeginCall,
                                 protocol::BeginCallMessage{CallMode::kCheck, kLoadBudget},
                                 After(kGpuPatience));
  RunnerEnd end = WaitForRunner(0, After(request.start_limit), {});
  if (end.kind == RunnerEnd::Kind::kGone && !end.forbidden) {
    KP_RETURN_IF_ERROR(CheckRunnerStarted());
  }
  CallOutcome outcome = Conclude(std::move(end), false);
  if (outcome.end != CallOutcome::End::kReturned) {
    if (outcome.end == CallOutcome::End::kTimedOut) {
      outcome.reason = "the candidate's static constructors did not end within the start limit";
    }
    load_failure_ = std::move(outcome);
  }
  return Ok();
}

Status EmulatedSession::CheckRunnerStarted() {
  if (processes_.runner->RunsAfter(kDeathPatience)) {
    return Ok();
  }
  // Before it gives way to the candidate, and only then, the runner's standard error leads here.
  auto result = processes_.runner->Wait();
  KP_RETURN_IF_ERROR(Status(result ? Ok() : Status(result.error())));
  dead_runner_ = *result;
  if (!result->err.empty()) {
    return Fail(ErrorCode::kUnavailable, std::string(Trim(result->err)));
  }
  return Ok();
}

Result<EmulatedSession::Buffer*> EmulatedSession::Find(BufferId id) {
  const auto found = buffers_.find(id);
  if (found == buffers_.end()) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("no buffer {} in this session", id));
  }
  return &found->second;
}

Result<BufferId> EmulatedSession::Allocate(const BufferRequest& request) {
  // A candidate that failed to load says so in its first Call, which needs buffers like any other.
  if (!ended_.empty() && !load_failure_) {
    return Fail(ErrorCode::kUnavailable, "the session has ended: " + ended_);
  }
  if (request.bytes == 0) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("buffer '{}' has no bytes", request.name));
  }
  const BufferId id = next_buffer_;
  KP_ASSIGN_OR_RETURN(GuardedBuffer memory,
                      GuardedBuffer::Create(request.bytes, request.name, guard_patterns_.Fork(id)));
  if (load_failure_) {
    buffers_.emplace(id, Buffer{std::move(memory), 0});
    ++next_buffer_;
    return id;
  }
  const protocol::AllocateMessage message{request.name, request.bytes, memory.mapping_bytes(),
                                          GuardedBuffer::offset(), request.read_only};
  const auto answer =
      AskGpu<protocol::Answer>(ControlKind::kAllocate, message, After(kGpuPatience), memory.fd());
  if (!answer) {
    End("the emulated GPU's process is gone");
    return Fail(ErrorCode::kUnavailable, ended_);
  }
  if (!answer->error.empty()) {
    return Fail(ErrorCode::kUnavailable, answer->error);
  }
  buffers_.emplace(id, Buffer{std::move(memory), answer->address});
  ++next_buffer_;
  return id;
}

Status EmulatedSession::Free(BufferId id) {
  KP_ASSIGN_OR_RETURN(const Buffer* buffer, Find(id));
  const std::uint64_t address = buffer->address;
  buffers_.erase(id);
  if (!ended_.empty()) {
    return Ok();
  }
  const auto answer = AskGpu<protocol::Answer>(ControlKind::kFree, protocol::FreeMessage{address},
                                               After(kGpuPatience));
  if (!answer || !answer->error.empty()) {
    return Fail(ErrorCode::kUnavailable, answer ? answer->error : "the emulated GPU is gone");
  }
  return Ok();
}

Status EmulatedSession::Write(BufferId id, std::uint64_t offset, std::span<const std::byte> bytes) {
  KP_ASSIGN_OR_RETURN(const Buffer* buffer, Find(id));
  const auto memory = buffer->memory.bytes();
  KP_RETURN_IF_ERROR(CheckRange(offset, bytes.size(), memory.size()));
  std::ranges::copy(bytes, memory.subspan(static_cast<std::size_t>(offset)).begin());
  return Ok();
}

Status EmulatedSession::Read(BufferId id, std::uint64_t offset, std::span<std::byte> bytes) {
  KP_ASSIGN_OR_RETURN(const Buffer* buffer, Find(id));
  const auto memory = buffer->memory.bytes();
  KP_RETURN_IF_ERROR(CheckRange(offset, bytes.size(), memory.size()));
  std::ranges::copy(memory.subspan(static_cast<std::size_t>(offset), bytes.size()), bytes.begin());
  return Ok();
}

Result<bool> EmulatedSession::GuardsIntact(BufferId id) {
  KP_ASSIGN_OR_RETURN(const Buffer* buffer, Find(id));
  return buffer->memory.GuardsIntact();
}

Result<std::vector<std::byte>> EmulatedSession::ArgumentImage(const CallRequest& request) {
  std::vector<std::byte> image = request.arguments;
  if (image.size() > protocol::kRunnerMessageLimit) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("argument block of {} bytes; at most {} are possible", image.size(),
                            protocol::kRunnerMessageLimit));
  }
  for (const PointerSlot& slot : request.pointers) {
    KP_ASSIGN_OR_RETURN(const Buffer* buffer, Find(slot.buffer));
    KP_RETURN_IF_ERROR(CheckRange(slot.offset, sizeof buffer->address, image.size()));
    std::memcpy(image.data() + slot.offset, &buffer->address, sizeof buffer->address);
  }
  return image;
}

Result<CallOutcome> EmulatedSession::Call(const CallRequest& request, const std::stop_token& stop) {
  if (load_failure_) {
    CallOutcome outcome = *std::exchange(load_failure_, std::nullopt);
    return outcome;
  }
  if (!ended_.empty()) {
    return Fail(ErrorCode::kUnavailable, "the session has ended: " + ended_);
  }
  KP_ASSIGN_OR_RETURN(std::vector<std::byte> image, ArgumentImage(request));
  const Deadline deadline = After(request.wall_limit);
  RunnerEnd end;
  const auto begun = AskGpu<protocol::Answer>(
      ControlKind::kBeginCall, protocol::BeginCallMessage{request.mode, request.instruction_budget},
      After(kGpuPatience));
  const std::uint64_t sequence = ++sequence_;
  const Frame run{
      static_cast<std::uint16_t>(request.prepare ? RunnerMessage::kPrepare : RunnerMessage::kRun),
      sequence, std::move(image)};
  if (!begun) {
    end.kind = RunnerEnd::Kind::kGpuLost;
  } else if (!processes_.runner_socket.Send(run, deadline)) {
    end = WaitForRunner(sequence, After(kDeathPatience), stop);
  } else {
    end = WaitForRunner(sequence, deadline, stop);
  }
  if (end.kind == RunnerEnd::Kind::kCancelled) {
    End("stopped on request");
    return Fail(ErrorCode::kCancelled, "the call was stopped on request");
  }
  return Conclude(std::move(end), request.prepare);
}

bool EmulatedSession::TakeRunnerFrame(const Frame& frame, std::uint64_t sequence, RunnerEnd* end) {
  const auto kind = static_cast<RunnerMessage>(frame.kind);
  if (kind == RunnerMessage::kForbidden) {
    protocol::ByteReader in(frame.payload);
    end->forbidden = static_cast<int>(in.U32());
    return false;  // It ends itself now; if not, the wall limit does.
  }
  if (kind == RunnerMessage::kConfined && sequence == 0 && !confined_) {
    // The first frame of a runner; the candidate is not loaded yet.
    confined_ = true;
    protocol::ByteReader in(frame.payload);
    sandbox_ = protocol::ReadSandboxReport(in);
    return false;
  }
  const bool expected =
      frame.sequence == sequence &&
      (sequence == 0 ? kind == RunnerMessage::kLoaded || kind == RunnerMessage::kLoadFailed
                     : kind == RunnerMessage::kReturned || kind == RunnerMessage::kNoEntry ||
                           kind == RunnerMessage::kOutOfMemory || kind == RunnerMessage::kThrew);
  end->kind = expected ? RunnerEnd::Kind::kAnswered : RunnerEnd::Kind::kForged;
  end->answer = frame;
  return true;
}

RunnerEnd EmulatedSession::WaitForRunner(std::uint64_t sequence, Deadline deadline,
                                         const std::stop_token& stop) {
  RunnerEnd end;
  FrameSocket& runner = processes_.runner_socket;
  FrameSocket& gpu = processes_.gpu_socket;
  const milliseconds patience = stop.stop_possible() ? kStopPoll : milliseconds(60'000);
  while (true) {
    while (const auto frame = runner.Next()) {
      if (TakeRunnerFrame(*frame, sequence, &end)) {
        return end;
      }
    }
    if (runner.closed() || runner.broken()) {
      end.kind = runner.broken() ? RunnerEnd::Kind::kForged : RunnerEnd::Kind::kGone;
      return end;
    }
    if (gpu.closed()) {
      end.kind = RunnerEnd::Kind::kGpuLost;
      return end;
    }
    if (stop.stop_requested() || std::chrono::steady_clock::now() >= deadline) {
      end.kind = stop.stop_requested() ? RunnerEnd::Kind::kCancelled : RunnerEnd::Kind::kTimedOut;
      return end;
    }
    std::array<pollfd, 3> polls{
        {{runner.fd(), POLLIN, 0}, {gpu.fd(), POLLIN, 0}, {processes_.output, POLLIN, 0}}};
    ::poll(polls.data(), polls.size(), PollTimeout(deadline, patience));
    if (polls[0].revents != 0) {
      runner.Fill();
    }
    if (polls[1].revents != 0) {
      gpu.Fill();  // It speaks only when asked: this is its end.
    }
    if (polls[2].revents != 0) {
      ReadOutput();
    }
  }
}

void EmulatedSession::ReadOutput() {
  std::array<char, 16384> chunk{};
  for (int i = 0; i < kMostOutputReads && processes_.output >= 0; ++i) {
    const ssize_t n = ::read(processes_.output, chunk.data(), chunk.size());
    if (n > 0) {
      const std::size_t room = kPrintedLimit - std::min(kPrintedLimit, output_.size());
      output_.append(chunk.data(), std::min(room, static_cast<std::size_t>(n)));
      continue;
    }
    if (n == 0) {  // Closed by the candidate, or its process is gone.
      ::close(processes_.output);
      processes_.output = -1;
    }
    return;
  }
}

CallOutcome EmulatedSession::Conclude(RunnerEnd end, bool prepare) {
  end.prepare = prepare;
  end.host_memory_bytes = host_memory_bytes_;
  if (end.kind == RunnerEnd::Kind::kGone && dead_runner_) {
    end.process = std::move(dead_runner_);
  } else if (end.kind == RunnerEnd::Kind::kGone && !processes_.runner->RunsAfter(kDeathPatience)) {
    auto result = processes_.runner->Wait();
    if (result) {
      end.process = std::move(result).value();
    }
  }
  std::optional<protocol::CallReport> report;
  if (end.kind != RunnerEnd::Kind::kGpuLost) {
    const bool late = end.kind == RunnerEnd::Kind::kTimedOut;
    report = AskGpu<protocol::CallReport>(ControlKind::kEndCall, protocol::EndCallMessage{},
                                          After(late ? kLateReportPatience : kGpuPatience));
  }
  if (!report && end.kind != RunnerEnd::Kind::kGpuLost && !processes_.gpu_socket.closed()) {
    // It lives and does not answer: a kernel still runs, of a thread that did not wait for it.
    end.kind = RunnerEnd::Kind::kTimedOut;
  }
  ReadOutput();
  CallOutcome outcome = Judge(end, std::move(report), std::exchange(output_, {}));
  if (outcome.end != CallOutcome::End::kReturned) {
    End(outcome.reason);
  }
  return outcome;
}

void EmulatedSession::End(std::string why) {
  ended_ = std::move(why);
  processes_.runner.reset();
  processes_.gpu.reset();
}

}  // namespace kernelpro::referee
