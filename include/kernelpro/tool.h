// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "kernelpro/finding.h"
#include "kernelpro/profile.h"

namespace kernelpro {

/// The hardware figures that tools reason with.
struct Hardware {
  std::string name;
  std::uint32_t sm_count = 0;
  double clock_hz = 0;
  double dram_bytes_per_s = 0;  ///< achievable
  double dram_peak_bytes_per_s = 0;
  double l2_bytes_per_s = 0;
  double fp32_flops_per_s = 0, fp64_flops_per_s = 0;
  std::uint32_t warps_per_sm = 0, ctas_per_sm = 32, registers_per_sm = 65536;
  double shared_per_sm_bytes = 228.0 * 1024;
  double cta_launches_per_s = 0;  ///< chip wide
  double dram_latency_s = 0;
  double fp32_lanes = 128, int_lanes = 64, fp64_lanes = 64, sfu_lanes = 16;  ///< per SM per cycle
  double tensor_flops_per_s = 0;  ///< 16-bit inputs, dense; 0: unknown
  double l2_bytes = 0;            ///< 0: unknown
  std::uint32_t arch = 0;         ///< 90 for sm_90; 0: unknown
};

/// Utilisations of elapsed time, 0..1 (docs/tools.md section "Utilisations"); absent when unknown.
struct Utilisation {
  std::optional<double> dram, l2, l1, lsu, tensor, fma, alu, fp64, xu, issue;
  /// Nsight Compute's two "speed of light" figures: the maximum over many units of the SM, and of
  /// the memory system. For profiles that hold little else.
  std::optional<double> sm, memory;
};

struct ToolInput {
  const KernelProfile& kernel;
  const Profile& profile;
  const Hardware& hardware;
  const Utilisation& use;
  const std::vector<ClassMembership>& classes;
};

/// What a tool looks for, for people: `kernelpro tools show ID`.
struct ToolDocument {
  std::string looks_for;  ///< the trigger in words
  std::string severity;   ///< formula
  std::string bound;      ///< formula
  std::string source;     ///< where the thresholds come from
  std::vector<std::string> remedies;
  std::string not_when;
  std::string fires, silent;  ///< an example of each
  std::string origin;         ///< "built in", or the file that it was read from
  bool core = false;
};

/// trigger -> evidence -> advice. Pure: no I/O, no state, same input same output.
class Tool {
 public:
  virtual ~Tool() = default;
  [[nodiscard]] virtual std::string_view id() const = 0;
  [[nodiscard]] virtual std::string_view title() const = 0;
  /// Classes that call for it; empty: always run.
  [[nodiscard]] virtual std::vector<std::string_view> classes() const = 0;
  /// Metrics it needs, of the kernel, the run ("timeline.idle.pct") or the task
  /// ("task.compulsory_bytes"); "a|b" is met by either. When one is missing the tool is not run and
  /// that is reported.
  [[nodiscard]] virtual std::vector<std::string_view> metrics() const = 0;
  /// Nothing when the trigger does not fire.
  [[nodiscard]] virtual std::optional<Finding> Examine(const ToolInput& input) const = 0;

  [[nodiscard]] virtual ToolDocument document() const { return {}; }

  /// It judges the whole run and is asked once, with the kernel that takes most of the time.
  [[nodiscard]] virtual bool of_program() const { return false; }
};

}  // namespace kernelpro
