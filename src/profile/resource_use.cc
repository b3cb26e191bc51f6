// SPDX-License-Identifier: Apache-2.0
#include "profile/resource_use.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr std::string_view kArchitecture = "arch = ";
constexpr std::string_view kFunction = "Function ";

/// "REG:26" and so on into their places.
void ReadFigures(std::string_view line, ResourceUse& use) {
  for (const std::string_view part : Split(line, ' ')) {
    const std::size_t colon = part.find(':');
    long long value = 0;
    if (colon == std::string_view::npos || !ParseInteger(part.substr(colon + 1), &value) ||
        value < 0) {
      continue;
    }
    const std::string_view name = part.substr(0, colon);
    const auto number = static_cast<std::uint64_t>(value);
    if (name == "REG") {
      use.registers = number;
    } else if (name == "STACK") {
      use.stack_bytes = number;
    } else if (name == "SHARED") {
      use.shared_bytes = number;
    } else if (name == "LOCAL") {
      use.local_bytes = number;
    }
  }
}

}  // namespace

std::vector<ResourceUse> ParseResourceUse(std::string_view text) {
  std::vector<ResourceUse> uses;
  std::string architecture;
  std::optional<std::string> function;
  for (std::string_view line : Lines(text)) {
    line = Trim(line);
    if (line.starts_with(kArchitecture)) {
      architecture = Printable(Trim(line.substr(kArchitecture.size())), 20);
    } else if (line.starts_with(kFunction) && line.ends_with(':')) {
      function = line.substr(kFunction.size(), line.size() - kFunction.size() - 1);
    } else if (line.starts_with("REG:") && function) {
      ResourceUse use{*std::exchange(function, std::nullopt), architecture, {}, {}, {}, {}};
      ReadFigures(line, use);
      uses.push_back(std::move(use));
    }
  }
  return uses;
}

}  // namespace kernelpro
