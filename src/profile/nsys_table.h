// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

/// One table of `nsys stats`, cells as printed.
struct NsysTable {
  /// A title such as "Total Time (ns)" or, before 2021, "Total Time" without a unit.
  struct Column {
    std::string title;  ///< "Total Time"
    std::string unit;   ///< "ns"; empty: none was printed
  };

  std::string report;    ///< "cuda_gpu_kern_sum", "gpukernsum"; empty: not told
  std::size_t line = 0;  ///< 1-based, of the titles
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< each as long as `columns`

  /// The first column with this title, without regard to case.
  [[nodiscard]] std::optional<std::size_t> Find(std::string_view title) const;
};

/// What a table holds, as far as it is of use.
enum class NsysTableKind : std::uint8_t {
  kOther,
  kKernels,    ///< times of each kernel, over its launches
  kCalls,      ///< times of each function of CUDA's or of the operating system's
  kCopyTimes,  ///< copies and sets, by time
  kCopySizes,  ///< copies and sets, by size
  kGpuTrace,   ///< kernels, copies and sets, one by one
  kCallTrace,  ///< calls, one by one
};

/// By the columns, for names of reports changed. Other reports with the same columns are told apart
/// by one more column (MPI has a source, NVTX a range) or by their announced name.
[[nodiscard]] NsysTableKind KindOfTable(const NsysTable& table);

/// All tables in the output of `nsys stats` or `nsys profile --stats=true`, as columns (the line of
/// dashes below the titles says where they are) or as CSV, with any other output around them. A
/// table ends at an empty line; lines in it that do not fit its columns are other output.
[[nodiscard]] std::vector<NsysTable> FindNsysTables(std::string_view text);

}  // namespace kernelpro
