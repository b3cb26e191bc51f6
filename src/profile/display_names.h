// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kernelpro {

/// The metric behind a row of Nsight Compute's details page: "Duration" is
/// "gpu__time_duration.sum", "Memory Throughput" is one metric in "%" and another in "Gbyte/s", and
/// "SOL FB" of 2020 is "DRAM Throughput" of later years. A metric's own name stays; a display name
/// with no single metric behind it becomes "<section>: <name>".
[[nodiscard]] std::string MetricKey(std::string_view section, std::string_view name,
                                    std::string_view unit);

}  // namespace kernelpro
