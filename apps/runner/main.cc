// SPDX-License-Identifier: Apache-2.0
// kernelpro-runner: the untrusted process that holds one candidate. Started by the referee with
// four descriptors (protocol/runner_message.h) and the path of the CUDA runtime library. It owns
// nothing worth lying about: what it says can end a call, never make one right.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "device/protocol/bytes.h"
#include "device/protocol/channel.h"
#include "device/protocol/cuda_runner.h"
#include "device/protocol/once.h"
#include "device/protocol/runner_message.h"
#include "runner/cuda.h"
#include "runner/once.h"
#include "runner/sandbox.h"

namespace kernelpro::runner {
namespace {

using protocol::ByteWriter;
using protocol::Frame;
using protocol::RunnerMessage;

using CandidateFunction = int (*)(const void* arguments, void* stream);

Frame Message(RunnerMessage kind, std::uint64_t sequence, std::string_view text = {}) {
  ByteWriter out;
  out.Raw(std::as_bytes(std::span(text.data(), text.size())));
  return {static_cast<std::uint16_t>(kind), sequence, out.Take()};
}

[[noreturn]] void StartFailed(const char* doing, const char* why) {
  std::fprintf(stderr, "kernelpro-runner: %s: %s\n", doing, why);
  std::fflush(stderr);
  ::_exit(protocol::kStartFailedExit);
}

/// The referee makes the kernel kill this process before any other under memory pressure.
void OfferForKilling() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    [[maybe_unused]] const ssize_t n = ::write(fd, "1000", 4);
    ::close(fd);
  }
}

/// Trusted libraries are loaded before the filter: afterwards no file can be opened.
void LoadRuntime(const char* path) {
  void* const runtime = ::dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (runtime == nullptr) {
    StartFailed("cannot load the CUDA runtime", ::dlerror());
  }
  auto* const connect =
      reinterpret_cast<void (*)(int)>(::dlsym(runtime, "kernelpro_runtime_connect"));
  if (connect != nullptr) {
    connect(protocol::kGpuFd);
  }
}

Frame RunCandidate(void* library, const Frame& request) {
  const bool prepare = request.kind == static_cast<std::uint16_t>(RunnerMessage::kPrepare);
  auto* const function = reinterpret_cast<CandidateFunction>(
      ::dlsym(library, prepare ? "kernelpro_prepare" : "kernelpro_run"));
  if (function == nullptr) {
    return Message(RunnerMessage::kNoEntry, request.sequence);
  }
  try {
    ByteWriter out;
    out.U32(static_cast<std::uint32_t>(function(request.payload.data(), nullptr)));
    return {static_cast<std::uint16_t>(RunnerMessage::kReturned), request.sequence, out.Take()};
  } catch (const std::bad_alloc&) {
    return Message(RunnerMessage::kOutOfMemory, request.sequence);
  } catch (const std::exception& thrown) {
    return Message(RunnerMessage::kThrew, request.sequence, thrown.what());
  } catch (...) {
    return Message(RunnerMessage::kThrew, request.sequence, "an exception of unknown type");
  }
}

void Serve(const SandboxReport& report) {
  protocol::Channel referee(protocol::kRefereeFd, protocol::kRunnerMessageLimit);
  ByteWriter measures;
  report.WriteTo(measures);
  if (!referee.Send({static_cast<std::uint16_t>(RunnerMessage::kConfined), 0, measures.Take()})) {
    return;
  }
  void* library = nullptr;
  try {
    library = ::dlopen(kCandidatePath, RTLD_NOW | RTLD_LOCAL);
  } catch (const std::exception& thrown) {
    (void)referee.Send(Message(RunnerMessage::kLoadFailed, 0,
                               std::string("a static constructor threw: ") + thrown.what()));
    return;
  }
  if (library == nullptr) {
    const char* const why = ::dlerror();
    (void)referee.Send(Message(RunnerMessage::kLoadFailed, 0, why == nullptr ? "" : why));
    return;
  }
  std::fflush(nullptr);
  if (!referee.Send(Message(RunnerMessage::kLoaded, 0))) {
    return;
  }
  while (const auto request = referee.Receive()) {
    const Frame answer = RunCandidate(library, *request);
    std::fflush(nullptr);
    if (!referee.Send(answer)) {
      return;
    }
  }
}

}  // namespace
}  // namespace kernelpro::runner

int main(int argc, char** argv) {
  using namespace kernelpro;  // NOLINT(google-build-using-namespace): main only
  if (argc == 3 && std::strcmp(argv[1], protocol::kCudaMode) == 0) {
    runner::OfferForKilling();
    return runner::ServeCuda(argv[2]);
  }
  if (argc == 4 && std::strcmp(argv[1], protocol::kOnceMode) == 0) {
    runner::OfferForKilling();
    return runner::RunOnce(argv[2], argv[3]);
  }
  if (argc != 2) {
    std::fprintf(stderr,
                 "kernelpro-runner is started by kernelpro; it takes the path of the CUDA "
                 "runtime library and the descriptors 3 to 6\n");
    return protocol::kStartFailedExit;
  }
  runner::OfferForKilling();
  runner::LoadRuntime(argv[1]);
  if (::dup2(protocol::kOutputFd, 1) < 0 || ::dup2(protocol::kOutputFd, 2) < 0) {
    runner::StartFailed("cannot redirect output", std::strerror(errno));
  }
  ::close(protocol::kOutputFd);
  runner::SandboxReport report;
  if (!runner::EnterSandbox(runner::SandboxProfile::kEmulator, report)) {
    runner::StartFailed("cannot enter the sandbox (seccomp filter)", std::strerror(errno));
  }
  runner::Serve(report);
  // Not exit(): what the candidate registered with atexit has no business any more.
  ::_exit(0);
}
