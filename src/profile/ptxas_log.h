// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// Reads what ptxas said in a build log of any tool (-Xptxas -v; toolchain/ptxas_figures.h and
/// ptxas_messages.h have the lines), or what `cuobjdump -res-usage` printed:
///
///   arch = sm_70
///    Function _Z1kPf:
///     REG:26 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:376 TEXTURE:0 SURFACE:0 SAMPLER:0
///
/// One KernelProfile an entry function and architecture, in the log's order, with `ptxas.*` metrics
/// (counted), texts["build.arch"] ("sm_90a") and `notes`. No times. A figure that the log does not
/// tell is absent. Without -v a log has messages only: then each function that they name is a
/// kernel. `system` has build.arch (90) and build.accelerated when all kernels agree.
///
/// What cannot be pinned to one kernel is told in the profile's notes: messages that name no
/// function (double precision, setmaxnreg) where there are several kernels, and device functions
/// that were not inlined and spill; ignored setmaxnreg is also counted in `system`
/// ("ptxas.setmaxnreg_ignored"). Any byte sequence is safe. kNotFound when nothing of ptxas is
/// in it, saying how to get it.
[[nodiscard]] Result<Profile> ParsePtxasLog(std::string_view text, std::string label);
[[nodiscard]] Result<Profile> ReadPtxasLog(const std::filesystem::path& path);

}  // namespace kernelpro
