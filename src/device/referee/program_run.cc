// SPDX-License-Identifier: Apache-2.0
#include "device/referee/program_run.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/text.h"
#include "device/protocol/control.h"
#include "device/protocol/runner_message.h"
#include "device/referee/frame_socket.h"
#include "device/referee/processes.h"
#include "process/process.h"

namespace kernelpro {
namespace {

using protocol::ControlKind;
using referee::Deadline;
using referee::FrameSocket;
using std::chrono::milliseconds;

constexpr milliseconds kGpuPatience{20'000};
constexpr std::size_t kPrintedLimit = 65536;

Deadline After(milliseconds patience) {
  return std::chrono::steady_clock::now() + patience;
}

class Sockets {
 public:
  Sockets() = default;

  ~Sockets() {
    for (const int fd : ends_) {
      if (fd >= 0) {
        ::close(fd);
      }
    }
  }

  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;

  [[nodiscard]] bool Open() {
    return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) == 0;
  }

  [[nodiscard]] int end(std::size_t index) const { return ends_.at(index); }

  [[nodiscard]] int Take(std::size_t index) { return std::exchange(ends_.at(index), -1); }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// The emulated GPU's process and our end of its socket.
class GpuProcess {
 public:
  GpuProcess(Child child, FrameSocket socket)
      : child_(std::move(child)), socket_(std::move(socket)) {}

  template <class Answer, class Message>
  std::optional<Answer> Ask(ControlKind kind, const Message& message) {
    const Deadline deadline = After(kGpuPatience);
    const protocol::Frame request = protocol::ToFrame(kind, ++sequence_, message);
    if (!socket_.Send(request, deadline)) {
      return std::nullopt;
    }
    const auto frame = socket_.Wait(deadline);
    if (!frame || frame->sequence != request.sequence || frame->kind != request.kind) {
      return std::nullopt;
    }
    return protocol::DecodeControl<Answer>(*frame);
  }

 private:
  Child child_;
  FrameSocket socket_;
  std::uint64_t sequence_ = 0;
};

/// Our libcudart.so.13 stands before NVIDIA's.
std::vector<std::string> Environment(const std::filesystem::path& runtime) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("LD_LIBRARY_PATH=")) {
      environment.emplace_back(*entry);
    }
  }
  const char* const old = std::getenv("LD_LIBRARY_PATH");
  environment.push_back(fmt::format("LD_LIBRARY_PATH={}{}{}", runtime.parent_path().string(),
                                    old != nullptr ? ":" : "", old != nullptr ? old : ""));
  environment.push_back(fmt::format("KERNELPRO_EMULATED_GPU_FD={}", protocol::kGpuFd));
  return environment;
}

Error Why(const ProcessResult& result, const ProcessSpec& spec, const std::string& printed) {
  switch (result.end) {
    case ProcessResult::End::kCancelled:
      return Fail(ErrorCode::kCancelled, "stopped on request");
    case ProcessResult::End::kTimedOut:
      return Fail(ErrorCode::kTimeout,
                  fmt::format("{} {}", spec.argv[0], DescribeEnd(result, spec.limits)));
    default:
      return Fail(
          ErrorCode::kToolFailed,
          fmt::format("{} {} without launching a kernel{}{}", spec.argv[0],
                      DescribeEnd(result, spec.limits), printed.empty() ? "" : ":\n", printed));
  }
}

Result<ProgramRun> Conclude(const ProcessResult& result, const ProcessSpec& spec,
                            std::optional<protocol::CallReport> report) {
  ProgramRun run;
  run.printed = Printable(result.out + result.err, kPrintedLimit);
  run.exit_code = result.end == ProcessResult::End::kExited ? result.exit_code : -1;
  if (!report) {
    return Fail(ErrorCode::kUnavailable, "the emulated GPU's process is gone");
  }
  if (!report->unsupported.empty()) {
    return Fail(ErrorCode::kToolFailed,
                "the emulator cannot run this program: " + Printable(report->unsupported, 2000));
  }
  run.launches = std::move(report->launches);
  run.launches_left_out = report->launches_left_out;
  run.faults = std::move(report->faults);
  for (const EmulatedLaunch& launch : run.launches) {
    run.faults.insert(run.faults.end(), launch.report.faults.begin(), launch.report.faults.end());
  }
  for (const protocol::ErrorNote& note : report->errors) {
    run.messages.push_back(Printable(note.text, 500));
  }
  if (run.launches.empty() || result.end == ProcessResult::End::kCancelled ||
      result.end == ProcessResult::End::kTimedOut) {
    Error error = Why(result, spec, run.printed);
    for (const std::string& message : run.messages) {
      error.message += "\nemulated GPU: " + message;
    }
    return error;
  }
  return run;
}

}  // namespace

Result<ProgramRun> RunProgramOnEmulator(const ProgramRequest& request,
                                        const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(const referee::Programs programs, referee::Programs::Find());
  Sockets referee_gpu;
  Sockets gpu_program;
  if (!referee_gpu.Open() || !gpu_program.Open()) {
    return Fail(ErrorCode::kIo, "cannot open sockets for the emulated GPU");
  }
  ProcessSpec gpu_spec;
  gpu_spec.argv = {programs.emulated_gpu.string(), request.gpu};
  gpu_spec.folder = "/";
  gpu_spec.fds = {{referee_gpu.end(1), protocol::kRefereeFd},
                  {gpu_program.end(0), protocol::kGpuFd}};
  KP_ASSIGN_OR_RETURN(Child gpu_child, Child::Start(gpu_spec));
  GpuProcess gpu(std::move(gpu_child),
                 FrameSocket(referee_gpu.Take(0), protocol::kControlPayloadLimit));
  const auto opened =
      gpu.Ask<protocol::Answer>(ControlKind::kOpen, protocol::OpenMessage{request.kernels});
  if (!opened || !opened->error.empty()) {
    return Fail(ErrorCode::kUnavailable,
                opened ? opened->error : "the emulated GPU's process did not start");
  }
  (void)gpu.Ask<protocol::Answer>(
      ControlKind::kBeginCall,
      protocol::BeginCallMessage{request.mode, request.instruction_budget});
  ProcessSpec spec;
  spec.argv = request.argv;
  spec.environment = Environment(programs.runtime);
  spec.fds = {{gpu_program.end(1), protocol::kGpuFd}};
  spec.limits.wall = request.wall_limit;
  KP_ASSIGN_OR_RETURN(const ProcessResult result, RunProcess(spec, stop));
  return Conclude(result, spec,
                  gpu.Ask<protocol::CallReport>(ControlKind::kEndCall, protocol::EndCallMessage{}));
}

}  // namespace kernelpro
