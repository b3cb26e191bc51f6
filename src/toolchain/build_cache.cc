// SPDX-License-Identifier: Apache-2.0
#include "toolchain/build_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hash.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifest = "entry.json";
constexpr std::uint64_t kMaxFileBytes = 1ULL << 30U;
constexpr std::chrono::hours kKeep{24};

std::string Reason() {
  return std::error_code(errno, std::generic_category()).message();
}

/// Removes a folder that others may be looking at: first out of sight, then away.
void RemoveEntry(const fs::path& entry, const fs::path& work) {
  std::error_code ignored;  // Another process may be removing it too.
  std::string aside = (work / "gone.XXXXXX").string();
  if (::mkdtemp(aside.data()) != nullptr) {
    fs::rename(entry, fs::path(aside) / "entry", ignored);
    fs::remove_all(aside, ignored);
  }
}

Result<EntryFile> Describe(const fs::path& path) {
  KP_ASSIGN_OR_RETURN(const std::string content, ReadFile(path, kMaxFileBytes));
  return EntryFile{
      .name = path.filename().string(), .bytes = content.size(), .hash = Hash64(content)};
}

bool Unchanged(const fs::path& folder, const EntryFile& file) {
  const auto now = Describe(folder / file.name);
  return now.ok() && now->bytes == file.bytes && now->hash == file.hash;
}

fs::path InFolder(const fs::path& folder, const fs::path& name) {
  return name.empty() ? fs::path() : folder / name;
}

struct Evictable {
  fs::path path;
  fs::file_time_type used;
  std::uint64_t bytes = 0;
};

}  // namespace

WorkFolder::WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

WorkFolder::~WorkFolder() {
  if (!path_.empty()) {
    std::error_code ignored;  // Open() removes leftovers.
    fs::remove_all(path_, ignored);
  }
}

KeyLock::KeyLock(KeyLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

KeyLock::~KeyLock() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

Result<BuildCache> BuildCache::Open(const fs::path& folder, std::uint64_t max_bytes) {
  std::error_code error;
  const fs::path absolute = fs::absolute(folder, error).lexically_normal();
  for (const char* part : {"builds", "work", "locks"}) {
    if (!error) {
      fs::create_directories(absolute / part, error);
    }
  }
  if (error) {
    return Fail(ErrorCode::kIo, fmt::format("cannot create the build cache {}: {}",
                                            absolute.string(), error.message()));
  }
  const auto now = fs::file_time_type::clock::now();
  for (const auto& entry : fs::directory_iterator(absolute / "work", error)) {
    std::error_code ignored;
    if (now - entry.last_write_time(ignored) > kKeep) {
      fs::remove_all(entry.path(), ignored);
    }
  }
  BuildCache cache(absolute);
  cache.Evict(max_bytes);
  return cache;
}

fs::path BuildCache::EntryFolder(const std::string& key) const {
  return folder_ / "builds" / key;
}

std::optional<Build> BuildCache::Find(const std::string& key) const {
  const fs::path entry = EntryFolder(key);
  const auto text = ReadFile(entry / kManifest);
  if (!text) {
    return std::nullopt;
  }
  auto manifest = ManifestFromJson(*text);
  if (!manifest || manifest->build.key != key ||
      !std::ranges::all_of(manifest->files,
                           [&](const EntryFile& file) { return Unchanged(entry, file); })) {
    return std::nullopt;
  }
  std::error_code ignored;  // Only the order of eviction depends on it.
  fs::last_write_time(entry / kManifest, fs::file_time_type::clock::now(), ignored);
  Build build = std::move(manifest->build);
  build.library = InFolder(entry, build.library);
  build.ptx = InFolder(entry, build.ptx);
  build.cubin = InFolder(entry, build.cubin);
  build.from_cache = true;
  return build;
}

Result<KeyLock> BuildCache::Lock(const std::string& key, const std::stop_token& stop) const {
  const fs::path path = folder_ / "locks" / key.substr(0, 2);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return Fail(ErrorCode::kIo, fmt::format("cannot open {}: {}", path.string(), Reason()));
  }
  KeyLock lock(fd);
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      break;  // A file system without locks: the rename alone keeps the cache correct.
    }
    if (stop.stop_requested()) {
      return Fail(ErrorCode::kCancelled, "stopped while waiting for another build");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return lock;
}

Result<WorkFolder> BuildCache::NewWork() const {
  std::string name = (folder_ / "work" / "build.XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return Fail(ErrorCode::kIo, fmt::format("cannot create {}: {}", name, Reason()));
  }
  return WorkFolder(fs::path(name));
}

Result<Build> BuildCache::Publish(const fs::path& entry, Build build) const {
  EntryManifest manifest;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(entry, error)) {
    KP_ASSIGN_OR_RETURN(EntryFile described, Describe(file.path()));
    manifest.files.push_back(std::move(described));
  }
  manifest.build = build;
  KP_RETURN_IF_ERROR(WriteFileAtomically(entry / kManifest, ManifestToJson(manifest)));
  const fs::path target = EntryFolder(build.key);
  for (int attempt = 0; attempt < 3; ++attempt) {
    error.clear();
    fs::rename(entry, target, error);
    if (!error) {
      break;
    }
    if (auto winner = Find(build.key)) {
      return *std::move(winner);
    }
    RemoveEntry(target, folder_ / "work");
  }
  if (error) {
    return Fail(ErrorCode::kIo,
                fmt::format("cannot publish the build {}: {}", target.string(), error.message()));
  }
  build.library = InFolder(target, build.library);
  build.ptx = InFolder(target, build.ptx);
  build.cubin = InFolder(target, build.cubin);
  return build;
}

void BuildCache::Evict(std::uint64_t max_bytes) const {
  std::error_code error;
  std::vector<Evictable> entries;
  std::uint64_t total = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "builds", error)) {
    Evictable candidate{.path = entry.path(), .used = {}, .bytes = 0};
    std::error_code ignored;  // Entries may go while we look.
    for (const auto& file : fs::directory_iterator(entry.path(), ignored)) {
      const std::uint64_t bytes = file.file_size(ignored);
      candidate.bytes += ignored ? 0 : bytes;
    }
    candidate.used = fs::last_write_time(entry.path() / kManifest, ignored);
    total += candidate.bytes;
    entries.push_back(std::move(candidate));
  }
  std::ranges::sort(entries, {}, &Evictable::used);
  const auto now = fs::file_time_type::clock::now();
  for (const Evictable& entry : entries) {
    if (total <= max_bytes || now - entry.used < kKeep) {
      return;
    }
    RemoveEntry(entry.path, folder_ / "work");
    total -= entry.bytes;
  }
}

}  // namespace kernelpro
