// SPDX-License-Identifier: Apache-2.0
#include "codesearch/source_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace kernelpro::codesearch {
namespace {

constexpr std::size_t kLongestName = 255;
constexpr std::size_t kLongestPath = 4096;
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// Not blocking: opening a named pipe would wait for its writer.
constexpr int kFile = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}

  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  [[nodiscard]] int get() const { return fd_; }

  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

bool IsSource(std::string_view name) {
  constexpr std::array<std::string_view, 7> kEndings{".h",  ".hpp", ".cuh", ".cu",
                                                     ".cc", ".cpp", ".inl"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) {
    return name.size() > ending.size() && name.ends_with(ending);
  });
}

/// Names that could not be given back in a text are no use in a hit.
bool IsShown(std::string_view name) {
  return !name.starts_with('.') && name.find_first_of("\t\n") == std::string_view::npos &&
         Printable(name, kLongestName) == name;
}

Error NotHeld(std::string_view path, std::string_view why) {
  return Fail(ErrorCode::kNotFound, fmt::format("{}: {}", Printable(path, kLongestName), why));
}

Error NotAllowed(std::string_view path, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: {}", Printable(path, kLongestName), why));
}

/// The path's names without "." and empty ones.
Result<std::vector<std::string>> Names(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath || path.find('\0') != std::string_view::npos) {
    return NotAllowed(path, "no path");
  }
  if (path.starts_with('/')) {
    return NotAllowed(path, "the path must be relative to the index's root");
  }
  std::vector<std::string> names;
  for (const std::string_view name : Split(path, '/')) {
    if (name == "..") {
      return NotAllowed(path, "\"..\" is not allowed in a path");
    }
    if (!name.empty() && name != ".") {
      names.emplace_back(name);
    }
  }
  return names;
}

bool IsLink(int folder, const std::string& name) {
  struct stat info{};
  return ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
}

/// Reads one byte more than allowed to see a file that grows past the limit.
Result<std::string> ReadAll(int fd, std::string_view path) {
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return NotHeld(path, "no regular file");
  }
  if (info.st_size > static_cast<off_t>(SourceTree::kLargestFile)) {
    return NotHeld(path, "larger than 4 MiB");
  }
  std::string bytes(static_cast<std::size_t>(info.st_size) + 1, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t count = ::read(fd, bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return Fail(ErrorCode::kIo, fmt::format("{}: {}", Printable(path, kLongestName),
                                              std::generic_category().message(errno)));
    }
    if (count == 0) {
      break;
    }
    size += static_cast<std::size_t>(count);
  }
  bytes.resize(size);  // what a writer appends meanwhile is left out
  if (bytes.find('\0') != std::string::npos) {
    return NotHeld(path, "a binary file");
  }
  return bytes;
}

class Lister {
 public:
  /// `prefix` is empty or ends with '/'.
  Status Visit(Descriptor folder, const std::string& prefix, std::size_t depth) {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(folder.get()), &::closedir);
    if (!stream) {
      return Ok();  // like a folder that may not be read
    }
    const int fd = folder.release();  // the stream's now
    std::vector<std::string> folders;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this function's own
    while (const dirent* entry = ::readdir(stream.get())) {
      if (++entries_ > SourceTree::kMostEntries) {
        return TooLarge(SourceTree::kMostEntries, "entries");
      }
      const std::string name = entry->d_name;
      struct stat info{};
      if (!IsShown(name) || ::fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        continue;
      }
      if (S_ISDIR(info.st_mode)) {
        folders.push_back(name);
      } else if (S_ISREG(info.st_mode) && IsSource(name)) {
        if (files_.size() == SourceTree::kMostFiles) {
          return TooLarge(SourceTree::kMostFiles, "sources");
        }
        files_.push_back(prefix + name);
      }
    }
    for (const std::string& name : folders) {
      Descriptor inner(::openat(fd, name.c_str(), kFolder));
      if (inner.get() >= 0 && depth < SourceTree::kDeepest) {
        KP_RETURN_IF_ERROR(Visit(std::move(inner), prefix + name + "/", depth + 1));
      }
    }
    return Ok();
  }

  std::vector<std::string> Sorted() && {
    std::ranges::sort(files_);
    return std::move(files_);
  }

 private:
  static Error TooLarge(std::size_t limit, std::string_view what) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the folder holds more than {} {}: choose a smaller one", limit, what));
  }

  std::vector<std::string> files_;
  std::size_t entries_ = 0;
};

}  // namespace

Result<SourceTree> SourceTree::Open(const std::filesystem::path& root) {
  // The root itself may be a link: it is the user's choice, not a name found in a tree.
  const int fd = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    const ErrorCode code = errno == ENOENT    ? ErrorCode::kNotFound
                           : errno == ENOTDIR ? ErrorCode::kInvalidArgument
                                              : ErrorCode::kIo;
    return Fail(code, fmt::format("cannot open the folder {}: {}", root.string(),
                                  std::generic_category().message(errno)));
  }
  return SourceTree(fd);
}

SourceTree::SourceTree(SourceTree&& other) noexcept : root_(std::exchange(other.root_, -1)) {}

SourceTree::~SourceTree() {
  if (root_ >= 0) {
    ::close(root_);
  }
}

Result<std::vector<std::string>> SourceTree::List() const {
  // A descriptor of its own: a stream's position belongs to the open file, which threads share.
  Descriptor root(::openat(root_, ".", kFolder));
  if (root.get() < 0) {
    return Fail(ErrorCode::kIo,
                fmt::format("cannot list the index: {}", std::generic_category().message(errno)));
  }
  Lister lister;
  KP_RETURN_IF_ERROR(lister.Visit(std::move(root), "", 0));
  return std::move(lister).Sorted();
}

Result<std::string> SourceTree::Read(std::string_view path) const {
  KP_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(path));
  if (names.empty() || !IsSource(names.back()) || !std::ranges::all_of(names, IsShown)) {
    return NotHeld(path, "no source that the index holds");
  }
  Descriptor folder(::openat(root_, ".", kFolder));
  for (const std::string& name : names) {
    const bool last = &name == &names.back();
    Descriptor inner(::openat(folder.get(), name.c_str(), last ? kFile : kFolder));
    if (inner.get() < 0) {
      const int reason = errno;
      if (IsLink(folder.get(), name)) {
        return NotAllowed(path, "symbolic links are not followed");
      }
      return NotHeld(path, std::generic_category().message(reason));
    }
    folder = std::move(inner);
  }
  return ReadAll(folder.get(), path);
}

}  // namespace kernelpro::codesearch
