// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "emulator/model/model.h"
#include "toolchain/toolchain.h"

namespace kernelpro {

/// Figures of `ptxas -v` by mangled kernel name:
///   ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90'
///   ptxas info    : Function properties for _Z1kPf
///       8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
///   ptxas info    : Used 38 registers, used 1 barriers, 112 bytes cumulative stack size, 16 bytes
///   smem
/// Other lines may stand between, and each may begin with what a build service adds (a time). A
/// line of properties belongs to the function named above it, so the spills of device functions
/// that were not inlined are not the kernel's; their stack is in its "cumulative stack size". When
/// a kernel comes twice (two architectures) the last one counts.
[[nodiscard]] std::map<std::string, KernelFigures> ParsePtxasFigures(std::string_view log);

/// The same figures as the time model and the emulator take them.
[[nodiscard]] model::KernelResources ResourcesOf(const KernelFigures& figures);

}  // namespace kernelpro
