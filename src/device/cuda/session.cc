// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/text.h"
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
/// What the driver itself may take for a candidate's context, beyond which memory is the
/// candidate's.
constexpr std::uint64_t kContextBytes = 1ULL << 30U;

Deadline After(milliseconds patience) {
  return std::chrono::steady_clock::now() + patience;
}

Frame Message(RunnerMessage kind, std::uint64_t sequence, std::vector<std::byte> payload = {}) {
  return {static_cast<std::uint16_t>(kind), sequence, std::move(payload)};
}

/// A sealed copy of the library in memory: the runner needs no path to it, and nobody can change
/// it.
Result<int> SealedCopy(const std::filesystem::path& library) {
  const int file = ::open(library.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return Fail(ErrorCode::kNotFound, fmt::format("cannot open the candidate's library {}: {}",
                                                  library.string(), ::strerrordesc_np(errno)));
  }
  struct stat about{};
  ::fstat(file, &about);
  const int copy = ::memfd_create("candidate.so", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  off_t done = 0;
  while (copy >= 0 && done < about.st_size &&
         ::sendfile(copy, file, &done, static_cast<std::size_t>(about.st_size - done)) > 0) {
  }
  ::close(file);
  if (copy < 0 || done < about.st_size) {
    if (copy >= 0) {
      ::close(copy);
    }
    return Fail(ErrorCode::kIo, fmt::format("cannot copy {} into memory", library.string()));
  }
  ::fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return copy;
}

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

CudaSession::CudaSession(Gpu& gpu, std::unique_ptr<RunnerProcess> runner,
                         std::unique_ptr<Arena> arena, const SessionRequest& request)
    : gpu_(gpu),
      runner_(std::move(runner)),
      arena_(std::move(arena)),
      host_memory_bytes_(request.host_memory_bytes) {}

CudaSession::~CudaSession() = default;

Result<std::unique_ptr<CudaSession>> CudaSession::Open(Gpu& gpu,
                                                       std::unique_ptr<RunnerProcess> runner,
                                                       std::unique_ptr<Arena> arena,
                                                       const SessionRequest& request) {
  std::unique_ptr<CudaSession> session(
      new CudaSession(gpu, std::move(runner), std::move(arena), request));
  KP_RETURN_IF_ERROR(session->OpenArena(After(request.start_limit)));
  KP_RETURN_IF_ERROR(session->Load(request));
  return session;
}

Status CudaSession::OpenArena(Deadline deadline) {
  const auto ready = runner_->socket().Wait(deadline);
  if (!ready || ready->kind != static_cast<std::uint16_t>(RunnerMessage::kReady)) {
    const auto result = runner_->Finish();
    return Fail(ErrorCode::kUnavailable,
                result && !result->err.empty()
                    ? std::string(Trim(result->err))
                    : "the runner did not start the GPU within the start limit");
  }
  // Nothing of the last candidate, and nothing that could be taken for an answer.
  const Memory& memory = arena_->memory();
  gpu_.kernels().Poison(memory.address(), memory.bytes(), 0x6b70);
  KP_RETURN_IF_ERROR(gpu_.Synchronize());
  IpcHandle handle{};
  KP_RETURN_IF_ERROR(Check(gpu_.driver(),
                           gpu_.driver().cuIpcGetMemHandle(&handle, memory.address()),
                           "share device memory with the runner (CUDA IPC)"));
  protocol::ByteWriter out;
  out.Raw(std::as_bytes(std::span(handle.bytes)));
  out.U64(memory.bytes());
  if (!runner_->socket().Send(Message(RunnerMessage::kOpen, ++sequence_, out.Take()), deadline)) {
    return Fail(ErrorCode::kUnavailable, "the runner ended before it had a candidate");
  }
  const auto opened = runner_->socket().Wait(deadline);
  if (!opened || opened->kind != static_cast<std::uint16_t>(RunnerMessage::kOpened)) {
    return Fail(ErrorCode::kUnavailable, "the runner did not open the shared device memory");
  }
  protocol::ByteReader in(opened->payload);
  arena_in_runner_ = in.U64();
  const std::string why = in.Text();
  const std::uint32_t measures = in.U32();
  for (std::uint32_t i = 0; i < measures && in.ok(); ++i) {
    SandboxMeasure measure;
    measure.name = in.Text();
    measure.on = in.U8() != 0;
    measure.detail = in.Text();
    sandbox_.push_back(std::move(measure));
  }
  if (arena_in_runner_ == 0 || !in.Complete()) {
    return Fail(ErrorCode::kUnavailable,
                "the runner cannot open device memory of another process (CUDA IPC): " + why);
  }
  free_at_start_ = gpu_.FreeBytes();
  return Ok();
}

Status CudaSession::Load(const SessionRequest& request) {
  KP_ASSIGN_OR_RETURN(const int library, SealedCopy(request.library));
  const std::uint64_t sequence = ++sequence_;
  const Deadline deadline = After(request.start_limit);
  const bool sent =
      runner_->socket().Send(Message(RunnerMessage::kLoad, sequence), deadline, library);
  ::close(library);
  RunnerEnd end = sent ? Await(sequence, deadline, {}) : RunnerEnd{.kind = RunnerEnd::Kind::kGone};
  protocol::CudaFigures figures;
  CallOutcome outcome = Conclude(std::move(end), &figures, request.start_limit);
  if (outcome.end != CallOutcome::End::kReturned) {
    if (outcome.end == CallOutcome::End::kTimedOut) {
      outcome.reason = "the candidate's static constructors did not end within the start limit";
    }
    load_failure_ = std::move(outcome);
  }
  return Ok();
}

Result<BufferId> CudaSession::Allocate(const BufferRequest& request) {
  if (!ended_.empty() && !load_failure_) {
    return Fail(ErrorCode::kUnavailable, "the session has ended: " + ended_);
  }
  if (request.bytes == 0) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("buffer '{}' has no bytes", request.name));
  }
  KP_RETURN_IF_ERROR(gpu_.MakeCurrent());
  KP_ASSIGN_OR_RETURN(const BufferId id, arena_->Place(request, gpu_.kernels()));
  KP_RETURN_IF_ERROR(gpu_.Zero(arena_->Address(*arena_->Find(id)), request.bytes));
  return id;
}

Status CudaSession::Free(BufferId id) {
  arena_->Remove(id);
  return Ok();
}

Result<DevicePointer> CudaSession::Address(BufferId id) const {
  const Arena::Buffer* const buffer = arena_->Find(id);
  if (buffer == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("no buffer {} in this session", id));
  }
  return arena_->Address(*buffer);
}

namespace {

Status CheckRange(std::uint64_t offset, std::size_t bytes, std::uint64_t size) {
  if (offset > size || bytes > size - offset) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("bytes {} to {} of a buffer of {}", offset, offset + bytes, size));
  }
  return Ok();
}

}  // namespace

Status CudaSession::Write(BufferId id, std::uint64_t offset, std::span<const std::byte> bytes) {
  KP_ASSIGN_OR_RETURN(const DevicePointer address, Address(id));
  KP_RETURN_IF_ERROR(CheckRange(offset, bytes.size(), arena_->Find(id)->bytes));
  KP_RETURN_IF_ERROR(gpu_.MakeCurrent());
  return gpu_.Upload(address + offset, bytes);
}

Status CudaSession::Read(BufferId id, std::uint64_t offset, std::span<std::byte> bytes) {
  KP_ASSIGN_OR_RETURN(const DevicePointer address, Address(id));
  KP_RETURN_IF_ERROR(CheckRange(offset, bytes.size(), arena_->Find(id)->bytes));
  KP_RETURN_IF_ERROR(gpu_.MakeCurrent());
  return gpu_.Download(bytes, address + offset);
}

Result<std::string> CudaSession::BrokenGuard(std::span<const BufferId> ids) {
  std::vector<Band> bands;
  for (const BufferId id : ids) {
    const Arena::Buffer* const buffer = arena_->Find(id);
    if (buffer != nullptr) {
      std::ranges::copy(arena_->Bands(*buffer), std::back_inserter(bands));
    }
  }
  KP_RETURN_IF_ERROR(gpu_.MakeCurrent());
  KP_ASSIGN_OR_RETURN(const auto changed, gpu_.kernels().ChangedBand(bands));
  return changed ? arena_->Find(ids[*changed / 2])->name : std::string();
}

Result<bool> CudaSession::GuardsIntact(BufferId id) {
  KP_RETURN_IF_ERROR(Status(Address(id).ok() ? Ok() : Status(Address(id).error())));
  KP_ASSIGN_OR_RETURN(const std::string broken, BrokenGuard(std::span(&id, 1)));
  return broken.empty();
}

Result<std::vector<std::byte>> CudaSession::Image(std::span<const std::byte> arguments,
                                                  std::span<const PointerSlot> pointers) const {
  std::vector<std::byte> image(arguments.begin(), arguments.end());
  for (const PointerSlot& slot : pointers) {
    const Arena::Buffer* const buffer = arena_->Find(slot.buffer);
    if (buffer == nullptr) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("no buffer {} in this session", slot.buffer));
    }
    const std::uint64_t address = arena_in_runner_ + buffer->offset;
    KP_RETURN_IF_ERROR(CheckRange(slot.offset, sizeof address, image.size()));
    std::memcpy(image.data() + slot.offset, &address, sizeof address);
  }
  return image;
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

std::uint64_t CudaSession::ForeignBytes() const {
  const std::uint64_t free = gpu_.FreeBytes();
  const std::uint64_t taken = free_at_start_ > free ? free_at_start_ - free : 0;
  return taken > kContextBytes ? taken - kContextBytes : 0;
}

std::unique_ptr<Arena> CudaSession::TakeArena() {
  End("over");
  return std::move(arena_);
}

void CudaSession::End(std::string why) {
  if (ended_.empty()) {
    ended_ = std::move(why);
  }
  if (runner_) {
    (void)runner_->Finish();
  }
}

}  // namespace kernelpro::cuda
