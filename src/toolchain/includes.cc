// SPDX-License-Identifier: Apache-2.0
#include "toolchain/includes.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

/// Undoes the escapes of a line marker: \\, \" and three octal digits.
std::string Unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      out += text[i];
      continue;
    }
    ++i;
    const auto is_octal = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7';
    };
    if (is_octal(i) && is_octal(i + 1) && is_octal(i + 2)) {
      out +=
          static_cast<char>((text[i] - '0') * 64 + (text[i + 1] - '0') * 8 + (text[i + 2] - '0'));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Name of the file that a marker enters (flag 1); empty for every other line.
std::string EnteredFile(std::string_view line) {
  if (!line.starts_with("# ")) {
    return {};
  }
  const std::size_t open = line.find('"');
  const std::size_t close = line.rfind('"');
  if (open == std::string_view::npos || close <= open) {
    return {};
  }
  const std::vector<std::string_view> flags = Split(Trim(line.substr(close + 1)), ' ');
  if (std::ranges::find(flags, "1") == flags.end()) {
    return {};
  }
  return Unescape(line.substr(open + 1, close - open - 1));
}

bool LiesIn(const fs::path& path, const fs::path& root) {
  const auto [at_root, at_path] = std::ranges::mismatch(root, path);
  // A trailing "/" of the root shows as an empty last element.
  return at_root == root.end() || (at_root->empty() && std::next(at_root) == root.end());
}

}  // namespace

std::string ForeignInclude(std::string_view preprocessed, const std::vector<fs::path>& roots) {
  while (!preprocessed.empty()) {
    const std::size_t end = preprocessed.find('\n');
    const std::string_view line = preprocessed.substr(0, end);
    preprocessed =
        end == std::string_view::npos ? std::string_view() : preprocessed.substr(end + 1);
    const std::string name = EnteredFile(line);
    if (name.empty()) {
      continue;
    }
    const fs::path path = fs::path(name).lexically_normal();
    const bool inside =
        path.is_relative()
            ? *path.begin() != ".."
            : std::ranges::any_of(roots, [&](const fs::path& root) { return LiesIn(path, root); });
    if (!inside) {
      return name;
    }
  }
  return {};
}

std::vector<fs::path> SearchFolders(std::string_view verbose) {
  std::vector<fs::path> folders;
  bool inside = false;
  for (const std::string_view line : Lines(verbose)) {
    if (line.starts_with("#include <...> search starts here")) {
      inside = true;
    } else if (line.starts_with("End of search list")) {
      inside = false;
    } else if (inside && line.starts_with(" /")) {
      folders.push_back(fs::path(Trim(line)).lexically_normal());
    }
  }
  return folders;
}

fs::path ToolkitFolder(std::string_view dry_run) {
  constexpr std::string_view kTop = "#$ TOP=";
  for (const std::string_view line : Lines(dry_run)) {
    if (line.starts_with(kTop)) {
      const fs::path folder = fs::path(Trim(line.substr(kTop.size()))).lexically_normal();
      // "/opt/cuda/bin/.." becomes "/opt/cuda/": the trailing slash would be an empty last element.
      return folder.has_filename() ? folder : folder.parent_path();
    }
  }
  return {};
}

std::string UnreadableInclude(std::string_view log) {
  constexpr std::string_view kBefore = "fatal error: ";
  constexpr std::string_view kAfter = ": Permission denied";
  for (const std::string_view line : Lines(log)) {
    const std::size_t at = line.find(kBefore);
    if (at != std::string_view::npos && line.ends_with(kAfter)) {
      const std::string_view rest = line.substr(at + kBefore.size());
      return std::string(rest.substr(0, rest.size() - kAfter.size()));
    }
  }
  return {};
}

}  // namespace kernelpro
