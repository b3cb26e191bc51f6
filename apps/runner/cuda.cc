// SPDX-License-Identifier: Apache-2.0
#include "runner/cuda.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/driver.h"
#include "device/protocol/bytes.h"
#include "device/protocol/channel.h"
#include "device/protocol/cuda_runner.h"
#include "device/protocol/runner_message.h"
#include "runner/sandbox.h"
#include "runner/threads.h"

namespace kernelpro::runner {
namespace {

using cuda::Code;
using cuda::Driver;
using protocol::ByteReader;
using protocol::ByteWriter;
using protocol::Doorbell;
using protocol::Frame;
using protocol::RunnerMessage;

using CandidateFunction = int (*)(const void* arguments, void* stream);

Frame Answer(RunnerMessage kind, std::uint64_t sequence, ByteWriter out) {
  return {static_cast<std::uint16_t>(kind), sequence, out.Take()};
}

Frame TextAnswer(RunnerMessage kind, std::uint64_t sequence, const std::string& text) {
  ByteWriter out;
  out.Raw(std::as_bytes(std::span(text.data(), text.size())));
  return Answer(kind, sequence, std::move(out));
}

/// Addresses of functions are taken before the candidate is loaded: what it exports under the same
/// names changes nothing here.
class CudaRunner {
 public:
  /// Empty when the driver is ready.
  [[nodiscard]] std::string Start(const char* runtime);
  void Serve();

 private:
  [[nodiscard]] Frame Open(const Frame& request);
  [[nodiscard]] Frame Load(const Frame& request, int library);
  [[nodiscard]] Frame Run(const Frame& request);
  [[nodiscard]] Frame Batch(const Frame& request);
  /// Calls the candidate once; false: an exception left it, and *answer says so.
  [[nodiscard]] bool Call(CandidateFunction function, const std::byte* image, int* returned,
                          Frame* answer);
  [[nodiscard]] Frame Figures(std::uint64_t sequence, int returned, protocol::CudaFigures figures);
  void AwaitBell(const std::atomic<std::uint32_t>& bell, std::uint32_t number, bool patient);

  Driver driver_;
  int (*get_last_error_)() = nullptr;
  cuda::Stream stream_ = nullptr;
  cuda::Event begin_ = nullptr, end_ = nullptr, idle_ = nullptr;
  cuda::DevicePointer scratch_ = 0, gate_ = 0;
  Doorbell* doorbell_ = nullptr;
  SandboxReport sandbox_;
  void* library_ = nullptr;
};

std::string CudaRunner::Start(const char* runtime) {
  // Before the driver starts its threads, so that they are under it too.
  RestrictFiles(SandboxProfile::kDriver, sandbox_);
  if (std::string why = driver_.Open(); !why.empty()) {
    return why;
  }
  cuda::Context context = nullptr;
  int device = 0;
  Code code = driver_.cuInit(0);
  code = code != 0 ? code : driver_.cuDeviceGet(&device, 0);
  code = code != 0 ? code : driver_.cuDevicePrimaryCtxSetFlags_v2(device, cuda::kScheduleSpin);
  code = code != 0 ? code : driver_.cuDevicePrimaryCtxRetain(&context, device);
  code = code != 0 ? code : driver_.cuCtxSetCurrent(context);
  // An ordinary stream: work that a candidate puts on the default stream is ordered with it.
  code = code != 0 ? code : driver_.cuStreamCreate(&stream_, 0);
  code = code != 0 ? code : driver_.cuEventCreate(&begin_, 0);
  code = code != 0 ? code : driver_.cuEventCreate(&end_, 0);
  code = code != 0 ? code : driver_.cuEventCreate(&idle_, 0);
  code = code != 0 ? code : driver_.cuMemAlloc_v2(&scratch_, 256);
  // Nothing of the L2 is set aside for persisting lines, whatever the driver's default; not every
  // GPU can.
  (void)driver_.cuCtxSetLimit(cuda::kLimitPersistingL2, 0);
  if (code != 0) {
    return driver_.Describe(code);
  }
  void* const cudart = ::dlopen(runtime, RTLD_NOW | RTLD_GLOBAL);
  if (cudart == nullptr) {
    return std::string("cannot load the CUDA runtime: ") + ::dlerror();
  }
  get_last_error_ = reinterpret_cast<int (*)()>(::dlsym(cudart, "cudaGetLastError"));
  void* const page =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, protocol::kDoorbellFd, 0);
  if (get_last_error_ == nullptr || page == MAP_FAILED) {
    return "cannot map the doorbell, or the CUDA runtime has no cudaGetLastError";
  }
  doorbell_ = static_cast<Doorbell*>(page);
  code = driver_.cuMemHostRegister_v2(page, 4096, cuda::kHostRegisterDeviceMap);
  code = code != 0 ? code : driver_.cuMemHostGetDevicePointer_v2(&gate_, &doorbell_->gate, 0);
  // Where a stream cannot wait for the gate, an honest candidate would seem to run past it.
  code = code != 0 ? code : driver_.cuStreamWaitValue32_v2(stream_, gate_, 0, cuda::kWaitEqual);
  code = code != 0 ? code : driver_.cuStreamSynchronize(stream_);
  return code == 0 ? std::string()
                   : "make a stream wait for the referee (stream memory operations): " +
                         driver_.Describe(code);
}

Frame CudaRunner::Open(const Frame& request) {
  ByteReader in(request.payload);
  cuda::IpcHandle handle{};
  const auto bytes = in.Raw(sizeof handle);
  ByteWriter out;
  cuda::DevicePointer address = 0;
  Code code = 1;
  if (bytes.size() == sizeof handle) {
    std::memcpy(&handle, bytes.data(), sizeof handle);
    code = driver_.cuIpcOpenMemHandle_v2(&address, handle, cuda::kIpcLazyPeerAccess);
  }
  out.U64(code == 0 ? address : 0);
  out.Text(code == 0 ? std::string() : driver_.Describe(code));
  if (!EnterSandbox(SandboxProfile::kDriver, sandbox_)) {
    out = ByteWriter();
    out.U64(0);
    out.Text(std::string("cannot enter the sandbox: ") + std::strerror(errno));
  }
  sandbox_.WriteTo(out);
  return Answer(RunnerMessage::kOpened, request.sequence, std::move(out));
}

Frame CudaRunner::Load(const Frame& request, int library) {
  (void)::dup2(library, protocol::kLibraryFd);
  ::close(library);
  try {
    library_ = ::dlopen(kCandidateDescriptorPath, RTLD_NOW | RTLD_LOCAL);
  } catch (const std::exception& thrown) {
    return TextAnswer(RunnerMessage::kLoadFailed, request.sequence,
                      std::string("a static constructor threw: ") + thrown.what());
  }
  if (library_ == nullptr) {
    const char* const why = ::dlerror();
    return TextAnswer(RunnerMessage::kLoadFailed, request.sequence, why == nullptr ? "" : why);
  }
  ::close(protocol::kLibraryFd);
  return TextAnswer(RunnerMessage::kLoaded, request.sequence, "");
}

bool CudaRunner::Call(CandidateFunction function, const std::byte* image, int* returned,
                      Frame* answer) {
  try {
    *returned = function(image, stream_);
    return true;
  } catch (const std::bad_alloc&) {
    *answer = TextAnswer(RunnerMessage::kOutOfMemory, answer->sequence, "");
  } catch (const std::exception& thrown) {
    *answer = TextAnswer(RunnerMessage::kThrew, answer->sequence, thrown.what());
  } catch (...) {
    *answer = TextAnswer(RunnerMessage::kThrew, answer->sequence, "an exception of unknown type");
  }
  return false;
}

Frame CudaRunner::Figures(std::uint64_t sequence, int returned, protocol::CudaFigures figures) {
  std::size_t persisting = 0;
  int capturing = 0;
  (void)driver_.cuCtxGetLimit(&persisting, cuda::kLimitPersistingL2);
  (void)driver_.cuStreamIsCapturing(stream_, &capturing);
  ByteWriter out;
  out.U32(static_cast<std::uint32_t>(returned));
  out.U32(static_cast<std::uint32_t>(figures.synchronize));
  out.U32(static_cast<std::uint32_t>(get_last_error_()));
  out.U8(capturing != 0 ? 1 : 0);
  out.U32(CandidateThreads());
  out.U64(persisting);
  out.F64(figures.stream_us);
  out.F64(figures.context_us);
  return Answer(RunnerMessage::kReturned, sequence, std::move(out));
}

Frame CudaRunner::Run(const Frame& request) {
  const bool prepare = request.kind == static_cast<std::uint16_t>(RunnerMessage::kPrepare);
  auto* const function = reinterpret_cast<CandidateFunction>(
      ::dlsym(library_, prepare ? "kernelpro_prepare" : "kernelpro_run"));
  Frame answer{0, request.sequence, {}};
  if (function == nullptr) {
    return TextAnswer(RunnerMessage::kNoEntry, request.sequence, "");
  }
  const bool gated = request.kind == static_cast<std::uint16_t>(RunnerMessage::kGated);
  const auto number = static_cast<std::uint32_t>(request.sequence);
  if (gated) {
    (void)driver_.cuStreamWaitValue32_v2(stream_, gate_, number, cuda::kWaitEqual);
  }
  int returned = 0;
  if (!Call(function, request.payload.data(), &returned, &answer)) {
    return answer;
  }
  if (gated) {
    doorbell_->warm.store(number, std::memory_order_release);
  }
  protocol::CudaFigures figures;
  figures.synchronize = driver_.cuCtxSynchronize();
  return Figures(request.sequence, returned, figures);
}

void CudaRunner::AwaitBell(const std::atomic<std::uint32_t>& bell, std::uint32_t number,
                           bool patient) {
  while (bell.load(std::memory_order_acquire) != number) {
    if (patient) {
      ::sched_yield();
    } else {
      __builtin_ia32_pause();
    }
  }
}

Frame CudaRunner::Batch(const Frame& request) {
  ByteReader in(request.payload);
  const std::uint32_t bytes = in.U32();
  const std::uint32_t warm = in.U32();
  const std::uint32_t count = in.U32();
  const auto packed = in.Raw(std::uint64_t{bytes} * (std::uint64_t{warm} + count));
  auto* const function = reinterpret_cast<CandidateFunction>(::dlsym(library_, "kernelpro_run"));
  Frame answer{0, request.sequence, {}};
  if (function == nullptr || !in.Complete()) {
    return TextAnswer(RunnerMessage::kNoEntry, request.sequence, "");
  }
  // Each image where any of its fields may stand.
  const std::size_t stride = (bytes + 63U) / 64U * 64U;
  std::vector<std::byte> images(stride * (warm + count) + 64);
  std::byte* const first =
      images.data() + (64 - reinterpret_cast<std::uintptr_t>(images.data()) % 64) % 64;
  for (std::size_t i = 0; i < warm + count; ++i) {
    std::memcpy(first + i * stride, packed.data() + i * bytes, bytes);
  }
  const auto number = static_cast<std::uint32_t>(request.sequence);
  protocol::CudaFigures figures;
  int returned = 0;
  int failed = 0;
  for (std::size_t i = 0; i < warm; ++i) {
    if (!Call(function, first + i * stride, &returned, &answer)) {
      return answer;
    }
    failed = failed != 0 ? failed : returned;
  }
  figures.synchronize = driver_.cuCtxSynchronize();
  if (failed != 0 || figures.synchronize != 0) {
    return Figures(request.sequence, failed, figures);
  }
  doorbell_->warm.store(number, std::memory_order_release);
  AwaitBell(doorbell_->wake, number, true);
  (void)driver_.cuMemsetD8Async(scratch_, 0, 256, stream_);
  (void)driver_.cuCtxSynchronize();
  doorbell_->awake.store(number, std::memory_order_release);
  AwaitBell(doorbell_->go, number, false);

  (void)driver_.cuEventRecord(begin_, stream_);
  for (std::size_t i = warm; i < warm + count; ++i) {
    if (!Call(function, first + i * stride, &returned, &answer)) {
      return answer;
    }
    failed = failed != 0 ? failed : returned;
  }
  (void)driver_.cuEventRecord(end_, stream_);
  figures.synchronize = driver_.cuCtxSynchronize();
  doorbell_->done.store(number, std::memory_order_release);

  (void)driver_.cuEventRecord(idle_, stream_);
  (void)driver_.cuCtxSynchronize();
  float milliseconds = 0;
  if (driver_.cuEventElapsedTime(&milliseconds, begin_, end_) == 0) {
    figures.stream_us = 1000.0 * static_cast<double>(milliseconds);
  }
  if (driver_.cuEventElapsedTime(&milliseconds, begin_, idle_) == 0) {
    figures.context_us = 1000.0 * static_cast<double>(milliseconds);
  }
  return Figures(request.sequence, failed, figures);
}

/// One frame and the descriptor that came with it (-1: none).
class Receiver {
 public:
  [[nodiscard]] bool Next(Frame* frame, int* descriptor) {
    *descriptor = -1;
    while (true) {
      if (auto next = reader_.Next()) {
        *frame = std::move(*next);
        return true;
      }
      if (reader_.broken() || !Fill(descriptor)) {
        return false;
      }
    }
  }

 private:
  bool Fill(int* descriptor) {
    iovec part{chunk_.data(), chunk_.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(protocol::kRefereeFd, &message, MSG_CMSG_CLOEXEC);
    if (n <= 0) {
      return n < 0 && errno == EINTR;
    }
    const cmsghdr* const c = CMSG_FIRSTHDR(&message);
    if (c != nullptr && c->cmsg_type == SCM_RIGHTS) {
      std::memcpy(descriptor, CMSG_DATA(c), sizeof *descriptor);
    }
    reader_.Feed(std::span(chunk_).first(static_cast<std::size_t>(n)));
    return true;
  }

  protocol::FrameReader reader_{protocol::kBatchLimit};
  std::vector<std::byte> chunk_ = std::vector<std::byte>(256U << 10U);
};

void CudaRunner::Serve() {
  protocol::Channel referee(protocol::kRefereeFd, protocol::kRunnerMessageLimit);
  if (!referee.Send(TextAnswer(RunnerMessage::kReady, 0, ""))) {
    return;
  }
  Receiver receiver;
  Frame request;
  int descriptor = -1;
  while (receiver.Next(&request, &descriptor)) {
    Frame answer;
    switch (static_cast<RunnerMessage>(request.kind)) {
      case RunnerMessage::kOpen:
        answer = Open(request);
        break;
      case RunnerMessage::kLoad:
        answer = Load(request, descriptor);
        break;
      case RunnerMessage::kBatch:
        answer = Batch(request);
        break;
      default:
        answer = Run(request);
        break;
    }
    std::fflush(nullptr);
    if (!referee.Send(answer)) {
      return;
    }
  }
}

}  // namespace

int ServeCuda(const char* runtime) {
  static CudaRunner runner;  // Not on the stack that the candidate's frames lie next to.
  if (const std::string why = runner.Start(runtime); !why.empty()) {
    std::fprintf(stderr, "kernelpro-runner: cannot use the GPU: %s\n", why.c_str());
    std::fflush(stderr);
    return protocol::kStartFailedExit;
  }
  if (::dup2(protocol::kOutputFd, 1) < 0 || ::dup2(protocol::kOutputFd, 2) < 0) {
    std::fprintf(stderr, "kernelpro-runner: cannot redirect output: %s\n", std::strerror(errno));
    return protocol::kStartFailedExit;
  }
  ::close(protocol::kOutputFd);
  runner.Serve();
  // Not exit(): what the candidate registered with atexit has no business any more.
  ::_exit(0);
}

}  // namespace kernelpro::runner
