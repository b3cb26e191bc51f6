// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// The lines of one activity file, checked one by one and not yet joined.
struct ActivityRecords {
  struct Device {
    std::string name;
    std::uint32_t sms = 0, compute_capability = 0;
  };

  /// `name` is empty until the names are joined: `name_id` has it.
  struct Event {
    TimelineEvent event;
    std::uint64_t name_id = 0;
    std::uint32_t device = 0;
    std::uint64_t thread = 0;  ///< API calls
    bool runtime = false;      ///< API calls
    bool host_side = false;    ///< copies: one side is host memory
    bool to_host = false;      ///< copies
    std::uint32_t registers = 0, shared_static = 0, shared_dynamic = 0, local = 0;  ///< kernels
  };

  struct Name {
    std::string name, plain;
  };

  std::vector<Event> gpu;   ///< kernels, copies, sets, graphs
  std::vector<Event> api;   ///< API calls; their kind is not set
  std::vector<Event> host;  ///< JIT and module loading
  std::unordered_map<std::uint64_t, Name> names;
  std::unordered_map<std::uint64_t, std::uint64_t> waits;  ///< correlation of waiting calls -> type
  std::unordered_map<std::uint64_t, std::uint64_t> allocated;  ///< correlation -> bytes
  std::unordered_map<std::uint64_t, Device> devices;
  double tracing_ns = 0;  ///< what CUPTI itself cost the host
  std::uint64_t dropped = 0, incomplete = 0, unknown = 0;
  bool ended = false, limited = false, cut = false;
  std::uint64_t cut_line = 0;
  std::string refused;  ///< kinds of records that CUPTI would not give
};

/// See activity_trace.h for the errors and limits.
[[nodiscard]] Result<ActivityRecords> ParseActivityRecords(std::string_view text,
                                                           const std::string& label);

}  // namespace kernelpro
