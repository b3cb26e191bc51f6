// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kernelpro {

inline constexpr std::uint64_t kDefaultReadLimit = 64ULL << 20U;

/// The whole file as bytes. kNotFound when it is not there, kIo otherwise; a file larger than
/// `limit` bytes is refused rather than truncated.
[[nodiscard]] Result<std::string> ReadFile(const std::filesystem::path& path,
                                           std::uint64_t limit = kDefaultReadLimit);

/// The first `bytes` bytes, or all when the file is shorter: enough to tell its kind. Errors as of
/// ReadFile.
[[nodiscard]] Result<std::string> ReadFileHead(const std::filesystem::path& path,
                                               std::uint64_t bytes);

/// Writes beside the target, syncs and renames: a reader sees the old content or the new, also
/// after a crash, never a part. Creates missing parent folders.
[[nodiscard]] Status WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes);

/// A private folder that is removed, with everything in it, when the object dies.
class TemporaryFolder {
 public:
  [[nodiscard]] static Result<TemporaryFolder> Create(std::string_view prefix);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

/// The first executable called `name` on $PATH; empty when there is none.
[[nodiscard]] std::filesystem::path FindOnPath(std::string_view name);

/// The folder of the running executable: where apps find the binaries and data beside them.
[[nodiscard]] std::filesystem::path ExecutableFolder();

}  // namespace kernelpro
