// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"

namespace kernelpro {

/// A whole CUDA program (with its own main) on the emulated GPU.
struct ProgramRequest {
  std::vector<std::string>
      argv;                  ///< argv[0]: a program that links libcudart.so.13 (-cudart shared)
  std::string gpu = "h200";  ///< the emulator's data file
  std::map<std::string, model::KernelResources> kernels;  ///< ptxas figures by mangled name
  CallMode mode = CallMode::kTime;  ///< kTime: large grids are sampled, outputs are incomplete
  std::chrono::milliseconds wall_limit{120'000};
  std::uint64_t instruction_budget = 20'000'000'000ULL;  ///< warp instructions of all launches
};

struct ProgramRun {
  std::vector<EmulatedLaunch> launches;
  std::uint64_t launches_left_out = 0;  ///< beyond 2,000; their figures are not kept
  int exit_code = 0;
  std::string printed;              ///< stdout and stderr of the program, printable, at most 64 KiB
  std::vector<simt::Fault> faults;  ///< of all launches and copies
  std::vector<std::string> messages;  ///< what the emulated GPU refused, and why
};

/// Runs it with our CUDA runtime in place of NVIDIA's. The program is the user's own: it is not
/// confined. kUnavailable: a file of ours is missing, or the program does not start;
/// kTimeout, kCancelled; kToolFailed: the emulator cannot run it (the reason), or it launched
/// nothing (with what it printed). A non-zero exit after launches is not an error: exit_code.
[[nodiscard]] Result<ProgramRun> RunProgramOnEmulator(const ProgramRequest& request,
                                                      const std::stop_token& stop);

}  // namespace kernelpro
