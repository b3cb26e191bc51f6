// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "emulator/simt/machine.h"

namespace kernelpro::simt {

/// " at vector_add.cu:12", or the PTX line when there is no line information.
[[nodiscard]] std::string At(const ptx::Module& module, const ptx::SourceLocation& where);

[[nodiscard]] const ptx::SourceLocation& LocationOf(const FunctionCode& code, const Decoded& d);

/// For a fault of `lane` whose access of `bytes` bytes at `address` hits no live allocation:
/// fills kind, address, allocation and message.
void DescribeBadAddress(const DeviceMemory& memory, std::uint64_t address, std::uint32_t bytes,
                        bool store, Fault& fault);

void ReportMisaligned(Context& context, const Decoded& d, int lane, std::uint64_t address,
                      std::uint32_t bytes, bool store);

}  // namespace kernelpro::simt
