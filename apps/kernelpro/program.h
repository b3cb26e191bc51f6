// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

namespace kernelpro::app {

/// A CUDA program with its own main: its source, or (on a real GPU) the program itself.
struct ProgramOptions {
  std::filesystem::path file;
  std::string kernel;                  ///< as written or mangled; empty: all kernels
  std::vector<std::string> arguments;  ///< of the program
  std::vector<std::string> flags;      ///< further compiler flags
  std::string device = "auto";
  bool counters = true;  ///< false: leave the hardware counters alone
  bool samples = true;   ///< false: do not sample which instruction warps wait at
  std::chrono::seconds limit{600};
};

struct ProgramProfile {
  Profile profile;
  Hardware hardware;
  std::string device;               ///< "cuda:0", "emulator:h200"
  std::vector<std::string> passes;  ///< how long each run of the program took, for people
};

/// Compiles it if it is source, runs it and collects what can be had, tier by tier: hardware
/// counters and samples, machine code, the compiler's log, the activity trace, launch figures; the
/// emulator where there is no GPU. What was refused is in profile.notes.
[[nodiscard]] Result<ProgramProfile> ProfileProgram(const ProgramOptions& options,
                                                    const std::stop_token& stop);

}  // namespace kernelpro::app
