// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emulator/model/model.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// Adds what follows from a kernel's registers (launch__* or ptxas.*), shared memory and launch
/// shape on this GPU, where the profile lacks it: limits of blocks per SM, theoretical occupancy,
/// waves (`counted`). Where the dynamic shared memory is unknown it is taken as none, which `notes`
/// says. Returns for how many kernels something was added; kernels without registers or launch
/// shape are left as they are.
std::size_t AddLaunchFigures(const model::GpuSpec& spec, Profile& profile);

}  // namespace kernelpro
