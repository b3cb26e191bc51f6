// SPDX-License-Identifier: Apache-2.0
// Shows on a machine with an NVIDIA GPU that the driver works inside the runner's sandbox, and that
// the sandbox holds. No CUDA toolkit is needed:
//   g++ -std=c++20 -O1 -I src -I apps tests/gpu/sandbox_probe.cc apps/runner/sandbox*.cc
//     src/process/landlock.cc -ldl -lpthread -o sandbox_probe        (one line)
//   ./sandbox_probe --learn
// --late enters Landlock after the driver's start instead of before it. --learn starts over with
// every denied call allowed until all steps are reached, and lists what was denied on the way.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "device/protocol/runner_message.h"
#include "runner/sandbox.h"

namespace {

using namespace kernelpro;  // NOLINT(google-build-using-namespace): one small program
using runner::SandboxProfile;

constexpr const char* kPtx = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 p, .param .u32 v) {
  .reg .u64 %rd<4>; .reg .u32 %r<6>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [v];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;
  mad.lo.u32 %r5, %r3, %r4, %r2;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
})";
constexpr std::size_t kWords = 1U << 20U;
constexpr std::size_t kBytes = kWords * 4;

int failures = 0;

void Say(const char* step, bool pass, const std::string& text = {}) {
  failures += pass ? 0 : 1;
  std::printf("  %-34s %s %s\n", step, pass ? "PASS" : "FAIL", text.c_str());
  std::fflush(stdout);
}

/// libcuda.so.1 by hand: a call by name, its result checked.
class Driver {
 public:
  bool Load() {
    library_ = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    return library_ != nullptr;
  }

  template <typename... Arguments>
  bool Call(const char* name, Arguments... arguments) {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name));
    last_ = function == nullptr ? -1 : function(arguments...);
    if (last_ != 0) {
      std::printf("  %s: CUDA error %d, errno %d\n", name, last_, errno);
    }
    return last_ == 0;
  }

 private:
  void* library_ = nullptr;
  int last_ = 0;
};

using Handle = void*;

struct State {
  Driver driver;
  Handle context = nullptr, stream = nullptr, module = nullptr, function = nullptr;
  std::uint64_t memory = 0;
  std::uint32_t* host = nullptr;
  void* cudart = nullptr;

  bool Launch(std::uint32_t value, Handle on) {
    std::array<void*, 2> arguments = {&memory, &value};
    return driver.Call("cuLaunchKernel", function, static_cast<unsigned>(kWords / 256), 1U, 1U,
                       256U, 1U, 1U, 0U, on, arguments.data(), static_cast<void**>(nullptr));
  }

  bool ReadsBack(std::uint32_t value) {
    if (!driver.Call("cuMemcpyDtoHAsync_v2", static_cast<void*>(host), memory, kBytes, stream) ||
        !driver.Call("cuStreamSynchronize", stream)) {
      return false;
    }
    return std::all_of(host, host + kWords, [&](std::uint32_t word) { return word == value; });
  }

  bool Start() {
    int device = 0;
    return driver.Call("cuInit", 0U) && driver.Call("cuDeviceGet", &device, 0) &&
           driver.Call("cuDevicePrimaryCtxRetain", &context, device) &&
           driver.Call("cuCtxSetCurrent", context);
  }
};

bool Events(State& s) {
  Handle first = nullptr;
  Handle second = nullptr;
  float ms = 0;
  return s.driver.Call("cuEventCreate", &first, 0U) &&
         s.driver.Call("cuEventCreate", &second, 0U) &&
         s.driver.Call("cuEventRecord", first, s.stream) && s.Launch(3, s.stream) &&
         s.driver.Call("cuEventRecord", second, s.stream) &&
         s.driver.Call("cuEventSynchronize", second) &&
         s.driver.Call("cuEventElapsedTime", &ms, first, second) && ms > 0;
}

bool Graph(State& s) {
  Handle graph = nullptr;
  Handle executable = nullptr;
  return s.driver.Call("cuStreamBeginCapture_v2", s.stream, 2) && s.Launch(5, s.stream) &&
         s.driver.Call("cuStreamEndCapture", s.stream, &graph) &&
         s.driver.Call("cuGraphInstantiateWithFlags", &executable, graph, 0ULL) &&
         s.driver.Call("cuGraphLaunch", executable, s.stream) && s.ReadsBack(5);
}

bool InThread(State& s) {
  bool done = false;
  std::thread worker([&] {
    Handle stream = nullptr;
    done = s.driver.Call("cuCtxSetCurrent", s.context) &&
           s.driver.Call("cuStreamCreate", &stream, 0U) && s.Launch(7, stream) &&
           s.driver.Call("cuStreamSynchronize", stream);
  });
  worker.join();
  return done && s.ReadsBack(7);
}

bool Managed(State& s) {
  std::uint64_t memory = 0;
  return s.driver.Call("cuMemAllocManaged", &memory, kBytes, 1U) &&
         s.driver.Call("cuMemsetD32_v2", memory, 9U, kWords) && s.driver.Call("cuCtxSynchronize") &&
         *reinterpret_cast<std::uint32_t*>(memory) == 9 && s.driver.Call("cuMemFree_v2", memory);
}

bool Pool(State& s) {
  std::uint64_t memory = 0;
  return s.driver.Call("cuMemAllocAsync", &memory, kBytes, s.stream) &&
         s.driver.Call("cuMemFreeAsync", memory, s.stream) &&
         s.driver.Call("cuStreamSynchronize", s.stream);
}

/// The CUDA runtime, if there is one: its own start happens inside the sandbox, as a candidate's.
bool Runtime(State& s) {
  auto* const allocate =
      reinterpret_cast<int (*)(void**, std::size_t)>(::dlsym(s.cudart, "cudaMalloc"));
  auto* const create = reinterpret_cast<int (*)(void**)>(::dlsym(s.cudart, "cudaStreamCreate"));
  void* memory = nullptr;
  void* stream = nullptr;
  return allocate(&memory, kBytes) == 0 && create(&stream) == 0;
}

void GpuSteps(State& s) {
  std::uint64_t other = 0;
  Say("cuMemAlloc, cuMemFree", s.driver.Call("cuMemAlloc_v2", &other, kBytes) &&
                                   s.driver.Call("cuMemFree_v2", other) &&
                                   s.driver.Call("cuMemAlloc_v2", &s.memory, kBytes));
  Say("cuMemAlloc of 4 GiB", s.driver.Call("cuMemAlloc_v2", &other, std::size_t{4} << 30U) &&
                                 s.driver.Call("cuMemFree_v2", other));
  Say("cuMemAllocHost",
      s.driver.Call("cuMemAllocHost_v2", reinterpret_cast<void**>(&s.host), kBytes));
  Say("cuStreamCreate", s.driver.Call("cuStreamCreate", &s.stream, 0U));
  Say("cuModuleLoadData (PTX)",
      s.driver.Call("cuModuleLoadData", &s.module, static_cast<const void*>(kPtx)) &&
          s.driver.Call("cuModuleGetFunction", &s.function, s.module, "fill"));
  Say("launch, copy back", s.Launch(1, s.stream) && s.ReadsBack(1));
  Say("events", Events(s));
  Say("graph", Graph(s));
  Say("launch from a new thread", InThread(s));
  Say("managed memory", Managed(s));
  Say("memory pool", Pool(s));
  if (s.cudart != nullptr) {
    Say("CUDA runtime starts", Runtime(s));
  }
  Say("cuCtxSynchronize", s.driver.Call("cuCtxSynchronize"));
}

void FileSteps() {
  const auto refused = [](const char* path, int flags) {
    const int fd = ::open(path, flags, 0600);
    const bool held = fd < 0 && errno == EACCES;
    if (fd >= 0) {
      ::close(fd);
    }
    return held;
  };
  void* const library = ::dlopen(runner::kCandidateDescriptorPath, RTLD_NOW | RTLD_LOCAL);
  Say("dlopen of descriptor 5", library != nullptr, library == nullptr ? ::dlerror() : "");
  Say("read /etc/passwd is refused", refused("/etc/passwd", O_RDONLY));
  Say("write /tmp is refused", refused("/tmp/kp_probe_written", O_WRONLY | O_CREAT));
  const std::string parent = "/proc/" + std::to_string(::getppid()) + "/environ";
  Say("read the parent's environ is refused", refused(parent.c_str(), O_RDONLY));
}

void PrintReport(const runner::SandboxReport& report) {
  for (std::size_t i = 0; i < report.count; ++i) {
    const auto& measure = report.measures[i];
    std::printf("  sandbox: %s %s: %s\n", measure.name, measure.on ? "on" : "off",
                measure.detail.data());
  }
}

bool Enter(bool late, const std::vector<int>& extra, const std::function<void()>& start) {
  runner::SandboxReport report;
  if (!late) {
    runner::RestrictFiles(SandboxProfile::kDriver, report);
  }
  start();
  const bool entered = runner::EnterSandbox(SandboxProfile::kDriver, report, extra);
  PrintReport(report);
  Say("EnterSandbox", entered);
  return entered;
}

void RunGpu(bool late, const std::vector<int>& extra) {
  ::setenv("CUDA_CACHE_DISABLE", "1", 1);
  ::setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  State state;
  bool started = false;
  const bool entered = Enter(late, extra, [&] {
    if (!state.driver.Load()) {
      std::printf("  no libcuda.so.1: the GPU's steps are left out\n");
      return;
    }
    state.cudart = ::dlopen("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL);
    started = state.Start();
    Say("driver started", started);
  });
  if (entered && started) {
    GpuSteps(state);
  }
  FileSteps();
}

/// Runs `body` traced. The system calls that the filter trapped, in order; the end in `status`.
std::vector<int> Trace(const std::function<void()>& body, int* status) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    failures = 0;
    body();
    std::fflush(stdout);
    ::_exit(failures == 0 ? 0 : 1);
  }
  std::vector<int> trapped;
  ::waitpid(child, status, 0);
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
  ::ptrace(PTRACE_CONT, child, nullptr, nullptr);
  for (;;) {
    int now = 0;
    const pid_t thread = ::waitpid(-1, &now, __WALL);
    if (thread < 0 || (thread == child && !WIFSTOPPED(now))) {
      *status = now;
      return trapped;
    }
    if (!WIFSTOPPED(now)) {
      continue;
    }
    int signal = WSTOPSIG(now);
    siginfo_t info{};
    const bool known = ::ptrace(PTRACE_GETSIGINFO, thread, nullptr, &info) == 0;
    if (signal == SIGSYS && known) {
      user_regs_struct r{};
      ::ptrace(PTRACE_GETREGS, thread, nullptr, &r);
      std::printf("  DENIED system call %d (0x%llx, 0x%llx, 0x%llx) in %s\n", info.si_syscall,
                  r.rdi, r.rsi, r.rdx, thread == child ? "the main thread" : "another thread");
      trapped.push_back(info.si_syscall);
    } else if (signal == SIGTRAP || signal == SIGSTOP) {
      signal = 0;
    }
    ::ptrace(PTRACE_CONT, thread, nullptr, reinterpret_cast<void*>(std::intptr_t{signal}));
  }
}

/// A planted escape: the process must have been ended by the filter.
void Hostile(const char* what, const std::function<void()>& attack) {
  int status = 0;
  const std::vector<int> trapped = Trace(
      [&] {
        (void)std::freopen("/dev/null", "w", stdout);
        if (!Enter(false, {}, [] {})) {
          ::_exit(3);
        }
        attack();
        ::_exit(4);
      },
      &status);
  const bool held =
      !trapped.empty() && WIFEXITED(status) && WEXITSTATUS(status) == protocol::kForbiddenExit;
  Say(what, held, held ? "" : "status " + std::to_string(status));
}

void HostileSteps() {
  const pid_t self = ::getpid();
  Hostile("socket(AF_INET) ends it", [] { ::socket(AF_INET, SOCK_STREAM, 0); });
  Hostile("socket(AF_NETLINK) ends it", [] { ::socket(AF_NETLINK, SOCK_RAW, 0); });
  Hostile("connect ends it", [] {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "/tmp/x"};
    ::connect(3, reinterpret_cast<sockaddr*>(&address), sizeof address);
  });
  Hostile("fork ends it", [] { (void)::fork(); });
  Hostile("execve ends it", [] { ::execl("/bin/true", "true", nullptr); });
  Hostile("kill of the parent ends it", [self] { ::kill(self, 0); });
  Hostile("ptrace ends it", [self] { ::ptrace(PTRACE_ATTACH, self, nullptr, nullptr); });
  Hostile("unlink ends it", [] { ::unlink("/tmp/nothing"); });
  Hostile("setsid ends it", [] { ::setsid(); });
  Hostile("FIOSETOWN ends it", [self] { ::syscall(SYS_ioctl, 3, 0x8901, &self); });
}

/// Descriptor 3 is the referee's; 5 is a library in a folder that the sandbox does not allow.
bool OpenDescriptors() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0 || ::dup2(pair[1], 3) < 0) {
    return false;
  }
  void* const small = ::dlopen("libBrokenLocale.so.1", RTLD_LAZY);
  link_map* map = nullptr;
  if (small == nullptr || ::dlinfo(small, RTLD_DI_LINKMAP, &map) != 0) {
    return false;
  }
  const std::string command = "cp " + std::string(map->l_name) + " /tmp/kp_probe_library.so";
  ::dlclose(small);
  const bool copied = std::system(command.c_str()) == 0;
  const int fd = ::open("/tmp/kp_probe_library.so", O_RDONLY);
  return copied && fd >= 0 && ::dup2(fd, protocol::kLibraryFd) >= 0;
}

}  // namespace

int main(int argc, char** argv) {
  bool late = false;
  bool learn = false;
  for (int i = 1; i < argc; ++i) {
    late = late || std::strcmp(argv[i], "--late") == 0;
    learn = learn || std::strcmp(argv[i], "--learn") == 0;
  }
  if (!OpenDescriptors()) {
    std::printf("cannot prepare descriptors\n");
    return 2;
  }
  std::vector<int> extra;
  int status = 0;
  for (int round = 0; round < 40; ++round) {
    std::printf("GPU steps in the kDriver profile (Landlock %s the driver's start)\n",
                late ? "after" : "before");
    const std::vector<int> trapped = Trace([&] { RunGpu(late, extra); }, &status);
    if (WIFSIGNALED(status)) {
      std::printf("  the process was killed by signal %d\n", WTERMSIG(status));
    }
    if (trapped.empty() || !learn) {
      break;
    }
    extra.insert(extra.end(), trapped.begin(), trapped.end());
  }
  const bool gpu = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  for (const int number : extra) {
    std::printf("needed beyond the filter: system call %d\n", number);
  }
  std::printf("planted escapes\n");
  HostileSteps();
  ::unlink("/tmp/kp_probe_library.so");
  std::printf("%s\n", gpu && failures == 0 && extra.empty() ? "ALL PASS" : "NOT ALL PASSED");
  return gpu && failures == 0 && extra.empty() ? 0 : 1;
}
