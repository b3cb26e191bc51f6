// SPDX-License-Identifier: Apache-2.0
#include "named.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace kernelpro {
namespace {

bool IsWord(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// "a|b" gives alternatives, as rules and tools write them.
void AddIfName(std::string_view literal, std::string_view where, std::vector<Named>& names) {
  for (const std::string_view name : Split(literal, '|')) {
    const std::size_t unit = name.find("__");
    const std::vector<std::string_view> parts = Split(name, '.');
    if (unit == 0 || unit == std::string_view::npos || unit + 2 >= parts[0].size() ||
        !std::ranges::all_of(parts, IsWord) || name.ends_with('_')) {
      continue;
    }
    names.push_back({std::string(name), std::string(where)});
  }
}

}  // namespace

std::vector<Named> NamesIn(std::string_view text, std::string_view label) {
  std::vector<Named> names;
  std::size_t number = 0;
  for (const std::string_view line : Lines(text)) {
    ++number;
    const std::string where = std::string(label) + ":" + std::to_string(number);
    // Comments may show a name that is none.
    std::size_t at = line.find_first_of("\"#/");
    while (at != std::string_view::npos && line[at] != '#' && line.substr(at, 2) != "//") {
      const std::size_t close = line[at] == '"' ? line.find('"', at + 1) : at;
      if (close == std::string_view::npos) {
        break;
      }
      if (close > at) {
        AddIfName(line.substr(at + 1, close - at - 1), where, names);
      }
      at = line.find_first_of("\"#/", close + 1);
    }
  }
  return names;
}

std::vector<Named> NamesBeneath(const std::filesystem::path& folder, std::string_view extension) {
  std::vector<Named> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (!entry.is_regular_file(error) || entry.path().extension() != extension ||
        file.find("_test.") != std::string::npos) {
      continue;
    }
    const Result<std::string> text = ReadFile(entry.path());
    if (text) {
      const std::vector<Named> here = NamesIn(*text, entry.path().string());
      names.insert(names.end(), here.begin(), here.end());
    }
  }
  return names;
}

}  // namespace kernelpro
