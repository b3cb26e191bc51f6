// SPDX-License-Identifier: Apache-2.0
#include "profile/demangle.h"

#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr std::size_t kLongestName = 400;
constexpr std::size_t kLongestMangled = 4000;
/// An expansion multiplies at most 3^(n/3) times with n back references: a few megabytes.
constexpr std::size_t kMostReferences = 36;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

/// "S_", "S1A_", "T_", "T0_": more rather than fewer, for they also occur within identifiers.
std::size_t CountReferences(std::string_view mangled) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < mangled.size(); ++i) {
    if (mangled[i] != 'S' && mangled[i] != 'T') {
      continue;
    }
    std::size_t end = i + 1;
    while (end < mangled.size() &&
           (IsDigit(mangled[end]) || (mangled[end] >= 'A' && mangled[end] <= 'Z'))) {
      ++end;
    }
    count += end < mangled.size() && mangled[end] == '_' ? 1 : 0;
  }
  return count;
}

/// "_ZN2ns1fIiEEvPf" -> "ns::f": the identifiers that the name begins with. Empty: not that form.
std::string Identifiers(std::string_view mangled) {
  mangled.remove_prefix(2);
  if (mangled.starts_with('N')) {
    mangled.remove_prefix(1);
  }
  std::string name;
  while (!mangled.empty() && IsDigit(mangled.front())) {
    std::size_t length = 0;
    while (!mangled.empty() && IsDigit(mangled.front()) && length <= kLongestMangled) {
      length = length * 10 + static_cast<std::size_t>(mangled.front() - '0');
      mangled.remove_prefix(1);
    }
    if (length == 0 || length > mangled.size()) {
      return {};
    }
    name += (name.empty() ? "" : "::") + std::string(mangled.substr(0, length));
    mangled.remove_prefix(length);
  }
  return name;
}

}  // namespace

std::string ReadableName(std::string_view demangled) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < demangled.size(); ++i) {
    depth += demangled[i] == '<' ? 1 : 0;
    depth -= demangled[i] == '>' && depth > 0 ? 1 : 0;
    if (demangled[i] == '(' && depth == 0 && i > 0 &&
        !demangled.substr(i).starts_with("(anonymous")) {
      demangled = demangled.substr(0, i);
      break;
    }
  }
  if (demangled.starts_with("void ")) {
    demangled.remove_prefix(5);
  }
  return Printable(Trim(demangled), kLongestName);
}

std::string KernelName(std::string_view mangled) {
  if (!mangled.starts_with("_Z")) {
    return ReadableName(mangled);
  }
  if (mangled.size() > kLongestMangled || CountReferences(mangled) > kMostReferences) {
    const std::string name = Identifiers(mangled);
    return Printable(name.empty() ? mangled : std::string_view(name), kLongestName);
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(mangled).c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) {
    return Printable(mangled, kLongestName);
  }
  return ReadableName(text.get());
}

}  // namespace kernelpro
