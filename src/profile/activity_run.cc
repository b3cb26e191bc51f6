// SPDX-License-Identifier: Apache-2.0
#include "profile/activity_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "profile/activity_trace.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;
using End = ProcessResult::End;

constexpr std::size_t kToldOutput = 600;
/// Processes of one run whose traces are read.
constexpr std::size_t kMostFiles = 64;

std::vector<std::string> Environment(const ActivityRunOptions& options, const fs::path& library,
                                     const fs::path& file) {
  std::vector<std::string> environment;
  if (options.environment) {
    environment = *options.environment;
  } else {
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
      environment.emplace_back(*entry);
    }
  }
  std::vector<std::string> ours = {
      "CUDA_INJECTION64_PATH=" + library.string(), "KERNELPRO_ACTIVITY_FILE=" + file.string(),
      fmt::format("KERNELPRO_ACTIVITY_LIMIT={}", options.record_limit),
      fmt::format("KERNELPRO_ACTIVITY_GRAPHS={}", options.whole_graphs ? "whole" : "nodes")};
  if (!options.cupti.empty()) {
    ours.push_back("KERNELPRO_CUPTI=" + options.cupti.string());
  }
  for (std::string& entry : ours) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    std::erase_if(environment, [&](const std::string& old) { return old.starts_with(name); });
    environment.push_back(std::move(entry));
  }
  return environment;
}

/// The end of what it said, on one line of its own.
std::string LastWords(const ProcessResult& result) {
  const std::string_view said = Trim(result.err.empty() ? result.out : result.err);
  if (said.empty()) {
    return "it printed nothing";
  }
  const std::size_t from = said.size() > kToldOutput ? said.size() - kToldOutput : 0;
  return fmt::format("it printed: {}", Printable(said.substr(from), kToldOutput));
}

double KernelTime(const Profile& profile) {
  double time = 0;
  for (const KernelProfile& kernel : profile.kernels) {
    time += kernel.time_us;
  }
  for (const TimelineEvent& event : profile.timeline) {
    if (event.kind == TimelineEvent::Kind::kGraph) {
      time += static_cast<double>(event.end_ns - event.start_ns) * 1e-3;
    }
  }
  return time;
}

std::vector<fs::path> TraceFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The process with most kernel time; the first error when no process has a readable trace.
Result<Profile> BusiestProcess(const std::vector<fs::path>& files) {
  std::optional<Profile> best;
  std::optional<Error> error;
  std::size_t others = 0;
  for (std::size_t i = 0; i < std::min(files.size(), kMostFiles); ++i) {
    Result<Profile> profile = ReadActivityTrace(files[i]);
    if (!profile) {
      error = error ? std::move(error) : std::move(profile).error();
      continue;
    }
    others += KernelTime(*profile) > 0 ? 1 : 0;
    if (!best || KernelTime(*profile) > KernelTime(*best)) {
      best = std::move(profile).value();
    }
  }
  if (!best) {
    return error ? *std::move(error)
                 : Fail(ErrorCode::kNotFound,
                        "no trace: the program ended before it started CUDA, or its driver does "
                        "not load CUDA_INJECTION64_PATH");
  }
  if (others > 1 || files.size() > kMostFiles) {
    best->notes.push_back(
        fmt::format("{} processes of the run used the GPU; this is the one with most kernel time.",
                    files.size() > kMostFiles ? files.size() : others));
  }
  return *std::move(best);
}

Status CheckEnd(const ProcessResult& result, const ProcessLimits& limits,
                const std::string& program) {
  if (result.end == End::kCancelled) {
    return Fail(ErrorCode::kCancelled, "tracing was interrupted");
  }
  if (result.end == End::kSignaled || (result.end == End::kExited && result.exit_code != 0)) {
    return Fail(ErrorCode::kToolFailed,
                fmt::format("{} {} under the activity trace; {}", Printable(program, 200),
                            DescribeEnd(result, limits), LastWords(result)));
  }
  return Ok();
}

}  // namespace

fs::path ActivityLibrary() {
  const fs::path path =
      ExecutableFolder().parent_path() / "lib" / "kernelpro" / "libkernelpro-activity.so";
  std::error_code failed;
  return fs::is_regular_file(path, failed) ? path : fs::path();
}

Result<ActivityRun> RunWithActivity(const ActivityRunOptions& options,
                                    const std::stop_token& stop) {
  if (options.argv.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "no program to trace was named");
  }
  const fs::path library = options.library.empty() ? ActivityLibrary() : options.library;
  std::error_code failed;
  if (library.empty() || !fs::is_regular_file(library, failed)) {
    return Fail(ErrorCode::kUnavailable,
                "libkernelpro-activity.so is not there: kernelpro was built without the headers of "
                "CUDA 13's CUPTI; install them and build again, or do without the timeline");
  }
  KP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create("kernelpro-activity"));
  ProcessSpec spec;
  spec.argv = options.argv;
  spec.folder = options.folder;
  spec.limits.wall = options.wall;
  spec.environment =
      Environment(options, fs::absolute(library, failed), folder.path() / "trace.jsonl");
  KP_ASSIGN_OR_RETURN(ProcessResult result, RunProcess(spec, stop));
  KP_RETURN_IF_ERROR(CheckEnd(result, spec.limits, options.argv.front()));
  const bool timed_out = result.end == End::kTimedOut;
  Result<Profile> profile = BusiestProcess(TraceFiles(folder.path()));
  const bool empty = profile.ok() && KernelTime(*profile) <= 0;
  if (timed_out && (empty || !profile.ok())) {
    return Fail(ErrorCode::kTimeout,
                fmt::format("{} {} before it ran a kernel", Printable(options.argv.front(), 200),
                            DescribeEnd(result, spec.limits)));
  }
  if (!profile) {
    return std::move(profile).error();
  }
  if (empty) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} ran no kernel on a GPU; {}", Printable(options.argv.front(), 200),
                            LastWords(result)));
  }
  if (timed_out) {
    profile->notes.push_back(
        fmt::format("The program {}; the timeline shows what it did until then.",
                    DescribeEnd(result, spec.limits)));
  }
  profile->source = "activity";
  return ActivityRun{std::move(profile).value(), std::move(result)};
}

}  // namespace kernelpro
