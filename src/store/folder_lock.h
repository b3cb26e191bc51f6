// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "base/result.h"

namespace kernelpro::store {

/// An advisory lock on <folder>/lock that the kernel drops when the process dies.
class FolderLock {
 public:
  /// kUnavailable: another process holds it.
  [[nodiscard]] static Result<FolderLock> Take(const std::filesystem::path& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace kernelpro::store
