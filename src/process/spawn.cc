// SPDX-License-Identifier: Apache-2.0
#include "process/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "process/confine.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX wants it declared

namespace kernelpro {
namespace {

std::string Reason(int error) {
  return std::error_code(error, std::generic_category()).message();
}

/// A pipe whose ends close with the object, unless taken.
class Pipe {
 public:
  Pipe() = default;

  ~Pipe() {
    CloseRead();
    CloseWrite();
  }

  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] bool Open() { return ::pipe2(ends_.data(), O_CLOEXEC) == 0; }

  [[nodiscard]] int read() const { return ends_[0]; }

  [[nodiscard]] int write() const { return ends_[1]; }

  void CloseRead() { Close(&ends_[0]); }

  void CloseWrite() { Close(&ends_[1]); }

  [[nodiscard]] int TakeRead() { return Take(&ends_[0]); }

  [[nodiscard]] int TakeWrite() { return Take(&ends_[1]); }

 private:
  static void Close(int* fd) {
    if (*fd >= 0) {
      ::close(*fd);
      *fd = -1;
    }
  }

  static int Take(int* fd) {
    const int taken = *fd;
    *fd = -1;
    ::fcntl(taken, F_SETFL, O_NONBLOCK);
    return taken;
  }

  std::array<int, 2> ends_{-1, -1};
};

/// Everything the child needs, made before fork: after it only async-signal-safe calls are allowed.
struct Prepared {
  std::vector<char*> argv;
  std::vector<char*> environment;
  const char* folder = nullptr;
  int input = -1;
  int out = -1;
  int err = -1;
  int error_pipe = -1;
  std::vector<InheritedFd> fds;
  ProcessLimits limits;
  PreparedConfinement* confinement = nullptr;
};

/// What the child tells before exec: how its confinement went, when it has one, and an errno when
/// exec or something before it failed.
struct Start {
  std::optional<PreparedConfinement::Outcome> confinement;
  int error = 0;
};

void SetLimit(__rlimit_resource which, std::uint64_t value) {
  if (value != 0) {
    const rlimit limit{value, value};
    ::setrlimit(which, &limit);
  }
}

/// SIGXCPU at the limit says what happened; SIGKILL comes when that is ignored.
void SetCpuLimit(std::uint64_t seconds) {
  constexpr std::uint64_t kToEnd = 5;
  if (seconds != 0) {
    const rlimit limit{seconds, seconds + kToEnd};
    ::setrlimit(RLIMIT_CPU, &limit);
  }
}

[[noreturn]] void FailInChild(const Prepared& prepared) {
  const int error = errno;
  [[maybe_unused]] const ssize_t n = ::write(prepared.error_pipe, &error, sizeof error);
  ::_exit(127);
}

/// Moves the wanted descriptors to their numbers; everything else closes at exec.
void ArrangeDescriptors(Prepared& prepared) {
  constexpr int kAbove = 256;  // Clear of every target number, so that no dup2 overwrites a source.
  for (InheritedFd& fd : prepared.fds) {
    fd.ours = ::fcntl(fd.ours, F_DUPFD_CLOEXEC, kAbove);
  }
  prepared.error_pipe = ::fcntl(prepared.error_pipe, F_DUPFD_CLOEXEC, kAbove);
  if (prepared.confinement != nullptr) {
    prepared.confinement->MoveDescriptor(kAbove);
  }
  if (::dup2(prepared.input, 0) < 0 || ::dup2(prepared.out, 1) < 0 || ::dup2(prepared.err, 2) < 0) {
    FailInChild(prepared);
  }
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const InheritedFd& fd : prepared.fds) {
    if (fd.ours < 0 || ::dup2(fd.ours, fd.child_fd) < 0) {
      FailInChild(prepared);
    }
  }
}

void DieWith(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(127);  // The parent died between fork and prctl.
  }
}

void Confine(const Prepared& prepared, pid_t parent) {
  const PreparedConfinement::Outcome outcome = prepared.confinement->Apply();
  const ssize_t told = ::write(prepared.error_pipe, &outcome, sizeof outcome);
  if (told != static_cast<ssize_t>(sizeof outcome) || !prepared.confinement->Suffices(outcome)) {
    ::_exit(127);
  }
  DieWith(parent);  // The kernel forgets it when a process changes its credentials.
}

[[noreturn]] void RunChild(Prepared& prepared, pid_t parent) {
  ::setpgid(0, 0);
  DieWith(parent);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGCHLD}) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  if (prepared.folder != nullptr && ::chdir(prepared.folder) != 0) {
    FailInChild(prepared);
  }
  ArrangeDescriptors(prepared);
  SetLimit(RLIMIT_AS, prepared.limits.address_space_bytes);
  SetCpuLimit(prepared.limits.cpu_seconds);
  SetLimit(RLIMIT_FSIZE, prepared.limits.file_bytes);
  SetLimit(RLIMIT_NOFILE, prepared.limits.open_files);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (prepared.confinement != nullptr) {
    Confine(prepared, parent);
  }
  ::execve(prepared.argv[0], prepared.argv.data(), prepared.environment.data());
  FailInChild(prepared);
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> OurEnvironment() {
  std::vector<std::string> words;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    words.emplace_back(*entry);
  }
  return words;
}

Result<std::string> ResolveProgram(const std::string& name) {
  const std::string path = name.find('/') != std::string::npos ? name : FindOnPath(name).string();
  if (path.empty() || ::access(path.c_str(), X_OK) != 0) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("cannot run '{}': not found or not executable", name));
  }
  return path;
}

/// Ends when the child's program runs or the child has ended.
Start ReadStart(int fd) {
  std::array<char, sizeof(PreparedConfinement::Outcome) + sizeof(int)> bytes{};
  std::size_t size = 0;
  for (;;) {
    const ssize_t n = ::read(fd, bytes.data() + size, bytes.size() - size);
    if (n > 0) {
      size += static_cast<std::size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      break;
    }
  }
  Start start;
  std::size_t used = 0;
  if (size >= sizeof(PreparedConfinement::Outcome)) {
    used = sizeof(PreparedConfinement::Outcome);
    std::memcpy(&start.confinement.emplace(), bytes.data(), used);
  }
  if (size - used >= sizeof(int)) {
    std::memcpy(&start.error, bytes.data() + used, sizeof(int));
  }
  return start;
}

/// What was on, or why the child did not start.
Result<std::vector<ConfinementReport>> CheckStart(const ProcessSpec& spec, const Start& start,
                                                  const PreparedConfinement* confinement) {
  std::vector<ConfinementReport> report;
  if (confinement != nullptr && start.confinement) {
    report = confinement->Report(*start.confinement);
    if (!confinement->Suffices(*start.confinement)) {
      return Fail(ErrorCode::kUnavailable, fmt::format("cannot confine '{}' as required: {}",
                                                       spec.argv[0], Describe(report)));
    }
  }
  if (start.error != 0) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("cannot run '{}': {}", spec.argv[0], Reason(start.error)));
  }
  return report;
}

}  // namespace

Result<SpawnedChild> Spawn(const ProcessSpec& spec) {
  if (spec.argv.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "no program given to run");
  }
  KP_ASSIGN_OR_RETURN(std::string program, ResolveProgram(spec.argv[0]));
  std::vector<std::string> argv = spec.argv;
  argv[0] = std::move(program);
  std::vector<std::string> environment = spec.environment ? *spec.environment : OurEnvironment();
  const std::string folder = spec.folder.string();

  Pipe input;
  Pipe out;
  Pipe err;
  Pipe error;
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (!input.Open() || !out.Open() || !err.Open() || !error.Open() || null < 0) {
    const int reason = errno;
    if (null >= 0) {
      ::close(null);
    }
    return Fail(ErrorCode::kIo, "cannot open pipes for a child process: " + Reason(reason));
  }

  Prepared prepared;
  prepared.argv = Pointers(argv);
  prepared.environment = Pointers(environment);
  prepared.folder = folder.empty() ? nullptr : folder.c_str();
  prepared.input = spec.input.empty() ? null : input.read();
  prepared.out = out.write();
  prepared.err = err.write();
  prepared.error_pipe = error.write();
  prepared.fds = spec.fds;
  prepared.limits = spec.limits;

  std::optional<PreparedConfinement> confinement;
  if (spec.confinement) {
    prepared.confinement = &confinement.emplace(*spec.confinement);
  }

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    RunChild(prepared, parent);
  }
  const int fork_error = errno;
  ::close(null);
  if (pid < 0) {
    return Fail(ErrorCode::kUnavailable, "cannot start a process: " + Reason(fork_error));
  }
  ::setpgid(pid, pid);  // Both sides do it, so that it holds whoever runs first.
  error.CloseWrite();
  auto report = CheckStart(spec, ReadStart(error.read()), prepared.confinement);
  if (!report) {
    ::waitpid(pid, nullptr, 0);
    return std::move(report).error();
  }
  SpawnedChild child;
  child.confinement = std::move(*report);
  child.pid = pid;
  child.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  child.input = spec.input.empty() ? -1 : input.TakeWrite();
  child.out = out.TakeRead();
  child.err = err.TakeRead();
  return child;
}

}  // namespace kernelpro
