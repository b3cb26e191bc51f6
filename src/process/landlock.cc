// SPDX-License-Identifier: Apache-2.0
#include "process/landlock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace kernelpro::landlock {
namespace {

// The numbers and layouts of linux/landlock.h, whose older versions lack most of them.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr unsigned kAskVersion = 1U;
constexpr int kPathBeneath = 1;

constexpr std::uint64_t kExecute = 1U << 0U;
constexpr std::uint64_t kWriteFile = 1U << 1U;
constexpr std::uint64_t kReadFile = 1U << 2U;
constexpr std::uint64_t kReadDir = 1U << 3U;
constexpr std::uint64_t kRemoveDir = 1U << 4U;
constexpr std::uint64_t kRemoveFile = 1U << 5U;
constexpr std::uint64_t kMakeDir = 1U << 7U;
constexpr std::uint64_t kMakeReg = 1U << 8U;
constexpr std::uint64_t kMakeSock = 1U << 9U;
constexpr std::uint64_t kMakeFifo = 1U << 10U;
constexpr std::uint64_t kMakeSym = 1U << 12U;
constexpr std::uint64_t kRefer = 1U << 13U;
constexpr std::uint64_t kTruncate = 1U << 14U;
constexpr std::uint64_t kIoctlDev = 1U << 15U;
/// What a rule on a single file may name.
constexpr std::uint64_t kFileRights = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev;

constexpr std::uint64_t kTcp = 0b11;             // bind, connect
constexpr std::uint64_t kSocketsSignals = 0b11;  // abstract Unix sockets, signals

struct RulesetAttributes {
  std::uint64_t files = 0;
  std::uint64_t network = 0;
  std::uint64_t scoped = 0;
};

struct PathBeneath {
  std::uint64_t allowed = 0;
  std::int32_t parent_fd = -1;
} __attribute__((packed));

std::uint64_t HandledFiles(int version) {
  std::uint64_t handled = (1U << 13U) - 1;
  handled |= version >= 2 ? kRefer : 0;
  handled |= version >= 3 ? kTruncate : 0;
  handled |= version >= 5 ? kIoctlDev : 0;
  return handled;
}

/// The kernel refuses a structure that is longer than the one it knows unless the rest is zero;
/// older ones also check the shortest size, so each gets its own.
std::size_t AttributeBytes(int version) {
  if (version >= 6) {
    return sizeof(RulesetAttributes);
  }
  return version >= 4 ? 2 * sizeof(std::uint64_t) : sizeof(std::uint64_t);
}

std::uint64_t Rights(Access access) {
  switch (access) {
    case Access::kRead:
      return kReadFile | kReadDir;
    case Access::kRun:
      return kReadFile | kReadDir | kExecute;
    case Access::kReadWrite:
      return kReadFile | kReadDir | kWriteFile | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg |
             kMakeSock | kMakeFifo | kMakeSym | kRefer | kTruncate;
    case Access::kDevice:
      return kReadFile | kReadDir | kWriteFile | kTruncate | kIoctlDev;
  }
  return 0;
}

}  // namespace

int Version() {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  return version < 0 ? 0 : static_cast<int>(version);
}

Ruleset::~Ruleset() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

bool Ruleset::Open(int version, bool network) {
  if (version < 1 || fd_ >= 0) {
    errno = version < 1 ? ENOSYS : EBUSY;
    return false;
  }
  RulesetAttributes attributes;
  attributes.files = handled_ = HandledFiles(version);
  attributes.network = version >= 4 && !network ? kTcp : 0;
  attributes.scoped = version >= 6 ? kSocketsSignals : 0;
  fd_ = static_cast<int>(
      ::syscall(kCreateRuleset, &attributes, AttributeBytes(version), 0U));  // close-on-exec
  return fd_ >= 0;
}

bool Ruleset::Allow(const char* path, Access access) {
  const int fd = ::open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) {
    return errno == ENOENT || errno == ENOTDIR;
  }
  const bool done = AllowDescriptor(fd, access);
  const int error = errno;
  ::close(fd);
  errno = error;
  return done;
}

bool Ruleset::AllowDescriptor(int fd, Access access) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) {
    return false;
  }
  PathBeneath rule;
  rule.parent_fd = fd;
  rule.allowed = Rights(access) & handled_;
  if (!S_ISDIR(status.st_mode)) {
    rule.allowed &= kFileRights;
  }
  return ::syscall(kAddRule, fd_, kPathBeneath, &rule, 0U) == 0;
}

bool Ruleset::Enforce() const {
  return ::syscall(kRestrictSelf, fd_, 0U) == 0;
}

void Ruleset::MoveAbove(int least) {
  if (fd_ >= 0) {
    fd_ = ::fcntl(fd_, F_DUPFD_CLOEXEC, least);
  }
}

}  // namespace kernelpro::landlock
