// SPDX-License-Identifier: Apache-2.0
#include "store/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace kernelpro::store {

Result<FolderLock> FolderLock::Take(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "lock";
  FolderLock lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.fd_ < 0) {
    return Fail(ErrorCode::kIo,
                fmt::format("cannot write to {}: {}", folder.string(),
                            std::error_code(errno, std::generic_category()).message()));
  }
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("run {} is in use by another kernelpro", folder.string()));
  }
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

}  // namespace kernelpro::store
