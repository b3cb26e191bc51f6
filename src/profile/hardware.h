// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emulator/model/model.h"
#include "kernelpro/tool.h"

namespace kernelpro {

/// The figures of a GPU that diagnosis reasons with.
[[nodiscard]] Hardware HardwareOf(const model::GpuSpec& spec);

}  // namespace kernelpro
