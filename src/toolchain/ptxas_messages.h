// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernelpro/profile.h"

namespace kernelpro {

/// One thing that ptxas said about performance.
struct PtxasMessage {
  CompilerNote note;
  std::string function;  ///< mangled; empty: the message names none
};

/// What ptxas says about performance in a log, each distinct message once, in order:
///   ptxas warning : Registers are spilled to local memory in function '_Z1kPf', 8 bytes spill ...
///   ptxas warning : Local memory used for function '_Z1kPf', size of stack frame: 288 bytes
///   ptxas k.ptx, line 286; warning : Program is doing double precision computations.
///   ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to ...
///   ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are
///   serialized due to insufficient register resources ... in the function '_Z1kPf'
///   ptxas info    : (C7517) warpgroup.wait is injected in around line 155 by compiler ... in
///   function '_Z1kPf'
/// (each is one line). Kinds are those of CompilerNote; other warnings, and other numbered remarks,
/// are "other". ptxas prints them before the figures of the kernels. Any text is safe.
[[nodiscard]] std::vector<PtxasMessage> ParsePtxasMessages(std::string_view log);

}  // namespace kernelpro
