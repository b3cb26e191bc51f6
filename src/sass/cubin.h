// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro::sass {

/// One function of a cubin.
struct CubinFunction {
  std::string name;                 ///< mangled
  std::span<const std::byte> code;  ///< 16 bytes an instruction; views the file that was read
  std::optional<std::uint32_t> registers;  ///< a thread
  bool entry = false;                      ///< a kernel: it has a place for parameters
};

/// One ELF binary of GPU code.
struct Cubin {
  bool exact = false;                    ///< the file says whether the architecture has a letter
  std::string arch;                      ///< "sm_90a"; the letter only where the file says it
  bool lineinfo = false;                 ///< has source lines (-lineinfo or -G)
  bool debug = false;                    ///< -G
  std::vector<CubinFunction> functions;  ///< in file order
};

/// The GPU code in a file.
struct GpuCode {
  std::vector<Cubin> cubins;
  /// Binaries that stand compressed in the file ("sm_90 (zstd)") and were not read.
  std::vector<std::string> compressed;
  std::uint32_t ptx = 0;  ///< PTX texts beside them
};

/// Whether `file` starts like an ELF file or a fat binary.
[[nodiscard]] bool LooksLikeBinary(std::span<const std::byte> file);

/// Reads a cubin, a fat binary, or a host object, library or program that holds fat binaries.
/// Any bytes are safe; every offset is checked. The result views `file`.
/// Errors with `label`: kParse when it is none of these or damaged, kNotFound when it holds no
/// GPU code for sm_70 or later.
[[nodiscard]] Result<GpuCode> ReadGpuCode(std::span<const std::byte> file, std::string_view label);

}  // namespace kernelpro::sass
