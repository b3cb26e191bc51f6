// SPDX-License-Identifier: Apache-2.0
#include "evaluate/policy_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/text.h"

namespace kernelpro {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kAlwaysAllowed[] = {
    "libcudart.so.", "libc.so.",  "libm.so.",  "libstdc++.so.",   "libgcc_s.so.",
    "libpthread.so", "libdl.so.", "librt.so.", "ld-linux-x86-64", "ld-linux-aarch64"};

/// Files of the libraries that a task's policy can allow, by their name there.
struct LibraryFiles {
  std::string_view name;
  std::array<std::string_view, 3> prefixes;
};

constexpr LibraryFiles kLibraries[] = {{"cublas", {"libcublas.so.", "libcublasLt.so.", ""}},
                                       {"cublaslt", {"libcublasLt.so.", "", ""}},
                                       {"cudnn", {"libcudnn.so.", "libcudnn_", ""}},
                                       {"cufft", {"libcufft.so.", "", ""}},
                                       {"curand", {"libcurand.so.", "", ""}},
                                       {"cusolver", {"libcusolver.so.", "libcusparse.so.", ""}},
                                       {"cusparse", {"libcusparse.so.", "", ""}}};

/// A trailing * stands for any end.
bool Matches(std::string_view name, std::string_view pattern) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1))
                                : name == pattern;
}

bool MatchesAny(std::string_view name, Words patterns) {
  return std::ranges::any_of(patterns, [&](auto pattern) { return Matches(name, pattern); });
}

struct ForbiddenImports {
  std::string_view why;
  std::span<const std::string_view> patterns;
};

constexpr std::string_view kLoadsCode[] = {"dlopen",
                                           "dlmopen",
                                           "dlsym",
                                           "dlvsym",
                                           "dlinfo",
                                           "dladdr*",
                                           "_dl_*",
                                           "dl_iterate_phdr",
                                           "__libc_dl*",
                                           "cuModuleLoad*",
                                           "cuLibraryLoad*",
                                           "cuLink*",
                                           "cudaLibraryLoad*",
                                           "cudaModule*",
                                           "cuGetProcAddress*",
                                           "cuGetExportTable",
                                           "cudaGetExportTable",
                                           "nvrtc*",
                                           "nvJitLink*",
                                           "nvPTXCompiler*"};
constexpr std::string_view kProcesses[] = {
    "system",       "popen",         "fork",         "_Fork",      "vfork",   "__fork",
    "__vfork",      "clone",         "__clone",      "clone3",     "exec*",   "fexecve",
    "posix_spawn*", "ptrace",        "process_vm_*", "syscall",    "unshare", "setns",
    "pidfd_*",      "kill",          "killpg",       "tgkill",     "tkill",   "sigqueue",
    "daemon",       "__libc_system", "forkpty",      "prctl",      "shmget",  "shmat",
    "shm_open",     "memfd_create",  "socket",       "socketpair", "connect", "bind",
    "sendmsg",      "recvmsg",       "personality"};
constexpr std::string_view kProtection[] = {"mprotect",    "pkey_mprotect", "__mprotect",
                                            "mremap",      "makecontext",   "process_madvise",
                                            "userfaultfd", "modify_ldt"};
constexpr std::string_view kContext[] = {"cudaIpc*",
                                         "cuIpc*",
                                         "cudaDeviceReset",
                                         "cudaThreadExit",
                                         "cudaProfiler*",
                                         "cuProfiler*",
                                         "cuDevicePrimaryCtx*",
                                         "cuCtxCreate*",
                                         "cuCtxDestroy*",
                                         "cuCtxReset*",
                                         "cudaInitDevice",
                                         "cuMemExport*",
                                         "cuMemImport*",
                                         "cudaMemPoolExport*",
                                         "cudaMemPoolImport*",
                                         "cuMemPoolExport*",
                                         "cuMemPoolImport*",
                                         "cuCoredump*",
                                         "cudaImportExternal*",
                                         "cuImportExternal*",
                                         "cupti*",
                                         "cuCheckpoint*",
                                         "cuMulticast*",
                                         "nvml*"};

constexpr ForbiddenImports kForbidden[] = {
    {"loads code that was not compiled from the candidate's source", kLoadsCode},
    {"starts, reads or signals processes, or talks to them", kProcesses},
    {"changes the protection of memory", kProtection},
    {"resets, shares or watches the GPU's context", kContext}};

constexpr std::string_view kOwned[] = {
    "cuda[A-Z]",      "cu[A-Z]",       "__cuda*",       "_Zn[wa]",
    "_Zd[la]",        "__cxa_*",       "_Unwind_*",     "__libc_*",
    "_dl_*",          "__tls_*",       "dl*",           "pthread_*",
    "sem_*",          "__errno_*",     "malloc",        "calloc",
    "realloc",        "free",          "memalign",      "posix_memalign",
    "aligned_alloc",  "valloc",        "memcmp",        "bcmp",
    "memcpy",         "memmove",       "memset",        "memchr",
    "strcmp",         "strncmp",       "strlen",        "strcpy",
    "strstr",         "strtod",        "strtol",        "clock_*",
    "clock",          "gettimeofday",  "time",          "times",
    "nanosleep",      "usleep",        "sleep",         "read",
    "write",          "readv",         "writev",        "pread*",
    "pwrite*",        "open",          "open64",        "openat*",
    "close",          "lseek*",        "fstat*",        "stat*",
    "mmap*",          "munmap",        "mprotect",      "ioctl",
    "poll",           "ppoll",         "select",        "epoll_*",
    "recv*",          "send*",         "socket*",       "connect",
    "fork",           "vfork",         "exec*",         "waitpid",
    "wait4",          "kill",          "raise",         "signal",
    "sigaction",      "sigprocmask",   "exit",          "_exit",
    "_Exit",          "quick_exit",    "abort",         "atexit",
    "getenv",         "secure_getenv", "setenv",        "getpid",
    "syscall",        "printf",        "fprintf",       "vfprintf",
    "snprintf",       "vsnprintf",     "puts",          "putchar",
    "fputs",          "fwrite",        "fread",         "fopen*",
    "fclose",         "fflush",        "getrandom",     "memfd_create",
    "prctl",          "ptrace",        "__assert_fail", "__stack_chk_fail",
    "__fortify_fail", "__chk_fail",    "main",          "_start",
    "environ",        "stdout",        "stderr",        "stdin"};

/// kOwned's patterns with one class of characters at their end: "cu[A-Z]".
bool IsOwned(std::string_view name) {
  return std::ranges::any_of(kOwned, [&](std::string_view pattern) {
    const std::size_t open = pattern.find('[');
    if (open == pattern.npos) {
      return Matches(name, pattern);
    }
    const std::string_view set = pattern.substr(open + 1, pattern.size() - open - 2);
    if (!name.starts_with(pattern.substr(0, open)) || name.size() <= open) {
      return false;
    }
    return set == "A-Z" ? name[open] >= 'A' && name[open] <= 'Z' : set.find(name[open]) != set.npos;
  });
}

bool IsAllowedLibrary(std::string_view file, const Policy& policy) {
  const auto starts = [file](std::string_view prefix) {
    return !prefix.empty() && file.starts_with(prefix);
  };
  return std::ranges::any_of(kAlwaysAllowed, starts) ||
         std::ranges::any_of(kLibraries, [&](const LibraryFiles& library) {
           return std::ranges::find(policy.libraries, library.name) != policy.libraries.end() &&
                  std::ranges::any_of(library.prefixes, starts);
         });
}

std::string WhyDriverEntryPoint(const BinaryFacts& facts) {
  const auto asks_by_name = std::ranges::find_if(
      facts.driver_words, [](std::string_view w) { return !w.starts_with("cuTensorMapEncode"); });
  if (asks_by_name != facts.driver_words.end()) {
    return fmt::format("asks for a function of the driver that is none of cuTensorMapEncode...: {}",
                       Printable(*asks_by_name, 80));
  }
  return facts.driver_words.empty() ? "can ask for any function of the driver" : "";
}

}  // namespace

std::string WhyForbiddenBinary(const BinaryFacts& facts, const Policy& policy) {
  for (const std::string& library : facts.needed) {
    if (!IsAllowedLibrary(library, policy)) {
      return fmt::format("its library needs {}, which the task's policy does not allow",
                         Printable(library, 80));
    }
  }
  for (const std::string& name : facts.imports) {
    for (const ForbiddenImports& group : kForbidden) {
      if (MatchesAny(name, group.patterns)) {
        return fmt::format("its library calls {}, which {}", Printable(name, 80), group.why);
      }
    }
    if (name.starts_with("cudaGetDriverEntryPoint")) {
      if (const std::string why = WhyDriverEntryPoint(facts); !why.empty()) {
        return fmt::format("its library calls {} and {}", Printable(name, 80), why);
      }
    }
  }
  for (const std::string& name : facts.exports) {
    if (IsOwned(name)) {
      return fmt::format(
          "its library defines {}, a name that belongs to the C library, the CUDA runtime or the "
          "driver; make the function static or rename it",
          Printable(name, 80));
    }
  }
  return {};
}

}  // namespace kernelpro
