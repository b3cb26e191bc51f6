// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "device/buffer_range.h"
#include "device/cuda/session_message.h"
#include "device/protocol/bytes.h"
#include "device/protocol/runner_message.h"
#include "device/protocol/sandbox_report.h"

namespace kernelpro::cuda {
namespace {

using protocol::RunnerMessage;
using referee::Deadline;
using referee::RunnerEnd;

/// What the driver itself may take for a candidate's context, beyond which memory is the
/// candidate's.
constexpr std::uint64_t kContextBytes = 1ULL << 30U;

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

}  // namespace

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
  sandbox_ = protocol::ReadSandboxReport(in);
  if (arena_in_runner_ == 0 || !in.Complete()) {
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("the runner could not get ready on the GPU: {}. It must open device memory "
                    "of another process (CUDA IPC), which WSL and some containers refuse; "
                    "--device emulator needs no GPU",
                    why));
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
