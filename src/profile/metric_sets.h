// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernelpro/profile.h"

/// Which counters KernelPro asks Nsight Compute for, and no others: the one place where names are
/// given to `ncu --metrics`. tests/metric_names checks each against the chips without a GPU.
///
/// Names that look right and are not: "sm__inst_executed_pipe_fp32" and
/// "smsp__warp_issue_stalled_memory_dependency" exist on no chip here (ncu answers n/a); sm_100 has
/// "_pipe_tensor_subpipe_hmma" for "_pipe_tensor_op_hmma"; the stall "gmma" is sm_90's alone,
/// "imc_miss" left with sm_100; on sm_90 "..._pipe_tensor_op_hmma" counts wgmma as well.
namespace kernelpro::metric_sets {

/// The chips whose catalogues the sets were made for: GA100, GH100, GB100.
enum class Arch : std::uint8_t { kSm80, kSm90, kSm100 };

/// By compute capability times ten (86 -> kSm80, 120 -> kSm100): the nearest older one. A name that
/// a relative of the chip lacks comes back as missing.
[[nodiscard]] Arch ArchOf(std::uint32_t compute_capability);
[[nodiscard]] std::string_view ChipOf(Arch arch);  ///< "GH100"

/// How Nsight Compute obtains a metric.
enum class How : std::uint8_t {
  kCounter,  ///< hardware counters, in replay passes
  kPatched,  ///< the machine code is patched: every instruction counts itself (one pass, slow)
  kSampled,  ///< program counters are sampled
  kTool,     ///< made by Nsight Compute itself: no pass, and in no chip's catalogue
};

struct Entry {
  std::string_view name;
  std::uint8_t archs;  ///< bit 1 << Arch
};

/// Metrics that answer one question.
struct Group {
  std::string_view name;  ///< "l1"
  How how;
  std::span<const Entry> entries;
};

/// All of them, each once.
[[nodiscard]] std::span<const Group> Groups();

/// What is collected in one run of the program. Hardware passes on sm_80/90/100, by the scheduler
/// of CUPTI 13.0 (checked by tests/metric_names).
enum class Pack : std::uint8_t {
  kFirst,     ///< 4/3/3: roofline, launch figures, shared memory: where the time goes
  kMemory,    ///< 4/4/4: L1, L2, apertures
  kLatency,   ///< 4/4/4: scheduler, six stall reasons, instruction cache
  kCompute,   ///< 3/4/4: pipes, tensor, divergence
  kParallel,  ///< 2/1/1: balance between units, block launch
  kAtomics,   ///< 2/1/1
  kTma,       ///< -/2/2
  kSass,      ///< 1 patched
  kSampling,  ///< 1 sampled
  kStalls,    ///< 7/7/6: every stall reason
};

[[nodiscard]] std::string_view Name(Pack pack);

/// Names for `--metrics`: the union of the packs, each once, in the order of the groups.
[[nodiscard]] std::vector<std::string> Metrics(std::span<const Pack> packs, Arch arch);
/// The same, only those that are got in this way.
[[nodiscard]] std::vector<std::string> Metrics(std::span<const Pack> packs, Arch arch, How how);

/// All packs: for one run of the program that answers every question.
[[nodiscard]] std::vector<Pack> EveryPack();

/// What to ask next about a kernel of which the first pack is known. Soft: a kernel near the line
/// between two classes gets the packs of both. kSass is always among them (the width and the
/// efficiency of accesses matter in every class); kAtomics and kTma only where the disassembly
/// (`sass.*` in the profile) does not rule them out.
[[nodiscard]] std::vector<Pack> PacksAfter(const KernelProfile& first);

}  // namespace kernelpro::metric_sets
