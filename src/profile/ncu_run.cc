// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "base/text.h"
#include "process/process.h"
#include "profile/ncu_csv.h"
#include "profile/ncu_failure.h"
#include "profile/ncu_source.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestOutput = 256ULL << 20U;
constexpr std::chrono::seconds kImportLimit{300};
constexpr std::string_view kRegex = "regex:";

bool IsIdentifier(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// An expression for a demangled name. ncu writes "f<(int)4, float>" for what a person calls
/// "f<4,float>".
std::string Expression(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == ' ') {
      continue;
    }
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) {
      out += '\\';
    }
    out += c;
    if (c == '<' || c == ',') {
      out += R"( *(\([a-z ]+\))?)";
    } else {
      out += " *";
    }
  }
  return out;
}

void AddKernelFilter(std::string_view kernel, std::vector<std::string>& command) {
  if (kernel.empty()) {
    return;
  }
  std::string filter(kernel);
  if (!kernel.starts_with(kRegex) && IsIdentifier(kernel)) {
    command.insert(command.end(),
                   {"--kernel-name-base", kernel.starts_with("_Z") ? "mangled" : "function"});
  } else if (!kernel.starts_with(kRegex)) {
    command.insert(command.end(), {"--kernel-name-base", "demangled"});
    // "void ns::f<4>(float *)": what follows tells it from a longer name.
    filter = fmt::format("regex:(^|[ :]){}($|[<(])", Expression(kernel));
  }
  command.insert(command.end(), {"--kernel-name", std::move(filter)});
}

std::vector<std::string> EnvironmentOf(const NcuRequest& request) {
  std::vector<std::string> environment;
  if (request.environment) {
    environment = *request.environment;
  } else {
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
      environment.emplace_back(*entry);
    }
  }
  // Numbers are printed with the separators of the locale.
  std::erase_if(environment, [](const std::string& entry) {
    return entry.starts_with("LC_ALL=") || entry.starts_with("LC_NUMERIC=");
  });
  environment.emplace_back("LC_ALL=C");
  return environment;
}

/// What ncu wrote to its log; nothing where it wrote none.
Result<std::string> ReadLog(const fs::path& path) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::regular) {
    return std::string();
  }
  return ReadFile(path, kLargestOutput);
}

/// Newer versions compress the report and add a letter to its ending.
fs::path ReportIn(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension().string().starts_with(".ncu-rep")) {
      return entry.path();
    }
  }
  return {};
}

Result<std::string> Import(const NcuRequest& request, const fs::path& report,
                           std::vector<std::string> page, const std::stop_token& stop) {
  ProcessSpec spec;
  spec.argv = {request.ncu.string(), "--import", report.string(), "--csv",
               "--print-units",      "base",     "--print-fp",    "--page"};
  spec.argv.insert(spec.argv.end(), page.begin(), page.end());
  spec.environment = EnvironmentOf(request);
  spec.limits.wall = std::min<std::chrono::milliseconds>(kImportLimit, request.limit);
  spec.limits.output_bytes = kLargestOutput;
  KP_ASSIGN_OR_RETURN(ProcessResult ran, RunProcess(spec, stop));
  if (ran.end == ProcessResult::End::kCancelled) {
    return Fail(ErrorCode::kCancelled, "stopped while ncu read its report");
  }
  if (!ran.Succeeded() || ran.output_cut) {
    const std::string& said = ran.err.empty() ? ran.out : ran.err;
    return Fail(
        ran.end == ProcessResult::End::kTimedOut ? ErrorCode::kTimeout : ErrorCode::kToolFailed,
        fmt::format("ncu --import --page {} {}: {}", page.front(),
                    ran.output_cut ? "printed too much" : DescribeEnd(ran, spec.limits),
                    Printable(Trim(said), 300)));
  }
  return std::move(ran.out);
}

Status ReadReport(const NcuRequest& request, const fs::path& folder, const std::stop_token& stop,
                  NcuRun& run) {
  const fs::path report = ReportIn(folder);
  if (report.empty()) {
    return Fail(ErrorCode::kToolFailed, "ncu wrote no report");
  }
  // Reading a report takes ncu about a second, whatever is in it: both pages at the same time.
  std::future<Result<std::string>> reading = std::async(std::launch::async, [&] {
    return Import(request, report, {"source", "--print-source", "sass"}, stop);
  });
  auto raw = Import(request, report, {"raw"}, stop);
  auto source = reading.get();
  KP_ASSIGN_OR_RETURN(run.raw_csv, std::move(raw));
  KP_ASSIGN_OR_RETURN(run.profile, ParseNcuCsv(run.raw_csv, "ncu"));
  if (!source && source.error().code == ErrorCode::kCancelled) {
    return source.error();
  }
  if (!source) {
    run.profile.notes.push_back("No instruction was sampled: " + source.error().message + ".");
    return Ok();
  }
  run.source_csv = std::move(source).value();
  const auto launches = ParseNcuSource(run.source_csv, "ncu source page");
  if (!launches) {
    run.profile.notes.push_back("No instruction was sampled: " + launches.error().message + ".");
    return Ok();
  }
  AddHotSpots(*launches, run.profile);
  return Ok();
}

/// One run. Where it fails because ncu does not know some of the metrics they are put in `refused`.
Result<NcuRun> RunOnce(const NcuRequest& request, const std::stop_token& stop,
                       std::vector<std::string>& refused) {
  KP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create("kp-ncu"));
  const fs::path log = folder.path() / "log";
  const auto start = std::chrono::steady_clock::now();
  NcuRun run;
  run.command = NcuCommand(request, log, folder.path() / "report.ncu-rep");
  ProcessSpec spec;
  spec.argv = run.command;
  spec.environment = EnvironmentOf(request);
  spec.folder = request.folder;
  spec.limits.wall = request.limit;
  spec.limits.output_bytes = 1U << 20U;
  KP_ASSIGN_OR_RETURN(const ProcessResult ended, RunProcess(spec, stop));
  KP_ASSIGN_OR_RETURN(std::string text, ReadLog(log));
  const auto failed = [&] {
    refused = RefusedMetrics(text, request.metrics);
    // What it could not write to a log stands on its standard streams.
    return ExplainNcuFailure(text.empty() ? ended.err + ended.out : text, ended, spec.limits,
                             request.kernel);
  };
  if (ended.end == ProcessResult::End::kCancelled || ended.end == ProcessResult::End::kTimedOut ||
      CountersRefused(text)) {
    return failed();
  }
  if (request.source_page) {
    if (ReportIn(folder.path()).empty()) {
      return failed();
    }
    KP_RETURN_IF_ERROR(ReadReport(request, folder.path(), stop, run));
  } else {
    auto profile = ParseNcuCsv(text, "ncu");
    if (!profile) {
      // Garbage stays garbage: only where there is no table do ncu's messages say why.
      return profile.error().code == ErrorCode::kParse ? std::move(profile).error() : failed();
    }
    run.profile = std::move(profile).value();
    run.raw_csv = std::move(text);
  }
  run.wall = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - start);
  if (!ended.Succeeded()) {
    run.profile.notes.push_back(fmt::format("The program {} after its kernels were profiled.",
                                            DescribeEnd(ended, spec.limits)));
  }
  return run;
}

}  // namespace

std::vector<std::string> NcuCommand(const NcuRequest& request, const fs::path& log,
                                    const fs::path& report) {
  std::vector<std::string> command = {
      request.ncu.string(),
      "--clock-control",
      "none",
      "--cache-control",
      request.flush_caches ? "all" : "none",
      "--target-processes",
      "all",
      "--replay-mode",
      request.replay == NcuRequest::Replay::kApplication ? "application" : "kernel"};
  AddKernelFilter(request.kernel, command);
  if (request.launch_skip != 0) {
    command.insert(command.end(), {"--launch-skip", std::to_string(request.launch_skip)});
  }
  if (request.launch_count != 0) {
    command.insert(command.end(), {"--launch-count", std::to_string(request.launch_count)});
  }
  if (!request.profile_from_start) {
    command.insert(command.end(), {"--profile-from-start", "off"});
  }
  if (request.sampling_interval) {
    command.insert(command.end(),
                   {"--warp-sampling-interval", std::to_string(*request.sampling_interval)});
  }
  command.insert(command.end(), {"--metrics", fmt::format("{}", fmt::join(request.metrics, ",")),
                                 "--log-file", log.string()});
  if (request.source_page) {
    command.insert(command.end(), {"--force-overwrite", "--export", report.string()});
  } else {
    command.insert(command.end(),
                   {"--csv", "--page", "raw", "--print-units", "base", "--print-fp"});
  }
  command.insert(command.end(), request.argv.begin(), request.argv.end());
  return command;
}

Result<NcuRun> RunNcu(const NcuRequest& request, const std::stop_token& stop) {
  if (request.argv.empty() || request.argv[0].empty() || request.argv[0].starts_with('-') ||
      request.metrics.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "a program (no option) and metrics are needed to run ncu");
  }
  std::vector<std::string> refused;
  Result<NcuRun> run = RunOnce(request, stop, refused);
  if (!run && !refused.empty() && refused.size() < request.metrics.size()) {
    // A relative of the chip that the names were made for; some versions then profile nothing.
    NcuRequest known = request;
    std::erase_if(known.metrics, [&](const std::string& name) {
      return std::ranges::find(refused, name) != refused.end();
    });
    std::vector<std::string> again;
    run = RunOnce(known, stop, again);
    if (run) {
      for (KernelProfile& kernel : run->profile.kernels) {
        kernel.missing.insert(kernel.missing.end(), refused.begin(), refused.end());
      }
    }
  }
  return run;
}

}  // namespace kernelpro
