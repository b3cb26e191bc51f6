// SPDX-License-Identifier: Apache-2.0
#include "runner/sandbox.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/protocol/frame.h"
#include "device/protocol/runner_message.h"
#include "process/seccomp_filter.h"
#include "runner/sandbox_filter.h"

#if !defined(__x86_64__)
#error "the runner's system call filter is written for x86-64"
#endif

namespace kernelpro::runner {
namespace {

/// Async-signal-safe, like all below.
[[noreturn]] void ReportForbidden(int number) {
  struct {
    std::uint32_t payload_bytes = sizeof(std::int32_t);
    std::uint16_t version = protocol::kVersion;
    std::uint16_t kind = static_cast<std::uint16_t>(protocol::RunnerMessage::kForbidden);
    std::uint64_t sequence = 0;
    std::int32_t number = 0;
  } __attribute__((packed)) message;

  static_assert(sizeof message == protocol::kHeaderBytes + sizeof(std::int32_t));
  message.number = number;
  ::syscall(SYS_sendto, protocol::kRefereeFd, &message, sizeof message, MSG_NOSIGNAL, nullptr, 0);
  ::syscall(SYS_exit_group, protocol::kForbiddenExit);
  __builtin_unreachable();
}

SandboxProfile profile_in_force = SandboxProfile::kEmulator;  ///< for the handler
std::uint64_t opening_cookie = 0;

/// Opening for writing in the driver profile without Landlock: GPU devices only. What else is
/// tried gets the answer that Landlock would give.
long OpenDevice(const char* named, long flags) {
  constexpr const char* kDevices = "/dev/nvidia";
  // A copy: another thread may change the name between the check and the call.
  std::array<char, 64> copy{};
  const char* const path = copy.data();
  std::strncpy(copy.data(), named == nullptr ? "" : named, copy.size() - 1);
  const bool device = (flags & (O_CREAT | O_TRUNC)) == 0 && std::strstr(path, "..") == nullptr &&
                      (std::strncmp(path, kDevices, std::strlen(kDevices)) == 0 ||
                       std::strcmp(path, "/dev/null") == 0);
  if (!device) {
    return -EACCES;
  }
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path, flags, 0, opening_cookie);
  return fd < 0 ? -errno : fd;
}

/// The one file that can be opened: a fresh descriptor of the candidate's library, from its start.
long OpenFile(const char* path, long flags, int number) {
  if ((flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != O_RDONLY) {
    ReportForbidden(number);
  }
  if (path == nullptr || std::strcmp(path, kCandidatePath) != 0) {
    return -EACCES;
  }
  ::syscall(SYS_lseek, protocol::kLibraryFd, 0, SEEK_SET);
  const long fd = ::syscall(SYS_dup, protocol::kLibraryFd);
  return fd < 0 ? -EMFILE : fd;
}

void OnDeniedCall(int /*signal*/, siginfo_t* info, void* context) {
  constexpr int kSeccomp = 1;  // SYS_SECCOMP: not a signal that the candidate raised itself
  if (info->si_code != kSeccomp) {
    return;
  }
  const int saved_errno = errno;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto pointer = [&](int which) {
    return reinterpret_cast<const char*>(static_cast<std::uintptr_t>(registers[which]));
  };
  switch (info->si_syscall) {
    case SYS_openat:
      registers[REG_RAX] = profile_in_force == SandboxProfile::kDriver
                               ? OpenDevice(pointer(REG_RSI), registers[REG_RDX])
                               : OpenFile(pointer(REG_RSI), registers[REG_RDX], SYS_openat);
      break;
    case SYS_open:
      registers[REG_RAX] = profile_in_force == SandboxProfile::kDriver
                               ? OpenDevice(pointer(REG_RDI), registers[REG_RSI])
                               : OpenFile(pointer(REG_RDI), registers[REG_RSI], SYS_open);
      break;
    case SYS_newfstatat:
      // fstat() of newer C libraries is newfstatat(fd, "", AT_EMPTY_PATH).
      registers[REG_RAX] =
          *pointer(REG_RSI) == '\0'
              ? (::syscall(SYS_fstat, registers[REG_RDI], registers[REG_RDX]) == 0 ? 0 : -EBADF)
              : -EACCES;
      break;
    default:
      ReportForbidden(info->si_syscall);
  }
  errno = saved_errno;
}

}  // namespace

void SandboxReport::WriteTo(protocol::ByteWriter& out) const {
  out.U32(static_cast<std::uint32_t>(count));
  for (const Measure& measure : std::span(measures).first(count)) {
    out.Text(measure.name);
    out.U8(measure.on ? 1 : 0);
    out.Text(measure.detail.data());
  }
}

void SandboxReport::Add(const char* name, bool on, const char* text) {
  if (count < measures.size()) {
    Measure& measure = measures[count++];
    measure.name = name;
    measure.on = on;
    std::strncpy(measure.detail.data(), text, measure.detail.size() - 1);
  }
}

namespace {

const SandboxReport::Measure* Find(const SandboxReport& report, const char* name) {
  for (std::size_t i = 0; i < report.count; ++i) {
    if (std::strcmp(report.measures[i].name, name) == 0) {
      return &report.measures[i];
    }
  }
  return nullptr;
}

bool SetLimits(SandboxProfile profile) {
  const rlimit none{0, 0};
  // Nothing can be opened for writing. The driver may make memory files, which count as well.
  const rlim_t largest = profile == SandboxProfile::kDriver ? rlim_t{1} << 30U : 1;
  const rlimit files{largest, largest};
  return ::setrlimit(RLIMIT_CORE, &none) == 0 && ::setrlimit(RLIMIT_FSIZE, &files) == 0 &&
         ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

}  // namespace

bool EnterSandbox(SandboxProfile profile, SandboxReport& report,
                  std::span<const int> extra_allowed) {
  struct sigaction action{};
  action.sa_sigaction = OnDeniedCall;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (::sigaction(SIGSYS, &action, nullptr) != 0 || !SetLimits(profile)) {
    return false;
  }
  report.Add("rlimits", true, "no core file, not dumpable, no file growth");
  if (Find(report, "landlock") == nullptr) {
    RestrictFiles(profile, report);
  }
  const SandboxReport::Measure* const landlock = Find(report, "landlock");
  profile_in_force = profile;
  if (::getrandom(&opening_cookie, sizeof opening_cookie, 0) != sizeof opening_cookie) {
    return false;
  }
  seccomp::Filter filter;
  BuildFilter({.profile = profile,
               .landlock = landlock != nullptr && landlock->on,
               .cookie = opening_cookie,
               .extra_allowed = extra_allowed},
              filter);
  const sock_fprog program = filter.Program();
  // All threads, also those that the driver has started.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    return false;
  }
  report.Add("seccomp", true,
             "all threads: no process, program, network, signal, trace or mount; denied calls end "
             "the runner");
  return true;
}

}  // namespace kernelpro::runner
