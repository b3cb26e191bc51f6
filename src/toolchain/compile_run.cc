// SPDX-License-Identifier: Apache-2.0
#include "toolchain/compile_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "process/process.h"
#include "toolchain/compile_sandbox.h"
#include "toolchain/diagnostics.h"

namespace kernelpro {
namespace {

using Kind = CompileFailure::Kind;

constexpr std::size_t kMaxLog = 64U << 10U;
constexpr std::uint64_t kMaxFile = 1ULL << 30U;

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): never set by us
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> Environment(const CompileCommand& command) {
  std::string path = FromEnvironment("PATH");
  if (!command.tools.empty()) {
    path = command.tools.string() + ":" + path;
  }
  std::vector<std::string> environment = {"PATH=" + path, "LC_ALL=C",
                                          "TMPDIR=" + command.folder.string(),
                                          // Where g++ is ccache: its folder is out of reach.
                                          "CCACHE_DISABLE=1"};
  for (const char* kept : {"HOME", "LD_LIBRARY_PATH"}) {
    if (std::string value = FromEnvironment(kept); !value.empty()) {
      environment.push_back(std::string(kept) + "=" + value);
    }
  }
  return environment;
}

void EraseAll(std::string* text, const std::string& piece) {
  for (std::size_t at = text->find(piece); at != std::string::npos; at = text->find(piece, at)) {
    text->erase(at, piece.size());
  }
}

template <std::size_t kCount>
bool AnyLineHas(std::string_view log, const std::array<std::string_view, kCount>& pieces) {
  return std::ranges::any_of(
      pieces, [&](std::string_view piece) { return log.find(piece) != std::string_view::npos; });
}

/// A process of the compiler reached the limit of CPU time (nvcc and g++ word it differently).
bool RanOutOfTime(const ProcessResult& result, std::string_view log) {
  constexpr std::array<std::string_view, 3> kTime = {
      "CPU time limit exceeded", "died due to signal 24", "terminated with signal 24"};
  return (result.end == ProcessResult::End::kSignaled && result.signal == SIGXCPU) ||
         AnyLineHas(log, kTime);
}

Kind KindOf(std::string_view log) {
  constexpr std::array<std::string_view, 6> kMemory = {
      "out of memory allocating",  "virtual memory exhausted",         "std::bad_alloc",
      "LLVM ERROR: out of memory", "Killed signal terminated program", "memory exhausted"};
  constexpr std::array<std::string_view, 4> kCrash = {
      "died due to signal", "internal compiler error", "Internal Compiler Error",
      "terminated with signal"};
  if (AnyLineHas(log, kMemory)) {
    return Kind::kMemory;
  }
  return AnyLineHas(log, kCrash) ? Kind::kCrash : Kind::kErrors;
}

/// Every failure says at least one thing.
void ExplainIfSilent(CompileFailure* failure, std::string_view end) {
  if (HasError(failure->diagnostics)) {
    return;
  }
  const std::vector<std::string_view> lines = Lines(failure->log);
  const std::string last = lines.empty() ? std::string() : ": " + std::string(lines.back());
  failure->diagnostics.insert(failure->diagnostics.begin(),
                              {.severity = Diagnostic::Severity::kError,
                               .file = "",
                               .line = 0,
                               .text = fmt::format("the compiler {}{}", end, last)});
}

CompileFailure Failed(const ProcessResult& result, const CompileRun& run,
                      const ProcessLimits& limits) {
  CompileFailure failure;
  failure.log = Printable(run.log, kMaxLog);
  failure.diagnostics = run.diagnostics;
  PutErrorsFirst(&failure.diagnostics);
  const std::string end = DescribeEnd(result, limits);
  const bool too_long = result.end == ProcessResult::End::kTimedOut;
  if (too_long || RanOutOfTime(result, run.log)) {
    failure.kind = Kind::kTimeout;
    failure.diagnostics.insert(
        failure.diagnostics.begin(),
        {.severity = Diagnostic::Severity::kError,
         .file = "",
         .line = 0,
         .text = too_long ? "the compiler " + end
                          : fmt::format("the compiler used more than its limit of {} s of CPU time",
                                        limits.cpu_seconds)});
    return failure;
  }
  failure.kind = KindOf(run.log);
  if (failure.kind == Kind::kErrors && result.end == ProcessResult::End::kSignaled) {
    failure.kind = Kind::kCrash;
  }
  ExplainIfSilent(&failure, end);
  return failure;
}

}  // namespace

Result<CompileRun> RunCompiler(const CompileCommand& command, const ToolchainLimits& limits,
                               const std::stop_token& stop) {
  ProcessSpec spec;
  spec.argv = command.argv;
  spec.environment = Environment(command);
  spec.folder = command.folder;
  spec.limits.wall = limits.wall;
  spec.limits.cpu_seconds = static_cast<std::uint64_t>(limits.cpu.count());
  spec.limits.address_space_bytes = limits.memory_bytes;
  spec.limits.file_bytes = kMaxFile;
  spec.confinement = CompilerConfinement(command.folder, command.readable);
  KP_ASSIGN_OR_RETURN(ProcessResult result, RunProcess(spec, stop));
  if (result.end == ProcessResult::End::kCancelled) {
    return Fail(ErrorCode::kCancelled, "the compilation was stopped");
  }
  CompileRun run;
  run.log = std::move(result.out) + std::move(result.err);
  EraseAll(&run.log, command.shown.string() + "/");
  EraseAll(&run.log, command.folder.string() + "/");
  run.elapsed = result.elapsed;
  run.sandbox = std::move(result.confinement);
  if (!result.Succeeded() && run.log.find("No space left on device") != std::string::npos) {
    return Fail(ErrorCode::kIo, fmt::format("the disk of {} is full", command.folder.string()));
  }
  run.diagnostics = ParseDiagnostics(run.log);
  if (!result.Succeeded()) {
    run.failure = Failed(result, run, spec.limits);
  }
  return run;
}

CompileFailure OurFailure(Kind kind, std::string text) {
  CompileFailure failure;
  failure.kind = kind;
  failure.log = text;
  failure.diagnostics.push_back(
      {.severity = Diagnostic::Severity::kError, .file = "", .line = 0, .text = std::move(text)});
  return failure;
}

}  // namespace kernelpro
