// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_failure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "process/process.h"
#include "profile/permission.h"

namespace kernelpro {
namespace {

constexpr std::size_t kMostNames = 10;

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// ncu's first error with this text, without its mark. Lines that announce another are passed over.
std::string ErrorWith(std::string_view log, std::string_view text) {
  constexpr std::string_view kMark = "==ERROR==";
  for (const std::string_view line : Lines(log)) {
    if (line.starts_with(kMark) && !Trim(line).ends_with(':') && Has(line, text)) {
      return Printable(Trim(line.substr(kMark.size())), 300);
    }
  }
  return {};
}

struct Symptom {
  std::string_view text;
  ErrorCode code;
  std::string_view advice;
};

constexpr std::array<Symptom, 10> kSymptoms = {{
    {"driver resource was unavailable", ErrorCode::kUnavailable,
     "another tool holds the counters: pause it (dcgmi profiling --pause, or the other profiler)"},
    {"LibraryNotLoaded", ErrorCode::kUnavailable,
     "ncu cannot load the driver's profiling library: this machine or its container does not offer "
     "it, or only to root"},
    {"driver is not compatible", ErrorCode::kUnavailable,
     "driver and ncu do not go together: take the ncu of the CUDA version that nvidia-smi shows"},
    {"Incompatible driver", ErrorCode::kUnavailable,
     "driver and ncu do not go together: take the ncu of the CUDA version that nvidia-smi shows"},
    {"unsupported driver", ErrorCode::kUnavailable,
     "driver and ncu do not go together: take the ncu of the CUDA version that nvidia-smi shows"},
    {"CUDA driver version is insufficient", ErrorCode::kUnavailable,
     "the driver is older than the program's CUDA: update it, or build for an older CUDA"},
    {"is not supported on device", ErrorCode::kUnavailable,
     "this ncu does not know the GPU: take a newer one"},
    {"lock file", ErrorCode::kUnavailable,
     "another user's ncu left its lock in the temporary folder: remove it, or set TMPDIR"},
    {"returned an error code", ErrorCode::kToolFailed,
     "the program failed under ncu: run it alone first; if it works there, its blocks may wait for "
     "each other, which replay breaks: use application replay"},
    {"LaunchFailed", ErrorCode::kToolFailed,
     "the kernel failed under ncu: run the program alone, and under compute-sanitizer"},
}};

Error NoKernel(std::string_view log, std::string_view kernel) {
  const std::string asked = kernel.empty() ? "" : fmt::format(" \"{}\"", Printable(kernel, 200));
  const std::vector<std::string> seen = KernelsSeen(log);
  if (seen.empty()) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("no kernel{} was launched while ncu looked: check that the program "
                            "launches one, --launch-skip, and where profiling starts",
                            asked));
  }
  const std::size_t shown = std::min(seen.size(), kMostNames);
  return Fail(
      ErrorCode::kNotFound,
      fmt::format("no launch of kernel{} was profiled; the program launched {}{}; check the "
                  "name and --launch-skip",
                  asked, fmt::join(seen.begin(), seen.begin() + static_cast<long>(shown), ", "),
                  seen.size() > shown ? fmt::format(" and {} more", seen.size() - shown) : ""));
}

}  // namespace

std::vector<std::string> KernelsSeen(std::string_view log) {
  std::vector<std::string> names;
  bool listed = false;
  for (const std::string_view line : Lines(log)) {
    const std::string_view text = Trim(line);
    if (Has(text, "Available Kernels")) {
      listed = true;
      continue;
    }
    const std::size_t dot = text.find(". ");
    long long number = 0;
    if (listed && dot != std::string_view::npos && ParseInteger(text.substr(0, dot), &number)) {
      names.push_back(Printable(Trim(text.substr(dot + 2)), 200));
    } else if (listed && !text.empty()) {
      listed = false;
    }
  }
  return names;
}

bool CountersRefused(std::string_view log) {
  return Has(log, "ERR_NVGPUCTRPERM") ||
         Has(log, "does not have permission to access NVIDIA GPU Performance Counters");
}

std::vector<std::string> RefusedMetrics(std::string_view log,
                                        const std::vector<std::string>& asked) {
  std::set<std::string_view> named;
  for (const std::string_view line : Lines(log)) {
    std::size_t names = std::string_view::npos;
    for (const std::string_view start : {"metrics: ", "find metric ", "metric: "}) {
      if (const std::size_t at = line.find(start);
          line.starts_with("==ERROR== Failed to") && at != std::string_view::npos) {
        names = at + start.size();
      }
    }
    if (names == std::string_view::npos) {
      continue;
    }
    for (const std::string_view name : Split(line.substr(names), ',')) {
      std::string_view word = Trim(name);
      word = word.ends_with('.') ? word.substr(0, word.size() - 1) : word;
      named.insert(word);
    }
  }
  std::vector<std::string> refused;
  std::ranges::copy_if(asked, std::back_inserter(refused),
                       [&](const std::string& name) { return named.contains(name); });
  return refused;
}

Error ExplainNcuFailure(std::string_view log, const ProcessResult& ended,
                        const ProcessLimits& limits, std::string_view kernel) {
  if (ended.end == ProcessResult::End::kCancelled) {
    return Fail(ErrorCode::kCancelled, "stopped while ncu ran");
  }
  if (CountersRefused(log)) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("this user may not read the GPU's performance counters "
                            "(ERR_NVGPUCTRPERM). Three ways: {}",
                            fmt::join(CounterFixes(), " ")));
  }
  if (ended.end == ProcessResult::End::kTimedOut) {
    return Fail(ErrorCode::kTimeout,
                fmt::format("ncu {}: give it longer, profile fewer launches or smaller inputs; if "
                            "blocks of the kernel wait for each other use application replay",
                            DescribeEnd(ended, limits)));
  }
  for (const Symptom& symptom : kSymptoms) {
    const std::string error = ErrorWith(log, symptom.text);
    if (!error.empty()) {
      return Fail(symptom.code, fmt::format("ncu: {}: {}", error, symptom.advice));
    }
  }
  if (const std::string error = ErrorWith(log, ""); !error.empty()) {
    return Fail(ErrorCode::kToolFailed, "ncu: " + error);
  }
  if (Has(log, "No kernels were profiled") || ended.Succeeded()) {
    return NoKernel(log, kernel);
  }
  std::string last;
  for (const std::string_view line : Lines(ended.err)) {
    last = Trim(line).empty() ? last : Printable(Trim(line), 300);
  }
  return Fail(ErrorCode::kToolFailed, fmt::format("ncu {}{}{}", DescribeEnd(ended, limits),
                                                  last.empty() ? "" : ": ", last));
}

}  // namespace kernelpro
