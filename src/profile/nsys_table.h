// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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

/// All tables in the output of `nsys stats` or `nsys profile --stats=true`, as columns (the line of
/// dashes below the titles says where they are) or as CSV, with any other output around them. A
/// table ends at an empty line; lines in it that do not fit its columns are other output.
[[nodiscard]] std::vector<NsysTable> FindNsysTables(std::string_view text);

}  // namespace kernelpro
