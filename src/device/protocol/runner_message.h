// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// What passes between referee and runner. Everything that comes from the runner may be forged by
/// the candidate: it can end or fail a call, never make one right. Standard library only.
namespace kernelpro::protocol {

/// Frame kinds. A call's frames carry its number as `sequence`.
enum class RunnerMessage : std::uint16_t {
  kRun = 1,      ///< referee -> runner: TaskArgs image for kernelpro_run
  kPrepare,      ///< referee -> runner: the same for kernelpro_prepare
  kLoaded,       ///< runner -> referee
  kLoadFailed,   ///< the dynamic linker's message
  kReturned,     ///< i32: what the candidate's function returned
  kNoEntry,      ///< the candidate has no such function
  kOutOfMemory,  ///< std::bad_alloc left the candidate's function
  kThrew,        ///< another exception did: its text
  kForbidden,    ///< i32: number of the denied system call
  kConfined,     ///< runner -> referee, before the candidate is loaded: its sandbox_report.h
  // A real GPU only (protocol/cuda_runner.h):
  kReady,   ///< runner -> referee: the driver is started and a context made
  kOpen,    ///< referee -> runner: OpenArena -> kOpened, ArenaOpened
  kOpened,  ///< runner -> referee
  kLoad,    ///< referee -> runner, with the candidate's library as descriptor -> kLoaded
  kGated,   ///< referee -> runner: TaskArgs image; the stream waits for the gate; bell "warm" rings
            ///< when the candidate has returned, then kReturned
  kBatch,   ///< referee -> runner: BatchOrder -> doorbell, then kReturned
};

inline constexpr std::uint32_t kRunnerMessageLimit = 1U << 20U;

/// Descriptors that the runner is started with.
inline constexpr int kRefereeFd = 3;
inline constexpr int kGpuFd = 4;
inline constexpr int kLibraryFd = 5;
inline constexpr int kOutputFd = 6;

/// Exit status of the runner after it has reported a denied system call.
inline constexpr int kForbiddenExit = 86;
/// Exit status of the runner when its own start failed (told on standard error).
inline constexpr int kStartFailedExit = 87;

}  // namespace kernelpro::protocol
