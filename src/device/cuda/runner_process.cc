// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/runner_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "device/protocol/runner_message.h"

namespace kernelpro::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPageBytes = 4096;

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}

  ~Fd() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  [[nodiscard]] int get() const { return fd_; }

  [[nodiscard]] int Take() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Error System(const char* doing) {
  return Fail(ErrorCode::kIo, fmt::format("{}: {}", doing, ::strerrordesc_np(errno)));
}

/// libcudart.so of the toolkit: beside nvcc, or where toolkits usually lie.
fs::path FindCudaRuntime() {
  std::error_code error;
  std::vector<fs::path> toolkits;
  if (const char* home = std::getenv("CUDA_HOME")) {  // NOLINT(concurrency-mt-unsafe)
    toolkits.emplace_back(home);
  }
  if (const fs::path nvcc = FindOnPath("nvcc"); !nvcc.empty()) {
    toolkits.push_back(fs::canonical(nvcc, error).parent_path().parent_path());
  }
  toolkits.emplace_back("/usr/local/cuda");
  for (const fs::path& toolkit : toolkits) {
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib"}) {
      const fs::path file = toolkit / folder / "libcudart.so.13";
      if (fs::exists(file, error)) {
        return fs::canonical(file, error);
      }
    }
  }
  return {};
}

}  // namespace

Result<RunnerRecipe> RunnerRecipe::Find(std::string gpu_uuid) {
  RunnerRecipe recipe;
  recipe.gpu_uuid = std::move(gpu_uuid);
  recipe.runner = ExecutableFolder() / "kernelpro-runner";
  if (!fs::exists(recipe.runner)) {
    return Fail(ErrorCode::kUnavailable, fmt::format("{} is missing; build or install all of "
                                                     "kernelpro",
                                                     recipe.runner.string()));
  }
  recipe.runtime = FindCudaRuntime();
  if (recipe.runtime.empty()) {
    return Fail(ErrorCode::kUnavailable,
                "libcudart.so.13 was not found: not under $CUDA_HOME, beside nvcc or in "
                "/usr/local/cuda; install the CUDA 13 toolkit or set $CUDA_HOME");
  }
  return recipe;
}

Result<std::unique_ptr<RunnerProcess>> RunnerProcess::Start(const RunnerRecipe& recipe) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return System("open a socket pair for the runner");
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return System("open a pipe for the runner");
  }
  Fd output(ends[0]);
  const Fd output_end(ends[1]);
  const Fd page(::memfd_create("kernelpro-doorbell", MFD_CLOEXEC));
  if (page.get() < 0 || ::ftruncate(page.get(), kPageBytes) != 0) {
    return System("make the doorbell page");
  }
  void* const mapped =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page.get(), 0);
  if (mapped == MAP_FAILED) {
    return System("map the doorbell page");
  }
  std::unique_ptr<RunnerProcess> process(new RunnerProcess);
  process->doorbell_ = static_cast<protocol::Doorbell*>(mapped);

  ProcessSpec spec;
  spec.argv = {recipe.runner.string(), protocol::kCudaMode, recipe.runtime.string()};
  // Modules load at once, so that no first call pays for it; nothing is kept on disk.
  spec.environment = std::vector<std::string>{"LC_ALL=C", "CUDA_VISIBLE_DEVICES=" + recipe.gpu_uuid,
                                              "CUDA_MODULE_LOADING=EAGER", "CUDA_CACHE_DISABLE=1"};
  spec.folder = "/";
  spec.fds = {{theirs.get(), protocol::kRefereeFd},
              {page.get(), protocol::kDoorbellFd},
              {output_end.get(), protocol::kOutputFd}};
  KP_ASSIGN_OR_RETURN(process->child_, Child::Start(spec));
  process->socket_ = referee::FrameSocket(ours.Take(), protocol::kRunnerMessageLimit);
  process->output_ = output.Take();
  ::fcntl(process->output_, F_SETFL, O_NONBLOCK);
  return process;
}

RunnerProcess::~RunnerProcess() {
  (void)Finish();
  if (output_ >= 0) {
    ::close(output_);
  }
  ::munmap(doorbell_, kPageBytes);
}

void RunnerProcess::ReadOutput(std::string* text, std::size_t limit) {
  constexpr int kMostReads = 64;  // A flood must not hold the referee.
  std::array<char, 16384> chunk{};
  for (int i = 0; i < kMostReads && output_ >= 0; ++i) {
    const ssize_t n = ::read(output_, chunk.data(), chunk.size());
    if (n > 0) {
      const std::size_t room = limit - std::min(limit, text->size());
      text->append(chunk.data(), std::min(room, static_cast<std::size_t>(n)));
      continue;
    }
    if (n == 0) {
      ::close(output_);
      output_ = -1;
    }
    return;
  }
}

std::optional<ProcessResult> RunnerProcess::Finish() {
  if (!child_) {
    return std::nullopt;
  }
  const bool ended = !child_->RunsAfter(std::chrono::milliseconds(0));
  if (!ended) {
    child_->Kill();
  }
  auto result = child_->Wait();
  child_.reset();
  return ended && result ? std::optional(std::move(result).value()) : std::nullopt;
}

std::uint64_t RunnerProcess::ResidentBytes() const {
  std::ifstream file(fmt::format("/proc/{}/statm", child_ ? child_->pid() : 0));
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  file >> size >> resident;
  return resident * kPageBytes;
}

}  // namespace kernelpro::cuda
