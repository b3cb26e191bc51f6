// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "kernelpro/profile.h"

namespace kernelpro {

/// "cudaLaunchKernel_v7000" and "cudaMemcpyAsync_ptsz_v3020" without what the headers' macros add.
[[nodiscard]] std::string_view PlainApiName(std::string_view name);

/// What a CUDA runtime or driver function is for, by its plain name: kLaunch (kernels and graphs),
/// kSync (the *Synchronize calls), kAllocation (memory taken or given back, pools included),
/// kCompile (modules and libraries loaded, JIT linking), else kApi. A blocking copy waits too: that
/// depends on its direction, which the name does not tell.
[[nodiscard]] TimelineEvent::Kind ApiKind(std::string_view plain_name);

/// cudaMemcpy and its kin without "Async": they return when the copy is done if one side is host
/// memory.
[[nodiscard]] bool IsBlockingCopy(std::string_view plain_name);

/// cudaGraphLaunch, cuGraphLaunch.
[[nodiscard]] bool IsGraphLaunch(std::string_view plain_name);

}  // namespace kernelpro
