// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

std::string Reason() {
  return std::error_code(errno, std::generic_category()).message();
}

/// Closes the descriptor on every way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}

  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Status WriteAll(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return Fail(ErrorCode::kIo, fmt::format("cannot write {}: {}", path.string(), Reason()));
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return Ok();
}

/// What is past the limit is an error, or left unread.
enum class Past : std::uint8_t { kRefused, kLeft };

Result<std::string> Read(const fs::path& path, std::uint64_t limit, Past past) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Fail(code, fmt::format("cannot read {}: {}", path.string(), Reason()));
  }
  struct stat info{};
  if (::fstat(file.get(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return Fail(ErrorCode::kIo, fmt::format("cannot read {}: it is a folder", path.string()));
  }
  // One byte more than the file is said to hold, so that its end shows without growing; pipes and
  // /proc say 0.
  constexpr std::uint64_t kSmallest = 65536;
  const std::uint64_t expected =
      std::max(kSmallest, info.st_size > 0 ? static_cast<std::uint64_t>(info.st_size) + 1 : 0);
  std::string bytes(std::min(expected, std::max(kSmallest, limit)), '\0');
  std::size_t size = 0;
  while (true) {
    if (size == bytes.size()) {
      bytes.resize(2 * size);
    }
    const ssize_t n = ::read(file.get(), bytes.data() + size, bytes.size() - size);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return Fail(ErrorCode::kIo, fmt::format("cannot read {}: {}", path.string(), Reason()));
    }
    if (n == 0) {
      break;
    }
    size += static_cast<std::size_t>(n);
    if (size >= limit && past == Past::kLeft) {
      size = limit;
      break;
    }
    if (size > limit) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} is larger than the limit of {} bytes", path.string(), limit));
    }
  }
  bytes.resize(size);
  if (size <= kSmallest / 2) {
    bytes.shrink_to_fit();
  }
  return bytes;
}

}  // namespace

Result<std::string> ReadFile(const fs::path& path, std::uint64_t limit) {
  return Read(path, limit, Past::kRefused);
}

Result<std::string> ReadFileHead(const fs::path& path, std::uint64_t bytes) {
  return Read(path, bytes, Past::kLeft);
}

Status WriteFileAtomically(const fs::path& path, std::string_view bytes) {
  std::error_code error;
  if (path.has_parent_path()) {
    fs::create_directories(path.parent_path(), error);
    if (error) {
      return Fail(ErrorCode::kIo, fmt::format("cannot create folder {}: {}",
                                              path.parent_path().string(), error.message()));
    }
  }
  std::string temporary = path.string() + ".XXXXXX";
  const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) {
    return Fail(ErrorCode::kIo, fmt::format("cannot write {}: {}", path.string(), Reason()));
  }
  Status written = WriteAll(file.get(), bytes, path);
  if (written && (::fchmod(file.get(), 0644) != 0 || ::fsync(file.get()) != 0 ||
                  ::rename(temporary.c_str(), path.c_str()) != 0)) {
    written = Fail(ErrorCode::kIo, fmt::format("cannot write {}: {}", path.string(), Reason()));
  }
  if (!written) {
    ::unlink(temporary.c_str());
  }
  return written;
}

Result<TemporaryFolder> TemporaryFolder::Create(std::string_view prefix) {
  std::error_code error;
  const fs::path base = fs::temp_directory_path(error);
  if (error) {
    return Fail(ErrorCode::kIo, "no temporary folder: " + error.message() + "; set $TMPDIR");
  }
  std::string name = (base / fmt::format("{}.XXXXXX", prefix)).string();
  if (::mkdtemp(name.data()) == nullptr) {
    return Fail(ErrorCode::kIo, fmt::format("cannot create {}: {}", name, Reason()));
  }
  return TemporaryFolder(fs::path(name));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, fs::path())) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) {
    std::error_code ignored;  // A leftover in /tmp is not worth failing for.
    fs::remove_all(path_, ignored);
  }
}

fs::path FindOnPath(std::string_view name) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): never set by us
  std::string_view rest = path == nullptr ? std::string_view() : std::string_view(path);
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    const fs::path candidate = fs::path(rest.substr(0, end)) / name;
    if (::access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate)) {
      return candidate;
    }
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return {};
}

fs::path ExecutableFolder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace kernelpro
