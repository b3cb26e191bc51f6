// SPDX-License-Identifier: Apache-2.0
#include "device/referee/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "device/protocol/control.h"
#include "device/protocol/runner_message.h"

namespace kernelpro::referee {
namespace {

/// Two descriptors that close with the object unless taken.
class Pair {
 public:
  Pair() = default;

  ~Pair() {
    for (const int fd : ends_) {
      if (fd >= 0) {
        ::close(fd);
      }
    }
  }

  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  [[nodiscard]] Status OpenSockets() {
    return Check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()));
  }

  [[nodiscard]] Status OpenPipe() { return Check(::pipe2(ends_.data(), O_CLOEXEC)); }

  [[nodiscard]] int end(std::size_t index) const { return ends_[index]; }

  [[nodiscard]] int Take(std::size_t index) { return std::exchange(ends_[index], -1); }

 private:
  static Status Check(int result) {
    if (result != 0) {
      return Fail(ErrorCode::kIo, fmt::format("cannot open descriptors for a session: {}",
                                              ::strerrordesc_np(errno)));
    }
    return Ok();
  }

  std::array<int, 2> ends_{-1, -1};
};

class File {
 public:
  explicit File(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

  ~File() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

ProcessSpec RunnerSpec(const Programs& programs, const SessionRequest& request) {
  ProcessSpec spec;
  spec.argv = {programs.runner.string(), programs.runtime.string()};
  spec.environment = std::vector<std::string>{"LC_ALL=C"};
  spec.folder = "/";
  spec.limits.address_space_bytes = request.host_memory_bytes;
  spec.limits.open_files = 64;
  spec.limits.file_bytes = 1;
  return spec;
}

}  // namespace

Result<Programs> Programs::Find() {
  const std::filesystem::path folder = ExecutableFolder();
  Programs programs;
  programs.runner = folder / "kernelpro-runner";
  programs.emulated_gpu = folder / "kernelpro-emulated-gpu";
  programs.runtime = folder.parent_path() / "lib" / "kernelpro" / "libcudart.so.13";
  for (const auto* path : {&programs.runner, &programs.emulated_gpu, &programs.runtime}) {
    if (!std::filesystem::exists(*path)) {
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("{} is missing; build or install all of kernelpro", path->string()));
    }
  }
  return programs;
}

Result<Processes> Processes::Start(const Programs& programs, const std::string& gpu,
                                   const SessionRequest& request) {
  const File library(request.library);
  if (library.fd() < 0) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("cannot open the candidate's library {}: {}", request.library.string(),
                            ::strerrordesc_np(errno)));
  }
  Pair referee_gpu;
  Pair referee_runner;
  Pair gpu_runner;
  Pair output;
  KP_RETURN_IF_ERROR(referee_gpu.OpenSockets());
  KP_RETURN_IF_ERROR(referee_runner.OpenSockets());
  KP_RETURN_IF_ERROR(gpu_runner.OpenSockets());
  KP_RETURN_IF_ERROR(output.OpenPipe());

  ProcessSpec gpu_spec;
  gpu_spec.argv = {programs.emulated_gpu.string(), gpu};
  gpu_spec.folder = "/";
  gpu_spec.fds = {{referee_gpu.end(1), protocol::kRefereeFd},
                  {gpu_runner.end(0), protocol::kGpuFd}};
  ProcessSpec runner_spec = RunnerSpec(programs, request);
  runner_spec.fds = {{referee_runner.end(1), protocol::kRefereeFd},
                     {gpu_runner.end(1), protocol::kGpuFd},
                     {library.fd(), protocol::kLibraryFd},
                     {output.end(1), protocol::kOutputFd}};
  Processes started;
  KP_ASSIGN_OR_RETURN(started.gpu, Child::Start(gpu_spec));
  KP_ASSIGN_OR_RETURN(started.runner, Child::Start(runner_spec));
  started.gpu_socket = FrameSocket(referee_gpu.Take(0), protocol::kControlPayloadLimit);
  started.runner_socket = FrameSocket(referee_runner.Take(0), protocol::kRunnerMessageLimit);
  started.output = output.Take(0);
  ::fcntl(started.output, F_SETFL, O_NONBLOCK);
  return started;
}

}  // namespace kernelpro::referee
