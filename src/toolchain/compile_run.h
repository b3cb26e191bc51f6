// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "process/confine.h"
#include "toolchain/toolchain.h"

namespace kernelpro {

/// What a compiler said and how it ended.
struct CompileRun {
  std::optional<CompileFailure> failure;
  std::vector<Diagnostic> diagnostics;  ///< of a success: its warnings and notes
  std::string log;                      ///< standard output and error
  std::chrono::milliseconds elapsed{0};
  std::vector<ConfinementReport> sandbox;
};

struct CompileCommand {
  std::vector<std::string> argv;
  std::filesystem::path folder;  ///< working folder; also $TMPDIR of the compiler
  std::filesystem::path shown;   ///< folder that is cut off in front of file names in messages
  std::filesystem::path tools;   ///< put in front of $PATH; may be empty
  /// What it may read besides the system's programs, headers and libraries, and `folder`.
  std::vector<std::filesystem::path> readable;
};

/// Runs a compiler in a sandbox (compile_sandbox.h), within limits and a small fixed environment,
/// so that the user's NVCC_PREPEND_FLAGS, CPATH and the like change nothing that the cache's key
/// does not know. An Error when it could not be run, the disk is full, or `stop` was requested.
[[nodiscard]] Result<CompileRun> RunCompiler(const CompileCommand& command,
                                             const ToolchainLimits& limits,
                                             const std::stop_token& stop);

/// A failure that one sentence of ours explains.
[[nodiscard]] CompileFailure OurFailure(CompileFailure::Kind kind, std::string text);

}  // namespace kernelpro
