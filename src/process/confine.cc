// SPDX-License-Identifier: Apache-2.0
#include "process/confine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/text.h"
#include "process/confine_filter.h"
#include "process/landlock.h"
#include "process/seccomp_filter.h"

namespace kernelpro {
namespace {

using Outcome = PreparedConfinement::Outcome;
using Step = PreparedConfinement::Step;

constexpr int kNamespaceFlags = CLONE_NEWNET | CLONE_NEWIPC;
/// With less than this a root whose files belong to others could not compile for them.
constexpr std::array<int, 4> kKeptByRoot = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH,
                                            CAP_FOWNER};

/// Numbers of the user and group as they are mapped to themselves in a new user name space.
struct IdMaps {
  std::string user = fmt::format("{0} {0} 1", ::geteuid());
  std::string group = fmt::format("{0} {0} 1", ::getegid());
};

int WriteTo(const char* path, std::string_view text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    return errno;
  }
  const int error = ::write(fd, text.data(), text.size()) < 0 ? errno : 0;
  ::close(fd);
  return error;
}

int WriteMaps(const IdMaps& maps) {
  int error = WriteTo("/proc/self/setgroups", "deny");
  error = error != 0 ? error : WriteTo("/proc/self/uid_map", maps.user);
  return error != 0 ? error : WriteTo("/proc/self/gid_map", maps.group);
}

/// errno of making a user name space in which this user keeps its number; 0 when it works. A name
/// space that was made and not mapped would leave the child as nobody, so it is tried elsewhere
/// first (some distributions allow the first half only).
int TryUserNamespace() {
  const IdMaps maps;
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    const int made = ::unshare(CLONE_NEWUSER | kNamespaceFlags) == 0 ? 0 : errno;
    ::_exit(made != 0 ? made : WriteMaps(maps));
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) {
    return errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

int UserNamespaceError() {
  static const int kError = TryUserNamespace();  // A fact of the machine: asked once.
  return kError;
}

int DropPrivileges() {
  for (int capability = 0; capability <= CAP_LAST_CAP + 16; ++capability) {
    bool kept = false;
    for (const int keep : kKeptByRoot) {
      kept = kept || keep == capability;
    }
    if (!kept && ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL) {
      return errno;  // EINVAL: this kernel has no such capability.
    }
  }
  return 0;
}

std::string Why(std::int32_t error) {
  const char* const text = ::strerrordesc_np(error);
  return text == nullptr ? fmt::format("error {}", error) : text;
}

}  // namespace

struct PreparedConfinement::State {
  Confinement wanted;
  bool root = ::geteuid() == 0;
  IdMaps maps;
  int namespace_error = 0;  ///< known before: the child need not try
  int landlock_version = 0;
  int landlock_error = 0;
  landlock::Ruleset rules;
  bool rules_ready = false;
  seccomp::Filter filter;
  sock_fprog program{};

  explicit State(const Confinement& confinement) : wanted(confinement) {
    if (wanted.new_user_namespace && !root) {
      namespace_error = UserNamespaceError();
    }
    if (wanted.files || !wanted.network) {
      PrepareLandlock();
    }
    BuildConfinementFilter(wanted.network, filter);
    program = filter.Program();
  }

  void PrepareLandlock() {
    landlock_version = landlock::Version();
    bool done = landlock_version > 0 && rules.Open(landlock_version, wanted.network);
    const auto allow = [&](const std::vector<std::filesystem::path>& paths,
                           landlock::Access access) {
      for (const std::filesystem::path& path : paths) {
        done = done && rules.Allow(path.c_str(), access);
      }
    };
    if (wanted.files) {
      allow(wanted.read_only, landlock::Access::kRun);
      allow(wanted.read_write, landlock::Access::kReadWrite);
      allow(wanted.devices, landlock::Access::kDevice);
    } else {
      allow({"/"}, landlock::Access::kRun);
      allow({"/"}, landlock::Access::kReadWrite);
      allow({"/dev"}, landlock::Access::kDevice);
    }
    landlock_error = done ? 0 : errno;
    rules_ready = done;
  }

  [[nodiscard]] bool NetworkIsOff(const Outcome& outcome) const {
    return outcome[kNamespaces] == 0 || outcome[kSeccomp] == 0 ||
           (outcome[kLandlock] == 0 && landlock_version >= 4);
  }
};

PreparedConfinement::PreparedConfinement(const Confinement& wanted)
    : state_(std::make_unique<State>(wanted)) {}

PreparedConfinement::~PreparedConfinement() = default;

void PreparedConfinement::MoveDescriptor(int above) {
  state_->rules.MoveAbove(above);
}

Outcome PreparedConfinement::Apply() {
  State& s = *state_;
  Outcome outcome;
  outcome.fill(kSkipped);
  const auto result = [](int returned) { return returned == 0 ? 0 : errno; };
  // The files of /proc by which numbers are mapped belong to root unless it is dumpable, which a
  // careful owner is not. exec decides anew.
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  if (s.wanted.new_user_namespace && s.root) {
    outcome[kNamespaces] = result(::unshare(s.wanted.network ? CLONE_NEWIPC : kNamespaceFlags));
  } else if (s.wanted.new_user_namespace) {
    outcome[kNamespaces] = s.namespace_error;
    if (s.namespace_error == 0) {
      const int others = s.wanted.network ? CLONE_NEWIPC : kNamespaceFlags;
      outcome[kNamespaces] = result(::unshare(CLONE_NEWUSER | others));
      outcome[kIdMaps] = outcome[kNamespaces] == 0 ? WriteMaps(s.maps) : kSkipped;
    }
  }
  if (s.root) {
    outcome[kPrivileges] = DropPrivileges();
  } else if (s.wanted.processes != 0 && outcome[kIdMaps] == 0) {
    const rlimit limit{s.wanted.processes, s.wanted.processes};
    outcome[kProcesses] = result(::setrlimit(RLIMIT_NPROC, &limit));
  }
  outcome[kNoNewPrivileges] = result(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  if (s.rules_ready) {
    // Only here is it the child's own, not the parent's.
    const bool done = s.rules.Allow("/proc/self", landlock::Access::kRead) && s.rules.Enforce();
    outcome[kLandlock] = done ? 0 : errno;
  } else if (s.wanted.files) {
    outcome[kLandlock] = s.landlock_error != 0 ? s.landlock_error : ENOSYS;
  }
  outcome[kSeccomp] = result(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &s.program, 0, 0));
  return outcome;
}

bool PreparedConfinement::Suffices(const Outcome& outcome) const {
  const State& s = *state_;
  if (outcome[kNamespaces] == 0 && outcome[kIdMaps] > 0) {
    return false;  // A child that is nobody in its own folder does nothing useful.
  }
  return !s.wanted.required || ((!s.wanted.files || outcome[kLandlock] == 0) &&
                                (s.wanted.network || s.NetworkIsOff(outcome)));
}

namespace {

ConfinementReport ReportNetwork(bool off, bool own_network, bool filtered) {
  if (!off) {
    return {"no network", false, "no measure for it is available"};
  }
  return {"no network", true,
          own_network ? "an empty network of its own"
          : filtered  ? "no sockets (seccomp)"
                      : "no TCP (Landlock)"};
}

ConfinementReport ReportProcesses(bool on, bool root, std::uint64_t limit) {
  return {"process limit", on,
          on     ? fmt::format("{} processes and threads", limit)
          : root ? "root is exempt from it"
                 : "needs a user namespace"};
}

}  // namespace

std::vector<ConfinementReport> PreparedConfinement::Report(const Outcome& outcome) const {
  const State& s = *state_;
  std::vector<ConfinementReport> report;
  const auto add = [&](const char* name, Step step, const std::string& does) {
    const std::int32_t error = outcome[step];
    report.push_back({name, error == 0, error == 0 ? does : Why(error)});
  };
  if (outcome[kLandlock] != kSkipped) {
    add("landlock", kLandlock,
        fmt::format("version {}: {}", s.landlock_version,
                    s.wanted.files ? "only the listed files" : "files are free"));
    if (s.landlock_version == 0) {
      report.back().detail = "this kernel has none, or it is off";
    }
  }
  add("seccomp", kSeccomp, "no trace, mount, name space, kernel interface or new session");
  if (outcome[kNamespaces] != kSkipped) {
    add(s.root ? "name spaces" : "user namespace", kNamespaces,
        s.wanted.network ? "own System V objects" : "own network and System V objects");
  }
  if (!s.wanted.network) {
    report.push_back(
        ReportNetwork(s.NetworkIsOff(outcome), outcome[kNamespaces] == 0, outcome[kSeccomp] == 0));
  }
  if (s.root) {
    add("privileges", kPrivileges, "root without its capabilities, but for files of others");
  }
  if (s.wanted.processes != 0) {
    report.push_back(ReportProcesses(outcome[kProcesses] == 0, s.root, s.wanted.processes));
  }
  return report;
}

Confinement SystemConfinement() {
  Confinement confinement;
  confinement.read_only = {"/usr",
                           "/lib",
                           "/lib32",
                           "/lib64",
                           "/bin",
                           "/nix/store",
                           "/etc/ld.so.cache",
                           "/etc/ld.so.preload",
                           "/etc/alternatives",
                           "/proc/cpuinfo",
                           "/proc/meminfo",
                           "/proc/stat",
                           "/sys/devices/system",
                           "/dev/urandom"};
  confinement.devices = {"/dev/null", "/dev/zero"};
  // NOLINTNEXTLINE(concurrency-mt-unsafe): never set by us
  const char* const libraries = std::getenv("LD_LIBRARY_PATH");
  for (const std::string_view entry : Split(libraries == nullptr ? "" : libraries, ':')) {
    const std::filesystem::path folder(entry);
    if (folder.is_absolute() && folder.has_relative_path()) {
      confinement.read_only.push_back(folder);
    }
  }
  return confinement;
}

std::string Describe(const std::vector<ConfinementReport>& measures) {
  std::string text;
  for (const ConfinementReport& measure : measures) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", measure.name,
                        measure.on ? "on" : fmt::format("off ({})", measure.detail));
  }
  return text;
}

}  // namespace kernelpro
