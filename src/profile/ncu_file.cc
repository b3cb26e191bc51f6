// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "base/text.h"
#include "kernelpro/profile.h"
#include "process/process.h"
#include "profile/file_kind.h"
#include "profile/ncu_csv.h"
#include "profile/ncu_log.h"
#include "profile/ncu_text.h"
#include "profile/text_file.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestOutput = 1ULL << 30U;

bool IsExecutable(const fs::path& path) {
  return !path.empty() && access(path.c_str(), X_OK) == 0;
}

/// The numbers of ".../2025.3.1/ncu".
std::vector<long long> VersionOf(const fs::path& ncu) {
  std::vector<long long> version;
  for (const std::string_view part : Split(ncu.parent_path().filename().native(), '.')) {
    long long number = 0;
    version.push_back(ParseInteger(part, &number) ? number : 0);
  }
  return version;
}

/// /opt/nvidia/nsight-compute/2025.3.1/ncu of the largest version.
fs::path NewestInOpt() {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it("/opt/nvidia/nsight-compute", error), end; !error && it != end;
       it.increment(error)) {
    if (IsExecutable(it->path() / "ncu")) {
      found.push_back(it->path() / "ncu");
    }
  }
  return found.empty() ? fs::path() : *std::ranges::max_element(found, {}, VersionOf);
}

std::vector<std::string> EnvironmentInC() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("LC_ALL=")) {
      environment.emplace_back(*variable);
    }
  }
  environment.emplace_back("LC_ALL=C");
  return environment;
}

Result<Profile> Import(const fs::path& report, const fs::path& ncu, const std::stop_token& stop) {
  if (!IsExecutable(ncu)) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}: a report file, which only Nsight Compute itself can read, and ncu "
                            "is not on this machine (PATH, $CUDA_HOME/bin, /usr/local/cuda/bin, "
                            "/opt/nvidia/nsight-compute); where it is, run  LC_ALL=C ncu --import "
                            "{} --csv --page raw --print-units base > profile.csv  and give "
                            "profile.csv",
                            report.string(), report.filename().string()));
  }
  std::error_code error;
  const fs::path absolute = fs::absolute(report, error);  // a name may begin with a dash
  ProcessSpec spec;
  spec.argv = {ncu.string(),    "--import", (error ? report : absolute).string(),
               "--csv",         "--page",   "raw",
               "--print-units", "base"};
  spec.environment = EnvironmentInC();
  spec.limits.wall = std::chrono::minutes(10);
  spec.limits.output_bytes = kLargestOutput;
  KP_ASSIGN_OR_RETURN(const ProcessResult result, RunProcess(spec, stop));
  if (result.end == ProcessResult::End::kCancelled) {
    return Fail(ErrorCode::kCancelled, fmt::format("{}: cancelled", report.string()));
  }
  if (result.output_cut) {
    return Fail(ErrorCode::kToolFailed,
                fmt::format("{}: ncu --import printed more than 1 GiB; import fewer launches with "
                            "its --launch-skip and --launch-count",
                            report.string()));
  }
  if (!result.Succeeded()) {
    const std::string& said = result.err.empty() ? result.out : result.err;
    return Fail(ErrorCode::kToolFailed,
                fmt::format("{}: {} --import {}: {}; a report of a newer version needs a newer ncu",
                            report.string(), ncu.string(), DescribeEnd(result, spec.limits),
                            Printable(Trim(said), 500)));
  }
  return ParseNcuCsv(result.out, report.string());
}

}  // namespace

fs::path FindNcu() {
  const char* home = std::getenv("CUDA_HOME");  // NOLINT(concurrency-mt-unsafe): never set by us
  const fs::path in_home = home == nullptr ? fs::path() : fs::path(home) / "bin/ncu";
  for (const fs::path& path : {FindOnPath("ncu"), in_home, fs::path("/usr/local/cuda/bin/ncu")}) {
    if (IsExecutable(path)) {
      return path;
    }
  }
  return NewestInOpt();
}

Result<Profile> ReadNcu(const fs::path& path, const std::stop_token& stop, const fs::path& ncu) {
  KP_ASSIGN_OR_RETURN(const std::string head, ReadFileHead(path, 4096));
  if (SniffFile(head, path.string()) == FileKind::kNcuReport) {
    return Import(path, ncu, stop);
  }
  KP_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  const FileKind kind = SniffFile(text, path.string());
  switch (kind) {
    case FileKind::kNcuCsv:
      return ParseNcuCsv(text, path.string());
    case FileKind::kNcuText:
      return ParseNcuText(text, path.string());
    case FileKind::kNcuLog:
      return WhyNoProfile(text, path.string(),
                          "a log of Nsight Compute without a profile; was no kernel profiled?");
    default:
      return Fail(kind == FileKind::kEmpty ? ErrorCode::kNotFound : ErrorCode::kParse,
                  fmt::format("{}: this is {}, not a profile of Nsight Compute (a report file, or "
                              "what ncu printed with or without --csv)",
                              path.string(), Describe(kind)));
  }
}

}  // namespace kernelpro
