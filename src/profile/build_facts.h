// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>

#include "kernelpro/profile.h"

namespace kernelpro {

/// What nvcc's flags say about a build, as `build.*` metrics (counted):
///
///   build.arch         newest target: 90 for sm_90a (of code=, else of -arch=)
///   build.accelerated  1 when that target has the suffix a
///   build.ptx_only     1 when no target makes machine code
///   build.debug        1 with -G
///   build.fmad_off     1 with -fmad=false
///   build.lineinfo     1 with -lineinfo, --generate-line-info or -G
///   build.rdc          1 with -rdc=true or -dc
///   build.maxrregcount the cap, when one is given
///
/// Flags of several words ("-gencode", "arch=...") and joined ones ("-gencode=arch=...") are
/// understood. build.arch is absent when no flag names a target.
[[nodiscard]] std::map<std::string, Metric> BuildFacts(std::span<const std::string> flags);

}  // namespace kernelpro
