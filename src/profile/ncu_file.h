// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <stop_token>

#include "base/result.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// The ncu command: on PATH, in $CUDA_HOME/bin or /usr/local/cuda/bin, or the newest in
/// /opt/nvidia/nsight-compute. Empty: not found.
[[nodiscard]] std::filesystem::path FindNcu();

/// Reads any file of Nsight Compute's: the CSV or text that ncu printed, or a report (.ncu-rep,
/// .ncu-repz), which only ncu itself can read: `ncu` is run on it, under LC_ALL=C and for at most
/// ten minutes. Errors besides those of the readers: kUnavailable for a report without an ncu,
/// kToolFailed when ncu refuses it, kParse for a file of another kind; each says what the file is
/// and what to do.
[[nodiscard]] Result<Profile> ReadNcu(const std::filesystem::path& path,
                                      const std::stop_token& stop = {},
                                      const std::filesystem::path& ncu = FindNcu());

}  // namespace kernelpro
