// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "kernelpro/profile.h"

namespace kernelpro {

struct NsysLimits {
  std::uint64_t events = 2'000'000;   ///< of the timeline
  std::uint64_t launches = 100'000;   ///< given as KernelProfiles
  std::uint64_t steps = 400'000'000;  ///< of SQLite's machine, over the whole file
};

/// Reads the SQLite export of nsys (`nsys export --type sqlite`, or the .sqlite that nsys stats
/// leaves beside a report), of any version: tables CUPTI_ACTIVITY_KIND_{KERNEL, RUNTIME, MEMCPY,
/// MEMSET, SYNCHRONIZATION, GRAPH_TRACE}, StringIds and TARGET_INFO_GPU. Tables and columns may be
/// missing; notes of the profile say which tables are.
///
/// One KernelProfile a launch by start, and `timeline`. Driver calls that a runtime call makes are
/// part of it and left out, unless they load code. A wait that CUPTI saw inside a call that is not
/// itself one (a blocking copy) is an event of its own. Launches beyond the limit are in the
/// timeline only and a note says so.
///
/// The file is never written to. It may be hostile: views and triggers are off, the schema may call
/// no function, and work is bounded. Errors: kParse for a file that is no such database or is
/// damaged, or has more events or work than the limits; kNotFound when it holds no kernel.
[[nodiscard]] Result<Profile> ReadNsysSqlite(const std::filesystem::path& path,
                                             const NsysLimits& limits = {});

}  // namespace kernelpro
