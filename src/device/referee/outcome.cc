// SPDX-License-Identifier: Apache-2.0
#include "device/referee/outcome.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "base/text.h"
#include "device/protocol/bytes.h"
#include "device/protocol/cuda_error.h"
#include "device/protocol/runner_message.h"

namespace kernelpro::referee {
namespace {

using End = CallOutcome::End;
using protocol::CallReport;
using protocol::RunnerMessage;

struct NamedCall {
  int number;
  const char* name;
};

constexpr auto kNamedCalls = std::to_array<NamedCall>({
    {SYS_fork, "fork"},
    {SYS_vfork, "vfork"},
    {SYS_clone, "clone (a new process)"},
    {SYS_execve, "execve"},
    {SYS_execveat, "execveat"},
    {SYS_socket, "socket"},
    {SYS_socketpair, "socketpair"},
    {SYS_connect, "connect"},
    {SYS_bind, "bind"},
    {SYS_listen, "listen"},
    {SYS_accept, "accept"},
    {SYS_ptrace, "ptrace"},
    {SYS_kill, "kill"},
    {SYS_tkill, "tkill"},
    {SYS_tgkill, "tgkill (another process)"},
    {SYS_rt_sigqueueinfo, "rt_sigqueueinfo"},
    {SYS_rt_sigaction, "rt_sigaction (SIGSYS)"},
    {SYS_open, "open (for writing)"},
    {SYS_openat, "openat (for writing)"},
    {SYS_creat, "creat"},
    {SYS_unlink, "unlink"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_rename, "rename"},
    {SYS_renameat, "renameat"},
    {SYS_renameat2, "renameat2"},
    {SYS_mkdir, "mkdir"},
    {SYS_mkdirat, "mkdirat"},
    {SYS_rmdir, "rmdir"},
    {SYS_chmod, "chmod"},
    {SYS_fchmod, "fchmod"},
    {SYS_fchmodat, "fchmodat"},
    {SYS_chdir, "chdir"},
    {SYS_mount, "mount"},
    {SYS_umount2, "umount2"},
    {SYS_chroot, "chroot"},
    {SYS_unshare, "unshare"},
    {SYS_setns, "setns"},
    {SYS_bpf, "bpf"},
    {SYS_perf_event_open, "perf_event_open"},
    {SYS_io_uring_setup, "io_uring_setup"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
    {SYS_pidfd_open, "pidfd_open"},
    {SYS_pipe, "pipe"},
    {SYS_pipe2, "pipe2"},
    {SYS_dup2, "dup2"},
    {SYS_dup3, "dup3"},
    {SYS_memfd_create, "memfd_create"},
    {SYS_seccomp, "seccomp"},
    {SYS_setuid, "setuid"},
    {SYS_setrlimit, "setrlimit"},
    {SYS_prlimit64, "prlimit64"},
    {SYS_setsid, "setsid"},
    {SYS_setpgid, "setpgid"},
    {SYS_keyctl, "keyctl"},
    {SYS_userfaultfd, "userfaultfd"},
    {SYS_shmget, "shmget"},
    {SYS_move_pages, "move_pages"},
    {SYS_ioctl, "ioctl (signals by a descriptor, or typing into a terminal)"},
    {SYS_wait4, "wait4"},
    {SYS_shutdown, "shutdown"},
    {SYS_getdents64, "getdents64"},
    {SYS_eventfd2, "eventfd2"},
    {SYS_epoll_create1, "epoll_create1"},
});

std::string TextOf(const protocol::Frame& frame) {
  constexpr std::size_t kMessageLimit = 2000;
  return Printable({reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size()},
                   kMessageLimit);
}

/// Printable says so where it cuts; that must fit too.
std::string Fit(std::string_view printed) {
  constexpr std::size_t kMark = 16;
  return Printable(printed, kPrintedLimit - kMark);
}

CallOutcome& Set(CallOutcome& outcome, End end, std::string reason) {
  outcome.end = end;
  outcome.reason = std::move(reason);
  return outcome;
}

/// The sentence that the GPU noted for an error, or CUDA's own words.
std::string Explain(const CallReport& report, std::int32_t error) {
  for (const protocol::ErrorNote& note : report.errors) {
    if (note.error == error) {
      return note.text;
    }
  }
  return protocol::CudaErrorText(error);
}

void CollectFaults(const CallReport& report, CallOutcome& outcome) {
  outcome.faults = report.faults;
  for (const EmulatedLaunch& launch : report.launches) {
    outcome.faults.insert(outcome.faults.end(), launch.report.faults.begin(),
                          launch.report.faults.end());
  }
  std::ranges::stable_partition(outcome.faults, [](const simt::Fault& f) { return f.fatal; });
}

End EndOf(const simt::Fault& fault) {
  switch (fault.kind) {
    case simt::FaultKind::kBudget:
      return End::kTimedOut;
    case simt::FaultKind::kUnsupported:
      return End::kUnsupported;
    default:
      return End::kDeviceFault;
  }
}

/// The candidate stepped out of its bounds: whatever else happened does not count.
bool JudgeForbidden(const RunnerEnd& end, const CallReport& report, CallOutcome& outcome) {
  if (end.forbidden) {
    Set(outcome, End::kForbidden,
        fmt::format("the candidate made a system call that the sandbox denies: {}",
                    SystemCallName(*end.forbidden)));
  } else if (end.kind == RunnerEnd::Kind::kForged || report.malformed) {
    Set(outcome, End::kForbidden,
        "the candidate wrote to the descriptors that belong to the runner");
  } else if (report.stray_requests > 0) {
    Set(outcome, End::kForbidden,
        fmt::format("the candidate used the GPU while no call was running ({} requests): a thread "
                    "that it left behind",
                    report.stray_requests));
  } else if (end.process && end.process->end == ProcessResult::End::kSignaled &&
             end.process->signal == SIGSYS) {
    Set(outcome, End::kForbidden,
        "the candidate made a system call that the sandbox denies (its name is not known: signals "
        "were blocked, as the C library does inside fork and posix_spawn)");
  } else {
    return false;
  }
  return true;
}

/// What the GPU caught.
bool JudgeDevice(const CallReport& report, CallOutcome& outcome) {
  if (!outcome.faults.empty() && outcome.faults.front().fatal) {
    const simt::Fault& fault = outcome.faults.front();
    Set(outcome, EndOf(fault), fault.message);
    outcome.cuda_error = report.sticky_error;
    return true;
  }
  if (!report.unsupported.empty()) {
    Set(outcome, End::kUnsupported, report.unsupported);
    outcome.cuda_error = report.errors.empty() ? 0 : report.errors.front().error;
    return true;
  }
  return false;
}

void JudgeDeath(const RunnerEnd& end, CallOutcome& outcome) {
  if (!end.process) {
    Set(outcome, End::kForbidden, "the candidate closed the descriptors that belong to the runner");
    return;
  }
  const ProcessResult& process = *end.process;
  if (process.end == ProcessResult::End::kExited) {
    Set(outcome, End::kExited,
        fmt::format("the candidate ended its process (exit status {}) instead of returning",
                    process.exit_code));
    return;
  }
  constexpr double kMiB = 1048576;
  const auto limit = static_cast<double>(end.host_memory_bytes);
  // Out of address space, a program seldom says so: malloc gives nothing and the next store
  // crashes.
  const bool near_limit = static_cast<double>(process.peak_rss_bytes) > 0.8 * limit;
  if (process.signal == SIGKILL || near_limit) {
    Set(outcome, End::kOutOfMemory,
        fmt::format("the candidate's host code {} with {:.0f} MiB of memory in use; its limit is "
                    "{:.0f} MiB",
                    DescribeEnd(process, {}), static_cast<double>(process.peak_rss_bytes) / kMiB,
                    limit / kMiB));
    return;
  }
  Set(outcome, End::kCrashed,
      fmt::format("the candidate's host code {}", DescribeEnd(process, {})));
}

void JudgeReturn(const RunnerEnd& end, const CallReport& report, CallOutcome& outcome) {
  protocol::ByteReader in(end.answer.payload);
  const auto returned = static_cast<std::int32_t>(in.U32());
  outcome.cuda_error = returned;
  const char* const function = end.prepare ? "kernelpro_prepare" : "kernelpro_run";
  if (returned == protocol::kErrorMemoryAllocation && report.out_of_memory) {
    Set(outcome, End::kOutOfMemory, Explain(report, returned));
    return;
  }
  if (returned != protocol::kSuccess) {
    outcome.reason = fmt::format("{} returned {} ({}): {}", function, returned,
                                 protocol::CudaErrorName(returned), Explain(report, returned));
    return;
  }
  for (const protocol::ErrorNote& note : report.errors) {
    if (note.launch) {
      outcome.cuda_error = note.error;
      outcome.reason =
          fmt::format("{} returned success although a launch had failed: {}", function, note.text);
      return;
    }
  }
}

void JudgeAnswer(const RunnerEnd& end, const CallReport& report, CallOutcome& outcome) {
  switch (static_cast<RunnerMessage>(end.answer.kind)) {
    case RunnerMessage::kLoaded:
      return;
    case RunnerMessage::kReturned:
      JudgeReturn(end, report, outcome);
      return;
    case RunnerMessage::kNoEntry:
      if (!end.prepare) {  // kernelpro_prepare is optional: nothing to prepare is a success.
        Set(outcome, End::kLoadFailed, "the candidate does not define extern \"C\" kernelpro_run");
      }
      return;
    case RunnerMessage::kLoadFailed:
      Set(outcome, End::kLoadFailed, "the candidate cannot be loaded: " + TextOf(end.answer));
      return;
    case RunnerMessage::kOutOfMemory:
      Set(outcome, End::kOutOfMemory,
          "the candidate's host code ran out of memory (std::bad_alloc)");
      return;
    default:
      Set(outcome, End::kCrashed,
          "an exception left the candidate's function: " + TextOf(end.answer));
      return;
  }
}

void JudgeRunner(const RunnerEnd& end, const CallReport& report, CallOutcome& outcome) {
  switch (end.kind) {
    case RunnerEnd::Kind::kTimedOut:
      Set(outcome, End::kTimedOut,
          "the candidate's host code did not return within the wall limit");
      return;
    case RunnerEnd::Kind::kGone:
      JudgeDeath(end, outcome);
      return;
    default:
      JudgeAnswer(end, report, outcome);
      return;
  }
}

}  // namespace

std::string SystemCallName(int number) {
  for (const NamedCall& call : kNamedCalls) {
    if (call.number == number) {
      return call.name;
    }
  }
  return fmt::format("system call {}", number);
}

CallOutcome Judge(const RunnerEnd& end, std::optional<CallReport> report, std::string printed) {
  CallOutcome outcome;
  if (!report) {
    outcome.printed = Fit(printed);
    return end.kind == RunnerEnd::Kind::kTimedOut
               ? Set(outcome, End::kTimedOut,
                     "a kernel was still running on the emulated GPU at the wall limit")
               : Set(outcome, End::kDeviceLost,
                     "the emulated GPU's process died (out of memory, or a bug of the emulator)");
  }
  CollectFaults(*report, outcome);
  if (!JudgeForbidden(end, *report, outcome) && !JudgeDevice(*report, outcome)) {
    JudgeRunner(end, *report, outcome);
  }
  if (outcome.cuda_error != protocol::kSuccess) {
    outcome.cuda_error_name = protocol::CudaErrorName(outcome.cuda_error);
  }
  outcome.device_us = report->device_us;
  outcome.launches_left_out = report->launches_left_out;
  outcome.host_to_device_bytes = report->host_to_device_bytes;
  outcome.device_to_host_bytes = report->device_to_host_bytes;
  for (const EmulatedLaunch& launch : report->launches) {
    if (printed.size() < kPrintedLimit) {
      printed += launch.report.printed;
    }
  }
  outcome.printed = Fit(printed);
  outcome.launches = std::move(report->launches);
  return outcome;
}

}  // namespace kernelpro::referee
