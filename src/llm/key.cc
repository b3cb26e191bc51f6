// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "llm/client.h"

namespace kernelpro::llm {
namespace {

constexpr std::string_view kInPlace = "[key]";
constexpr std::size_t kGram = 8;          // a prefix of this length gives a key away
constexpr std::size_t kShortestRun = 12;  // and so does a run of this length from its middle
// Any run of kShortestRun holds a gram that begins at a multiple of this.
constexpr std::size_t kStride = kShortestRun - kGram + 1;
constexpr std::size_t kLongestKey = 8192;

using Span = std::pair<std::size_t, std::size_t>;

std::string Percent(std::string_view text, bool upper) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      out += upper ? fmt::format("%{:02X}", byte) : fmt::format("%{:02x}", byte);
    }
  }
  return out;
}

std::string JsonEscaped(std::string_view text, bool slash) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\' || (slash && c == '/')) {
      out += '\\';
    }
    out += c;
  }
  return out;
}

std::uint64_t Gram(const char* at) {
  std::uint64_t gram = 0;
  std::memcpy(&gram, at, kGram);
  return gram;
}

/// Grows [at, at + kGram), which equals the form's text from `in_form` on, to both sides.
Span Grow(std::string_view text, std::size_t at, std::string_view form, std::size_t in_form) {
  std::size_t from = at;
  std::size_t k = in_form;
  while (from > 0 && k > 0 && text[from - 1] == form[k - 1]) {
    --from;
    --k;
  }
  std::size_t to = at + kGram;
  k = in_form + kGram;
  while (to < text.size() && k < form.size() && text[to] == form[k]) {
    ++to;
    ++k;
  }
  return {from, to};
}

void FindRuns(std::string_view text, std::string_view form, std::vector<Span>& spans) {
  if (form.size() < kGram) {
    for (std::size_t at = text.find(form); at != std::string_view::npos;
         at = text.find(form, at + form.size())) {
      spans.emplace_back(at, at + form.size());
    }
    return;
  }
  for (std::size_t at = text.find(form.substr(0, kGram)); at != std::string_view::npos;
       at = text.find(form.substr(0, kGram), at + 1)) {
    spans.push_back(Grow(text, at, form, 0));
  }
  std::unordered_multimap<std::uint64_t, std::size_t> grams;
  for (std::size_t k = 0; k + kGram <= form.size(); ++k) {
    grams.emplace(Gram(form.data() + k), k);
  }
  for (std::size_t at = 0; at + kGram <= text.size(); at += kStride) {
    const auto [first, last] = grams.equal_range(Gram(text.data() + at));
    for (auto it = first; it != last; ++it) {
      const Span span = Grow(text, at, form, it->second);
      if (span.second - span.first >= kShortestRun) {
        spans.push_back(span);
      }
    }
  }
}

Error FileError(const std::filesystem::path& file, std::string_view what) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("key file {}: {}", file.string(), what));
}

Result<std::string> ReadKeyFile(const std::filesystem::path& file) {
  // O_NONBLOCK: opening a pipe that nobody writes must not hang; it is refused below.
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return FileError(file, std::strerror(errno));
  }
  struct stat facts{};
  std::string text(kLongestKey + 1, '\0');
  const bool known = fstat(fd, &facts) == 0;
  const bool regular = known && S_ISREG(facts.st_mode);
  const ssize_t size = regular ? read(fd, text.data(), text.size()) : 0;
  close(fd);
  if (!regular) {
    return FileError(file, "not a regular file");
  }
  if (facts.st_uid != geteuid()) {
    return FileError(file, "belongs to another user");
  }
  if ((facts.st_mode & 077U) != 0) {
    return FileError(file, fmt::format("others may read it (mode {:03o}): chmod 600 {}",
                                       facts.st_mode & 0777U, file.string()));
  }
  if (size < 0 || static_cast<std::size_t>(size) > kLongestKey) {
    return FileError(file, "cannot be read, or is no key: longer than 8 KiB");
  }
  text.resize(static_cast<std::size_t>(size));
  return text;
}

Result<Key> Checked(std::string_view text, const std::string& where) {
  const std::string_view trimmed = Trim(text);
  if (trimmed.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is empty: put the key into it", where));
  }
  // A line end inside would let the rest become headers of the request.
  if (!std::ranges::all_of(trimmed, [](unsigned char c) { return c > ' ' && c < 127; })) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} holds blanks, control or non-ASCII characters inside: it must be "
                            "the key and nothing else",
                            where));
  }
  return Key(std::string(trimmed));
}

}  // namespace

std::string Key::Redact(std::string text) const {
  if (secret_.empty() || text.empty()) {
    return text;
  }
  std::vector<std::string> forms = {secret_, JsonEscaped(secret_, false),
                                    JsonEscaped(secret_, true), Percent(secret_, true),
                                    Percent(secret_, false)};
  std::ranges::sort(forms);
  forms.erase(std::unique(forms.begin(), forms.end()), forms.end());
  std::vector<Span> spans;
  for (const std::string& form : forms) {
    FindRuns(text, form, spans);
  }
  if (spans.empty()) {
    return text;
  }
  std::ranges::sort(spans);
  std::string out;
  std::size_t done = 0;
  for (const auto& [from, to] : spans) {
    if (from >= done) {
      out.append(text, done, from - done);
      out += kInPlace;
    }
    done = std::max(done, to);
  }
  return out.append(text, done);
}

Result<Key> FindKey(const Endpoint& endpoint, const std::filesystem::path& file) {
  if (!file.empty()) {
    KP_ASSIGN_OR_RETURN(const std::string text, ReadKeyFile(file));
    return Checked(text, "key file " + file.string());
  }
  const char* name = endpoint.wire == Wire::kOpenAi ? "OPENAI_API_KEY" : "ANTHROPIC_API_KEY";
  const char* value = std::getenv(name);
  if (value != nullptr && *value != '\0') {
    return Checked(value, fmt::format("the environment variable {}", name));
  }
  if (IsLoopback(endpoint.base_url)) {
    return Key();
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("no key for {}: set {} or give a file with --key-file (chmod 600)",
                          endpoint.base_url, name));
}

}  // namespace kernelpro::llm
