// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

namespace kernelpro::activity {
namespace {

/// Mangled names of template libraries reach several KB; more is cut.
constexpr std::size_t kLongestText = 8192;
constexpr std::size_t kBuffer = 1U << 16U;

/// The C++ name; empty when it is none. Done here, where names come from a compiler, and not in the
/// reader: a name made by hand can grow without bound.
std::string Demangled(const std::string& name) {
  if (!name.starts_with("_Z")) {
    return "";
  }
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && plain != nullptr ? std::string(plain.get()) : "";
}

}  // namespace

Line::Line(std::string_view type) {
  text_ = "{\"t\":\"";
  text_ += type;
  text_ += '"';
}

void Line::Key(std::string_view key) {
  text_ += ",\"";
  text_ += key;
  text_ += "\":";
}

Line& Line::Text(std::string_view key, std::string_view value) {
  constexpr std::string_view kHex = "0123456789abcdef";
  Key(key);
  text_ += '"';
  for (const char c : value.substr(0, kLongestText)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (byte < 0x20 || byte >= 0x7f) {  // not ASCII: by its byte value
      text_ += "\\u00";
      text_ += kHex[byte >> 4U];
      text_ += kHex[byte & 15U];
    } else {
      text_ += c;
    }
  }
  text_ += '"';
  return *this;
}

Line& Line::Number(std::string_view key, std::uint64_t value) {
  Key(key);
  text_ += std::to_string(value);
  return *this;
}

Line& Line::Triple(std::string_view key, std::int64_t x, std::int64_t y, std::int64_t z) {
  Key(key);
  text_ += '[' + std::to_string(x) + ',' + std::to_string(y) + ',' + std::to_string(z) + ']';
  return *this;
}

std::string Line::Finish() && {
  text_ += "}\n";
  return std::move(text_);
}

bool Log::Open(const std::string& path, std::uint64_t limit) {
  limit_ = limit;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
  fd_ = ::open(path.c_str(), kFlags, 0600);
  if (fd_ < 0 && errno == EEXIST) {
    fd_ = ::open((path + "." + std::to_string(::getpid())).c_str(), kFlags, 0600);
  }
  struct stat status{};
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) {
    return false;
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  return true;
}

bool Log::StillOurs() const {
  struct stat status{};
  return fd_ >= 0 && ::fstat(fd_, &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_;
}

bool Log::Admit() {
  if (records_ >= limit_) {
    ++dropped_;
    return false;
  }
  ++records_;
  if (buffer_.size() > kBuffer) {
    Write();
  }
  return true;
}

std::uint32_t Log::NameId(std::string_view name) {
  const auto [found, is_new] =
      names_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (is_new) {
    Line line("name");
    line.Number("id", found->second).Text("name", name);
    if (const std::string plain = Demangled(found->first); !plain.empty()) {
      line.Text("plain", plain);
    }
    Meta(std::move(line));
  }
  return found->second;
}

void Log::Write() {
  std::size_t done = 0;
  if (!StillOurs()) {
    fd_ = -1;
  }
  while (fd_ >= 0 && done < buffer_.size()) {
    const ssize_t wrote = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (wrote < 0 && errno == EINTR) {
      continue;
    }
    if (wrote <= 0) {  // a full disk: the traced program goes on without its trace
      ::close(fd_);
      fd_ = -1;
      break;
    }
    done += static_cast<std::size_t>(wrote);
  }
  buffer_.clear();
}

}  // namespace kernelpro::activity
