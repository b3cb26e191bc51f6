// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro {

/// A program or library of NVIDIA's.
struct NvidiaTool {
  std::filesystem::path path;       ///< empty: it is in none of the places
  std::vector<std::string> looked;  ///< where, for the message

  [[nodiscard]] bool found() const { return !path.empty(); }
};

/// "ncu", "nsys", "nvdisasm", ...: in the toolkit's bin, on $PATH, in $CUDA_HOME/bin,
/// /usr/local/cuda/bin, and, for the Nsight tools, where their own packages put them
/// (/opt/nvidia/nsight-compute/<newest>). For ncu $KERNELPRO_NCU goes before all, and then is the
/// only place. `toolkit` may be empty.
[[nodiscard]] NvidiaTool FindNvidiaTool(std::string_view name,
                                        const std::filesystem::path& toolkit);

/// "libcupti.so" in the toolkit, $CUDA_HOME, /usr/local/cuda and the system's library folders.
[[nodiscard]] NvidiaTool FindNvidiaLibrary(std::string_view name,
                                           const std::filesystem::path& toolkit);

/// "ncu was not found (looked in ...)"
[[nodiscard]] std::string NotFoundMessage(std::string_view name, const NvidiaTool& tool);

/// What `<path> --version` says: "2025.3.1.0". kToolFailed when it does not run.
[[nodiscard]] Result<std::string> NvidiaToolVersion(const std::filesystem::path& path);

}  // namespace kernelpro
