// SPDX-License-Identifier: Apache-2.0
#include "runner/sandbox_filter.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace kernelpro::runner {
namespace {

using seccomp::Argument;
using seccomp::Errno;
using seccomp::Filter;

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

/// On top of them for the driver: files that Landlock lets it see, waiting, pinned and NUMA memory,
/// timers, what it asks about itself.
constexpr int kAllowedForDriver[] = {
    SYS_stat,
    SYS_lstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_access,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlink,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_statfs,
    SYS_fstatfs,
    SYS_umask,
    SYS_pwrite64,
    SYS_preadv,
    SYS_pwritev,
    SYS_dup2,
    SYS_dup3,
    SYS_flock,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_memfd_create,
    SYS_pipe,
    SYS_pipe2,
    SYS_eventfd,
    SYS_eventfd2,
    SYS_select,
    SYS_pselect6,
    SYS_epoll_create,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_wait,
    SYS_epoll_pwait,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_timerfd_gettime,
    SYS_timer_create,
    SYS_timer_settime,
    SYS_timer_gettime,
    SYS_timer_delete,
    SYS_signalfd4,
    SYS_rt_sigpending,
    SYS_rt_sigtimedwait,
    SYS_rt_sigsuspend,
    SYS_mlock,
    SYS_mlock2,
    SYS_munlock,
    SYS_mlockall,
    SYS_munlockall,
    SYS_mincore,
    SYS_msync,
    SYS_mbind,
    SYS_get_mempolicy,
    SYS_set_mempolicy,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_sched_get_priority_max,
    SYS_sched_get_priority_min,
    SYS_getpriority,
    SYS_getrlimit,
    SYS_getppid,
    SYS_getpgrp,
    SYS_getpgid,
    SYS_getsid,
    SYS_getresuid,
    SYS_getresgid,
    SYS_getgroups,
    SYS_capget,
    SYS_get_robust_list,
};

/// Refused with an errno that library code copes with.
struct Refused {
  int number;
  int error;
};

constexpr Refused kRefusedEverywhere[] = {
    {SYS_clone3, ENOSYS},  // its flags are behind a pointer; the C library falls back to clone
    {SYS_sched_setscheduler, EPERM},
    {SYS_sched_setparam, EPERM},
    {SYS_setpriority, EPERM},
};

constexpr Refused kRefusedInEmulator[] = {
    {SYS_ioctl, ENOTTY},         {SYS_fcntl, EPERM},
    {SYS_prctl, EINVAL},         {SYS_access, EACCES},
    {SYS_faccessat, EACCES},     {SYS_faccessat2, EACCES},
    {SYS_stat, EACCES},          {SYS_lstat, EACCES},
    {SYS_statx, ENOSYS},         {SYS_readlink, EACCES},
    {SYS_readlinkat, EACCES},    {SYS_getcwd, EACCES},
    {SYS_getrlimit, EPERM},      {SYS_set_mempolicy, EPERM},
    {SYS_get_mempolicy, EPERM},  {SYS_mbind, EPERM},
    {SYS_mlock, EPERM},          {SYS_sched_setaffinity, EPERM},
    {SYS_sched_getparam, EPERM}, {SYS_sched_getscheduler, EPERM},
};

constexpr Refused kRefusedToDriver[] = {
    {SYS_openat2, ENOSYS},
    {SYS_pkey_alloc, ENOSYS},
    {SYS_socketpair, EACCES},
};

void AddThreadsButNoProcesses(Filter& filter) {
  filter.UnlessEqualSkip(SYS_clone, 4);
  filter.Load(Argument(0));
  filter.Add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
  filter.Return(SECCOMP_RET_ALLOW);
  filter.Return(SECCOMP_RET_TRAP);
}

void AddOpening(const FilterRequest& request, Filter& filter) {
  if (request.landlock) {
    filter.IfNumber(SYS_open, SECCOMP_RET_ALLOW);
    filter.IfNumber(SYS_openat, SECCOMP_RET_ALLOW);
    return;
  }
  constexpr std::uint32_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  filter.UnlessEqualSkip(SYS_openat, 9);
  filter.Load(Argument(2));
  filter.Add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kWriting, 1, 0));
  filter.Return(SECCOMP_RET_ALLOW);
  filter.Load(Argument(4));
  filter.UnlessEqualSkip(static_cast<std::uint32_t>(request.cookie), 2);
  filter.Load(Argument(4) + 4);
  filter.Add(
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(request.cookie >> 32U), 1, 0));
  filter.Return(SECCOMP_RET_TRAP);
  filter.Return(SECCOMP_RET_ALLOW);
}

void AddSignals(Filter& filter) {
  const std::array<std::uint32_t, 1> self = {static_cast<std::uint32_t>(::getpid())};
  // abort() and raise() signal a thread of this process; other processes are out of reach.
  filter.IfArgument(SYS_tgkill, 0, self, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
  // Handlers yes, but not in place of ours.
  const std::array<std::uint32_t, 1> ours = {SIGSYS};
  filter.IfArgument(SYS_rt_sigaction, 0, ours, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
}

/// Own limits may be read (arguments: pid, which, new, old), not set.
void AddLimits(Filter& filter, std::uint32_t when_set) {
  filter.UnlessEqualSkip(SYS_prlimit64, 6);
  filter.Load(Argument(2));
  filter.UnlessEqualSkip(0, 3);
  filter.Load(Argument(2) + 4);
  filter.UnlessEqualSkip(0, 1);
  filter.Return(SECCOMP_RET_ALLOW);
  filter.Return(when_set);
}

/// Calls that are harmless with some arguments and reach other processes with others.
void AddDriverArguments(Filter& filter) {
  // A socket or pipe could be told to send signals to any process of this user (F_SETOWN, F_SETSIG
  // and the socket ioctls of the same meaning); a terminal could be typed into.
  const std::array<std::uint32_t, 14> file_commands = {F_DUPFD,
                                                       F_GETFD,
                                                       F_SETFD,
                                                       F_GETFL,
                                                       F_SETFL,
                                                       F_GETLK,
                                                       F_SETLK,
                                                       F_SETLKW,
                                                       F_DUPFD_CLOEXEC,
                                                       1031 /* F_SETPIPE_SZ */,
                                                       1032 /* F_GETPIPE_SZ */,
                                                       1033 /* F_ADD_SEALS */,
                                                       1034 /* F_GET_SEALS */,
                                                       36 /* F_OFD_GETLK */};
  filter.IfArgument(SYS_fcntl, 1, file_commands, SECCOMP_RET_ALLOW, Errno(EPERM));
  const std::array<std::uint32_t, 4> bad_ioctls = {FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX};
  filter.IfArgument(SYS_ioctl, 1, bad_ioctls, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
  // Not PR_SET_DUMPABLE, not PR_SET_PDEATHSIG.
  const std::array<std::uint32_t, 6> process_options = {
      PR_SET_NAME,       PR_GET_NAME,       PR_GET_DUMPABLE,
      PR_GET_TIMERSLACK, PR_SET_TIMERSLACK, 0x53564d41 /* PR_SET_VMA */};
  filter.IfArgument(SYS_prctl, 0, process_options, SECCOMP_RET_ALLOW, Errno(EINVAL));
  // The referee and the GPU driver's other users must not be moved to one core.
  const std::array<std::uint32_t, 2> self = {0, static_cast<std::uint32_t>(::getpid())};
  filter.IfArgument(SYS_sched_setaffinity, 0, self, SECCOMP_RET_ALLOW, Errno(EPERM));
  filter.IfArgument(SYS_move_pages, 0, self, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
  const std::array<std::uint32_t, 1> only_self = {self[1]};
  filter.IfArgument(SYS_kill, 0, only_self, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
  const std::array<std::uint32_t, 1> local = {AF_UNIX};
  filter.IfArgument(SYS_socket, 0, local, Errno(EACCES), SECCOMP_RET_TRAP);
}

template <typename Table>
void Refuse(Filter& filter, const Table& table) {
  for (const Refused& refused : table) {
    filter.IfNumber(refused.number, Errno(refused.error));
  }
}

}  // namespace

void BuildFilter(const FilterRequest& request, Filter& filter) {
  const SandboxProfile profile = request.profile;
  for (const int number : kAllowed) {
    filter.IfNumber(number, SECCOMP_RET_ALLOW);
  }
  for (const int number : request.extra_allowed) {
    filter.IfNumber(number, SECCOMP_RET_ALLOW);
  }
  Refuse(filter, kRefusedEverywhere);
  if (profile == SandboxProfile::kEmulator) {
    Refuse(filter, kRefusedInEmulator);
  } else {
    for (const int number : kAllowedForDriver) {
      filter.IfNumber(number, SECCOMP_RET_ALLOW);
    }
    Refuse(filter, kRefusedToDriver);
    AddOpening(request, filter);
    AddDriverArguments(filter);
  }
  AddThreadsButNoProcesses(filter);
  AddSignals(filter);
  AddLimits(filter, profile == SandboxProfile::kEmulator ? Errno(EPERM) : SECCOMP_RET_TRAP);
  filter.Return(SECCOMP_RET_TRAP);
}

}  // namespace kernelpro::runner
