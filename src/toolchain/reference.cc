// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "process/process.h"
#include "toolchain/build_cache.h"
#include "toolchain/compile_run.h"
#include "toolchain/compile_sandbox.h"
#include "toolchain/toolchain.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "reference-build-1";
constexpr std::string_view kHeader = "kernelpro_reference.h";

/// No contraction: a reference gives the same doubles whatever the host can fuse.
std::vector<std::string> CommandLine(const fs::path& compiler, const std::string& library) {
  return {compiler.string(), "-std=c++20", "-O2",   "-ffp-contract=off",
          "-fPIC",           "-shared",    "-Wall", "-fno-diagnostics-show-caret",
          "-Wl,-z,defs",     "-o",         library, "source.cc"};
}

Result<BuildOutcome> CompileNew(const ReferenceRequest& request, const std::string& key,
                                const fs::path& compiler, const BuildCache& cache,
                                const ToolchainLimits& limits, const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(const WorkFolder folder, cache.NewWork());
  const fs::path& work = folder.path();
  const fs::path entry = work / "entry";
  KP_RETURN_IF_ERROR(WriteFileAtomically(
      work / "source.cc", fmt::format("#line 1 \"{}\"\n{}", request.file_name, request.source)));
  KP_RETURN_IF_ERROR(WriteFileAtomically(work / kHeader, request.header));
  std::error_code error;
  fs::create_directories(entry, error);
  KP_ASSIGN_OR_RETURN(CompileRun run,
                      RunCompiler({.argv = CommandLine(compiler, "entry/reference.so"),
                                   .folder = work,
                                   .shown = work,
                                   .tools = {},
                                   .readable = CompilerFiles(compiler)},
                                  limits, stop));
  BuildOutcome outcome;
  outcome.sandbox = std::move(run.sandbox);
  if (run.failure) {
    outcome.failure = std::move(run.failure);
    return outcome;
  }
  Build build;
  build.key = key;
  build.library = "reference.so";
  build.diagnostics = std::move(run.diagnostics);
  build.elapsed = run.elapsed;
  KP_ASSIGN_OR_RETURN(outcome.build, cache.Publish(entry, std::move(build)));
  return outcome;
}

}  // namespace

Result<BuildOutcome> CompileReference(const ReferenceRequest& request, const fs::path& cache_folder,
                                      const ToolchainLimits& limits, const std::stop_token& stop) {
  if (request.file_name.find_first_of("\"\\\n") != std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument, "the file name of a reference has odd characters");
  }
  const fs::path compiler = FindOnPath("g++");
  if (compiler.empty()) {
    return Fail(ErrorCode::kUnavailable,
                "g++ is not on $PATH; it compiles the task's reference.cc");
  }
  ProcessSpec probe;
  probe.argv = {compiler.string(), "-dumpfullversion"};
  KP_ASSIGN_OR_RETURN(const ProcessResult version, RunProcess(probe, stop));
  KP_ASSIGN_OR_RETURN(const BuildCache cache, BuildCache::Open(cache_folder, limits.cache_bytes));
  const std::string path = compiler.string();
  const std::vector<std::string_view> parts = {kFormat,        path,           version.out,
                                               request.source, request.header, request.file_name};
  const std::string key = ContentHash(parts);
  BuildOutcome outcome;
  outcome.build = cache.Find(key);
  if (outcome.build) {
    return outcome;
  }
  KP_ASSIGN_OR_RETURN(const KeyLock lock, cache.Lock(key, stop));
  outcome.build = cache.Find(key);
  if (outcome.build) {
    return outcome;
  }
  return CompileNew(request, key, compiler, cache, limits, stop);
}

}  // namespace kernelpro
