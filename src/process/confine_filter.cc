// SPDX-License-Identifier: Apache-2.0
#include "process/confine_filter.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>

namespace kernelpro {
namespace {

using seccomp::Errno;

constexpr int kRefused[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_move_pages,
    SYS_migrate_pages,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_mount,
    SYS_umount2,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsmount,
    SYS_fsconfig,
    SYS_fspick,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_fanotify_init,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_setsid,
    SYS_setpgid,
};

constexpr int kProcessMadvise = 440;  // Newer than some C libraries' headers.
constexpr int kMountSetattr = 442;
constexpr std::uint32_t kX32Bit = 0x40000000;
constexpr std::uint32_t kSocketTypeMask = 0xf;
constexpr std::uint32_t kNewNamespaces = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS |
                                         CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWCGROUP;

}  // namespace

void BuildConfinementFilter(bool network, seccomp::Filter& filter) {
  // The x32 calls are the same ones under other numbers.
  filter.Add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1));
  filter.Return(Errno(ENOSYS));
  for (const int number : kRefused) {
    filter.IfNumber(number, Errno(EPERM));
  }
  filter.IfNumber(kProcessMadvise, Errno(EPERM));
  filter.IfNumber(kMountSetattr, Errno(EPERM));
  // Its flags are behind a pointer; C libraries fall back to clone, whose flags can be seen.
  filter.IfNumber(SYS_clone3, Errno(ENOSYS));
  filter.UnlessEqualSkip(SYS_clone, 4);
  filter.Load(seccomp::Argument(0));
  filter.Add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNewNamespaces, 0, 1));
  filter.Return(Errno(EPERM));
  filter.Return(SECCOMP_RET_ALLOW);
  if (!network) {
    // Local sockets too: a service of this machine may listen on one (Docker's is as good as root).
    filter.IfNumber(SYS_socket, Errno(EACCES));
    // Pairs are private, but a datagram one can send to any address.
    filter.UnlessEqualSkip(SYS_socketpair, 5);
    filter.Load(seccomp::Argument(1));
    filter.Add(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kSocketTypeMask));
    filter.UnlessEqualSkip(SOCK_DGRAM, 1);
    filter.Return(Errno(EACCES));
    filter.Return(SECCOMP_RET_ALLOW);
  }
  filter.Return(SECCOMP_RET_ALLOW);
}

}  // namespace kernelpro
