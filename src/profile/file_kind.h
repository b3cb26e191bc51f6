// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace kernelpro {

/// What a file that a user gives seems to be. The readers decide; this names what they refuse.
enum class FileKind : std::uint8_t {
  kEmpty,
  kNcuReport,     ///< .ncu-rep, .ncu-repz
  kNcuCsv,        ///< ncu --csv
  kNcuText,       ///< ncu's output for people
  kNcuLog,        ///< ncu's messages around a program's output
  kNsysReport,    ///< .nsys-rep, .qdrep
  kNsysStats,     ///< nsys stats, as text or CSV
  kSqlite,        ///< SQLite database (nsys export)
  kPtxasLog,      ///< ptxas -v
  kResourceUse,   ///< cuobjdump -res-usage
  kDisassembly,   ///< cuobjdump -sass, nvdisasm
  kSanitizerLog,  ///< compute-sanitizer
  kBinary,        ///< anything else with zero bytes
  kWideText,      ///< UTF-16, as PowerShell's ">" writes
  kText,
};

/// By content; the file's name decides only for binary files. Looks at the whole of `bytes`.
[[nodiscard]] FileKind SniffFile(std::string_view bytes, std::string_view file_name);

/// "a compute-sanitizer log", "the CSV output of Nsight Compute", ...
[[nodiscard]] std::string_view Describe(FileKind kind);

}  // namespace kernelpro
