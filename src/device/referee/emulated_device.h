// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "device/device.h"

namespace kernelpro::referee {

/// The emulator with the data file `gpu` ("h200"). kNotFound lists the known ones; kUnavailable
/// names a missing program.
[[nodiscard]] Result<std::unique_ptr<Device>> OpenEmulator(const std::string& gpu);

}  // namespace kernelpro::referee
