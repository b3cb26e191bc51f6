// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "toolchain/entry_json.h"
#include "toolchain/toolchain.h"

namespace kernelpro {

/// A folder inside the cache's file system for one compilation; removed with the object.
class WorkFolder {
 public:
  explicit WorkFolder(std::filesystem::path path) : path_(std::move(path)) {}

  WorkFolder(WorkFolder&& other) noexcept;
  WorkFolder& operator=(WorkFolder&&) = delete;
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Held while one build of a key is made, so that the second one finds it instead of making it.
/// The kernel drops it when the process dies.
class KeyLock {
 public:
  explicit KeyLock(int fd) : fd_(fd) {}

  KeyLock(KeyLock&& other) noexcept;
  KeyLock& operator=(KeyLock&&) = delete;
  KeyLock(const KeyLock&) = delete;
  KeyLock& operator=(const KeyLock&) = delete;
  ~KeyLock();

 private:
  int fd_ = -1;
};

/// Builds by content key:  <folder>/builds/<key>/{candidate.cu, .so, .ptx, .cubin, entry.json}
///                         <folder>/work/<random>/   compilations under way
///                         <folder>/locks/<2 hex>    flock'ed; 256 at most, never removed
/// An entry appears whole, by the rename of its folder, and is checked (sizes and hashes of all its
/// files) whenever it is found; a damaged one counts as missing and is replaced. Correct without
/// the locks too: of two builds of one key the first rename wins and the other is dropped.
class BuildCache {
 public:
  /// Creates the folders; removes work left behind by crashes and old entries above `max_bytes`.
  [[nodiscard]] static Result<BuildCache> Open(const std::filesystem::path& folder,
                                               std::uint64_t max_bytes);

  [[nodiscard]] std::optional<Build> Find(const std::string& key) const;

  /// kCancelled when `stop` is requested while another build of the key is waited for.
  [[nodiscard]] Result<KeyLock> Lock(const std::string& key, const std::stop_token& stop) const;

  [[nodiscard]] Result<WorkFolder> NewWork() const;

  /// Where the entry of a key is, or will be.
  [[nodiscard]] std::filesystem::path EntryFolder(const std::string& key) const;

  /// Publishes `entry`, a folder inside a WorkFolder that holds all files of the build. The paths
  /// of `build` are names of files in it.
  [[nodiscard]] Result<Build> Publish(const std::filesystem::path& entry, Build build) const;

  /// Removes the least recently used entries until the rest fits `max_bytes`, but none that was
  /// used within the last day.
  void Evict(std::uint64_t max_bytes) const;

 private:
  explicit BuildCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

}  // namespace kernelpro
