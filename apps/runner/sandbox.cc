// SPDX-License-Identifier: Apache-2.0
#include "runner/sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
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

#if !defined(__x86_64__)
#error "the runner's system call filter is written for x86-64"
#endif

namespace kernelpro::runner {
namespace {

constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr std::uint32_t kArchitecture = offsetof(seccomp_data, arch);

/// Low half of an argument (x86 is little endian); its high half is 4 bytes on.
constexpr std::uint32_t Argument(unsigned index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * index);
}

/// Harmless for everybody else: own memory, own threads, descriptors that are open already, clocks.
constexpr int kAllowed[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_sendto,
    SYS_recvfrom,
    SYS_poll,
    SYS_ppoll,
    SYS_close,
    SYS_dup,
    SYS_fstat,
    SYS_lseek,
    SYS_mmap,
    SYS_mprotect,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_futex,
    SYS_rseq,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_membarrier,
    SYS_sigaltstack,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getcpu,
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_time,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_getrandom,
    SYS_uname,
    SYS_sysinfo,
    SYS_getrusage,
    SYS_times,
    SYS_arch_prctl,
    SYS_exit,
    SYS_exit_group,
};

/// Refused with an errno that library code copes with.
struct Refused {
  int number;
  int error;
};

constexpr Refused kRefused[] = {
    {SYS_clone3, ENOSYS},  // its flags are behind a pointer; the C library falls back to clone
    {SYS_ioctl, ENOTTY},
    {SYS_fcntl, EPERM},
    {SYS_prctl, EINVAL},
    {SYS_access, EACCES},
    {SYS_faccessat, EACCES},
    {SYS_faccessat2, EACCES},
    {SYS_stat, EACCES},
    {SYS_lstat, EACCES},
    {SYS_statx, ENOSYS},
    {SYS_readlink, EACCES},
    {SYS_readlinkat, EACCES},
    {SYS_getcwd, EACCES},
    {SYS_getrlimit, EPERM},
    {SYS_set_mempolicy, EPERM},
    {SYS_get_mempolicy, EPERM},
    {SYS_mbind, EPERM},
    {SYS_mlock, EPERM},
    {SYS_sched_setaffinity, EPERM},
    {SYS_sched_setscheduler, EPERM},
    {SYS_sched_getparam, EPERM},
    {SYS_sched_getscheduler, EPERM},
    {SYS_setpriority, EPERM},
};

/// Room for the two tables and the rules in BuildFilter.
constexpr std::size_t kFilterRoom = 256;

class Filter {
 public:
  void Add(sock_filter instruction) { code_.at(size_++) = instruction; }

  void Load(std::uint32_t offset) { Add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }

  void Return(std::uint32_t action) { Add(BPF_STMT(BPF_RET | BPF_K, action)); }

  /// Skips the next `count` instructions unless the loaded word equals `value`.
  void UnlessEqualSkip(std::uint32_t value, std::uint8_t count) {
    Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count));
  }

  void IfNumber(int number, std::uint32_t action) {
    UnlessEqualSkip(static_cast<std::uint32_t>(number), 1);
    Return(action);
  }

  [[nodiscard]] sock_fprog Program() { return {static_cast<unsigned short>(size_), code_.data()}; }

 private:
  std::array<sock_filter, kFilterRoom> code_{};
  std::size_t size_ = 0;
};

constexpr std::uint32_t Errno(int error) {
  return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA);
}

void BuildFilter(Filter& filter) {
  filter.Load(kArchitecture);
  filter.UnlessEqualSkip(AUDIT_ARCH_X86_64, 1);
  filter.Add(BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
  filter.Return(SECCOMP_RET_KILL_PROCESS);
  filter.Load(kNumber);
  for (const int number : kAllowed) {
    filter.IfNumber(number, SECCOMP_RET_ALLOW);
  }
  for (const Refused& refused : kRefused) {
    filter.IfNumber(refused.number, Errno(refused.error));
  }
  // Threads yes, processes no.
  filter.UnlessEqualSkip(SYS_clone, 4);
  filter.Load(Argument(0));
  filter.Add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
  filter.Return(SECCOMP_RET_ALLOW);
  filter.Return(SECCOMP_RET_TRAP);
  // abort() and raise() signal a thread of this process; other processes are out of reach.
  filter.UnlessEqualSkip(SYS_tgkill, 4);
  filter.Load(Argument(0));
  filter.UnlessEqualSkip(static_cast<std::uint32_t>(::getpid()), 1);
  filter.Return(SECCOMP_RET_ALLOW);
  filter.Return(SECCOMP_RET_TRAP);
  // Handlers yes, but not in place of ours.
  filter.UnlessEqualSkip(SYS_rt_sigaction, 4);
  filter.Load(Argument(0));
  filter.UnlessEqualSkip(SIGSYS, 1);
  filter.Return(SECCOMP_RET_TRAP);
  filter.Return(SECCOMP_RET_ALLOW);
  // Own limits may be read (arguments: pid, which, new, old), not set.
  filter.UnlessEqualSkip(SYS_prlimit64, 6);
  filter.Load(Argument(2));
  filter.UnlessEqualSkip(0, 3);
  filter.Load(Argument(2) + 4);
  filter.UnlessEqualSkip(0, 1);
  filter.Return(SECCOMP_RET_ALLOW);
  filter.Return(Errno(EPERM));
  // openat and open come here too: the handler answers them.
  filter.Return(SECCOMP_RET_TRAP);
}

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
      registers[REG_RAX] = OpenFile(pointer(REG_RSI), registers[REG_RDX], SYS_openat);
      break;
    case SYS_open:
      registers[REG_RAX] = OpenFile(pointer(REG_RDI), registers[REG_RSI], SYS_open);
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

bool EnterSandbox() {
  struct sigaction action{};
  action.sa_sigaction = OnDeniedCall;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (::sigaction(SIGSYS, &action, nullptr) != 0) {
    return false;
  }
  const rlimit none{0, 0};
  const rlimit small{1, 1};
  if (::setrlimit(RLIMIT_CORE, &none) != 0 || ::setrlimit(RLIMIT_FSIZE, &small) != 0 ||
      ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return false;
  }
  Filter filter;
  BuildFilter(filter);
  const sock_fprog program = filter.Program();
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

}  // namespace kernelpro::runner
