// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/protocol/runner_message.h"
#include "process/landlock.h"
#include "runner/sandbox.h"

namespace kernelpro::runner {
namespace {

using landlock::Access;
using landlock::Ruleset;

/// What the driver and the dynamic linker read while the candidate runs (other driver libraries
/// such as the PTX compiler, device and NUMA facts). No home folder, no /tmp, no /etc but the
/// linker's index, no other process.
constexpr const char* kReadForDriver[] = {
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/proc/self",
    "/proc/driver/nvidia",
    "/proc/devices",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/stat",
    "/proc/filesystems",
    "/proc/version",
    "/proc/sys/vm",
    "/proc/sys/kernel/osrelease",
    "/sys/devices",
    "/sys/module",
    "/sys/bus/pci",
    "/sys/class",
    "/sys/kernel/mm",
    "/dev/urandom",
};

/// The folder that a driver library was loaded from, where the machine keeps it elsewhere (/nix,
/// /run/opengl-driver, WSL).
int AllowFolderOfDriver(dl_phdr_info* info, std::size_t /*size*/, void* ruleset) {
  if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "/libcuda.so") == nullptr) {
    return 0;
  }
  std::array<char, PATH_MAX> path{};
  if (::realpath(info->dlpi_name, path.data()) != nullptr) {
    char* const slash = std::strrchr(path.data(), '/');
    if (slash != nullptr && slash != path.data()) {
      *slash = '\0';
      (void)static_cast<Ruleset*>(ruleset)->Allow(path.data(), Access::kRead);
    }
  }
  return 0;
}

bool AllowDevices(Ruleset& rules) {
  bool done =
      rules.Allow("/dev/null", Access::kDevice) && rules.Allow("/dev/zero", Access::kDevice);
  DIR* const folder = ::opendir("/dev");
  if (folder == nullptr) {
    return done;
  }
  while (const dirent* const entry = ::readdir(folder)) {  // NOLINT(concurrency-mt-unsafe)
    if (std::strncmp(entry->d_name, "nvidia", 6) == 0 || std::strcmp(entry->d_name, "dxg") == 0) {
      std::array<char, PATH_MAX> path{};
      std::snprintf(path.data(), path.size(), "/dev/%s", entry->d_name);
      done = rules.Allow(path.data(), Access::kDevice) && done;
    }
  }
  ::closedir(folder);
  return done;
}

bool AllowForDriver(Ruleset& rules) {
  bool done = AllowDevices(rules);
  for (const char* path : kReadForDriver) {
    done = rules.Allow(path, Access::kRead) && done;
  }
  // The driver names its threads by writing /proc/self/task/N/comm, and does not start where it
  // cannot.
  done = rules.Allow("/proc/self/task", Access::kDevice) && done;
  ::dl_iterate_phdr(AllowFolderOfDriver, &rules);
  return done;
}

bool Restrict(SandboxProfile profile, int version) {
  Ruleset rules;
  if (!rules.Open(version, /*network=*/false)) {
    return false;
  }
  // In the emulator profile nothing at all: what the linker needs is loaded or open.
  if (profile == SandboxProfile::kDriver && !AllowForDriver(rules)) {
    return false;
  }
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && rules.Enforce();
}

}  // namespace

void RestrictFiles(SandboxProfile profile, SandboxReport& report) {
  std::array<char, 160> text{};
  const int version = landlock::Version();
  const bool on = version > 0 && Restrict(profile, version);
  if (on) {
    std::snprintf(text.data(), text.size(), "version %d: %s; no file written%s%s", version,
                  profile == SandboxProfile::kDriver
                      ? "system libraries and GPU devices are all that can be opened"
                      : "no file can be opened",
                  version >= 4 ? ", no TCP" : "", version >= 6 ? ", no signals to others" : "");
  } else {
    std::snprintf(text.data(), text.size(), "%s%s",
                  version == 0 ? "this kernel has none, or it is off" : "refused: ",
                  version == 0 ? "" : ::strerrordesc_np(errno));
  }
  report.Add("landlock", on, text.data());
}

}  // namespace kernelpro::runner
