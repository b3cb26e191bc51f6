// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "emulator/ptx/module.h"

namespace kernelpro::ptx {

/// Checks a parsed compiler output against a second, much simpler reading of the same text: the
/// statements between semicolons whose first word looks like an opcode. Reports through gtest.
void CheckAgainstText(const Module& module, std::string_view text);

}  // namespace kernelpro::ptx
