// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>

#include "base/result.h"

namespace kernelpro {

/// cuobjdump or nvdisasm in the toolkit's bin folder or on $PATH; empty when there is none.
[[nodiscard]] std::filesystem::path FindDisassembler(const std::filesystem::path& toolkit);

/// The SASS listing of a cubin. kToolFailed: the tool failed, ran past 30 s, or printed more than
/// 64 MiB.
[[nodiscard]] Result<std::string> Disassemble(const std::filesystem::path& cubin,
                                              const std::filesystem::path& disassembler,
                                              const std::stop_token& stop);

}  // namespace kernelpro
