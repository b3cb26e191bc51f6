// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "device/device.h"
#include "device/protocol/control.h"
#include "device/protocol/frame.h"
#include "process/process.h"

namespace kernelpro::referee {

inline constexpr std::size_t kPrintedLimit = 64U << 10U;

/// What came, or did not come, from the runner.
struct RunnerEnd {
  enum class Kind : std::uint8_t {
    kAnswered,
    kGone,       ///< its socket closed: see process
    kTimedOut,   ///< wall limit
    kCancelled,  ///< on request
    kGpuLost,    ///< the emulated GPU died meanwhile
    kForged,     ///< it sent what our runner never sends
  };
  Kind kind = Kind::kAnswered;
  protocol::Frame answer;                ///< when kAnswered
  std::optional<int> forbidden;          ///< number of a denied system call that was reported
  std::optional<ProcessResult> process;  ///< when kGone
  std::uint64_t host_memory_bytes = 0;   ///< limit of the runner, for messages
  bool prepare = false;
};

/// The verdict on one call. The GPU's report decides over everything that matters; the runner's
/// word counts only where it speaks against the candidate, or agrees. Pure. Without a report the
/// GPU is lost.
[[nodiscard]] CallOutcome Judge(const RunnerEnd& end, std::optional<protocol::CallReport> report,
                                std::string printed);

/// "fork"; "system call 321" for those without a name here.
[[nodiscard]] std::string SystemCallName(int number);

}  // namespace kernelpro::referee
