// SPDX-License-Identifier: Apache-2.0
#include "profile/nvidia_tool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "base/text.h"
#include "process/process.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

fs::path FromEnvironment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): never set by us
  return value == nullptr ? fs::path() : fs::path(value);
}

bool Runs(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

/// The user may say where ncu is.
constexpr const char* kNcuVariable = "KERNELPRO_NCU";

/// Folders of versions beneath `folder`, newest first ("2025.3.1" before "2024.1").
std::vector<fs::path> Versions(const fs::path& folder) {
  std::vector<fs::path> versions;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) {
      versions.push_back(entry.path());
    }
  }
  std::ranges::sort(versions, std::ranges::greater());
  return versions;
}

std::vector<fs::path> PackageFolders(std::string_view name) {
  std::vector<fs::path> folders;
  if (name == "ncu") {
    folders = Versions("/opt/nvidia/nsight-compute");
  } else if (name == "nsys") {
    for (const fs::path& version : Versions("/opt/nvidia/nsight-systems")) {
      folders.push_back(version / "bin");
    }
  }
  return folders;
}

}  // namespace

NvidiaTool FindNvidiaTool(std::string_view name, const fs::path& toolkit) {
  NvidiaTool tool;
  if (const fs::path given = FromEnvironment(kNcuVariable); name == "ncu" && !given.empty()) {
    // What the user names is used or refused, never passed over.
    tool.looked.push_back(fmt::format("${} = {}", kNcuVariable, given.string()));
    tool.path = Runs(given) ? given : fs::path();
    return tool;
  }
  std::vector<fs::path> folders;
  if (!toolkit.empty()) {
    folders.push_back(toolkit / "bin");
  }
  const auto look = [&](const fs::path& folder) {
    if (std::ranges::find(tool.looked, folder.string()) != tool.looked.end()) {
      return false;
    }
    tool.looked.push_back(folder.string());
    if (Runs(folder / name)) {
      tool.path = folder / name;
    }
    return tool.found();
  };
  if (std::ranges::any_of(folders, look)) {
    return tool;
  }
  tool.looked.emplace_back("$PATH");
  tool.path = FindOnPath(name);
  if (tool.found()) {
    return tool;
  }
  folders.clear();
  if (const fs::path home = FromEnvironment("CUDA_HOME"); !home.empty()) {
    folders.push_back(home / "bin");
  }
  folders.emplace_back("/usr/local/cuda/bin");
  const std::vector<fs::path> packages = PackageFolders(name);
  folders.insert(folders.end(), packages.begin(), packages.end());
  (void)std::ranges::any_of(folders, look);
  return tool;
}

NvidiaTool FindNvidiaLibrary(std::string_view name, const fs::path& toolkit) {
  NvidiaTool tool;
  std::vector<fs::path> folders;
  for (const fs::path& root :
       {toolkit, FromEnvironment("CUDA_HOME"), fs::path("/usr/local/cuda")}) {
    if (!root.empty()) {
      folders.insert(folders.end(), {root / "lib64", root / "lib", root / "extras/CUPTI/lib64"});
    }
  }
  folders.insert(folders.end(), {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"});
  for (const fs::path& folder : folders) {
    std::error_code error;
    if (std::ranges::find(tool.looked, folder.string()) == tool.looked.end()) {
      tool.looked.push_back(folder.string());
    }
    if (fs::exists(folder / name, error)) {
      tool.path = folder / name;
      break;
    }
  }
  return tool;
}

std::string NotFoundMessage(std::string_view name, const NvidiaTool& tool) {
  return fmt::format("{} was not found (looked in {}){}", name, fmt::join(tool.looked, ", "),
                     name == "ncu" ? fmt::format("; set {} to its path", kNcuVariable) : "");
}

Result<std::string> NvidiaToolVersion(const fs::path& path) {
  ProcessSpec spec;
  spec.argv = {path.string(), "--version"};
  spec.limits.wall = std::chrono::seconds(20);
  KP_ASSIGN_OR_RETURN(const ProcessResult ran, RunProcess(spec));
  if (!ran.Succeeded()) {
    return Fail(ErrorCode::kToolFailed,
                fmt::format("{} --version {}", path.string(), DescribeEnd(ran, spec.limits)));
  }
  for (const std::string_view line : Lines(ran.out)) {
    for (const std::string_view word : Split(line, ' ')) {
      std::string_view number = word;
      if (number.starts_with('V')) {
        number.remove_prefix(1);
      }
      if (number.size() > 3 && number[0] >= '0' && number[0] <= '9' &&
          number.find('.') != std::string_view::npos &&
          number.find('-') == std::string_view::npos) {
        return Printable(number, 40);
      }
    }
  }
  return Fail(ErrorCode::kToolFailed, fmt::format("{} --version names no version", path.string()));
}

}  // namespace kernelpro
