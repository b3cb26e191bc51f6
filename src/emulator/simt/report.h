// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// What one emulated launch did: exact counters, by instruction, and the faults it was caught in.
namespace kernelpro::simt {

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;

  [[nodiscard]] std::uint64_t Count() const { return std::uint64_t{x} * y * z; }

  bool operator==(const Dim3&) const = default;
};

/// Of one PTX instruction over the CTAs that were executed (not scaled). Definitions as ncu's.
struct InstructionCounters {
  std::uint64_t warps = 0;     ///< warp-level executions with at least one active lane
  std::uint64_t lanes = 0;     ///< active lanes (smsp__thread_inst_executed)
  std::uint64_t lanes_on = 0;  ///< active and predicated on (.._pred_on)
  // Memory instructions only:
  std::uint64_t requests = 0;        ///< warp-level requests with at least one lane on
  std::uint64_t sectors = 0;         ///< distinct 32-byte sectors over each request (global, local)
  std::uint64_t ideal_sectors = 0;   ///< sectors had the same bytes been contiguous and aligned
  std::uint64_t lines = 0;           ///< distinct 128-byte lines over each request
  std::uint64_t l1_hit_sectors = 0;  ///< kSample only
  std::uint64_t wavefronts = 0;      ///< shared memory: cycles of the data stage, >= 1 a request
  std::uint64_t ideal_wavefronts = 0;
  std::uint64_t bytes = 0;         ///< lanes on x access width
  std::uint32_t address_bits = 0;  ///< OR of all lane addresses' low bits: alignment actually seen
  // Branches only:
  std::uint64_t divergent = 0;  ///< executions in which the warp split
};

/// DRAM- and L2-side traffic of one allocation over the executed CTAs.
struct AllocationTraffic {
  std::string name;
  std::uint64_t total_sectors = 0;         ///< its size in 32-byte sectors
  std::uint64_t unique_read = 0;           ///< distinct sectors read
  std::uint64_t unique_write = 0;          ///< distinct sectors written
  std::uint64_t unique_read_granules = 0;  ///< distinct 64-byte granules read (DRAM access size)
  /// kSample only: sectors that missed the cohort's share of L2.
  std::uint64_t miss_read = 0;
  std::uint64_t miss_write = 0;
};

struct AtomicTraffic {
  std::uint64_t operations = 0;  ///< lane-level global atomics and reductions
  std::uint64_t hottest_sector_operations = 0;
  /// Warp-level requests to the sector that received most of them: lanes of one request that fall
  /// into the same sector are served together, so this is what queues.
  std::uint64_t hottest_sector_requests = 0;
};

enum class FaultKind : std::uint8_t {
  kOutOfBounds,  ///< no allocation, past its end, or freed
  kMisaligned,
  kWriteToReadOnly,
  kDivergentBarrier,  ///< some threads of a CTA can never arrive, or warps wait at different
                      ///< barriers
  kDeadlock,          ///< no runnable warp, or no progress
  kBudget,            ///< more instructions than the launch was allowed
  kTrap,              ///< trap, assert
  kSharedOutOfBounds,
  kLocalOutOfBounds,
  kBadShuffle,     ///< mask names exited or non-participating lanes
  kRace,           ///< shared memory, check mode
  kUninitialized,  ///< shared memory read before written, check mode
  kUnsupported,    ///< "unsupported: <op> at <file:line>": the result is unknown
};

struct Fault {
  FaultKind kind = FaultKind::kOutOfBounds;
  bool fatal = true;    ///< the launch stopped here
  std::string message;  ///< whole sentence for a person, with kernel, thread and source line
  std::string kernel;
  Dim3 cta{0, 0, 0}, thread{0, 0, 0};
  std::uint32_t instruction = 0;  ///< index into Function::body; 0xffffffff in a called function
  std::string file;               ///< CUDA source, empty without line information
  std::uint32_t line = 0;
  std::uint32_t ptx_line = 0;
  std::uint64_t address = 0;
  std::string allocation;   ///< name + offset of the nearest, where it has one
  std::uint64_t count = 1;  ///< times seen (non-fatal faults are merged per instruction)
};

/// Counters of a device function that the kernel called.
struct CalledFunction {
  std::string name;
  std::vector<InstructionCounters> instructions;  ///< by index into Function::body
};

struct LaunchReport {
  std::string kernel;
  Dim3 grid, block;
  std::uint64_t static_shared = 0, dynamic_shared = 0;
  std::uint64_t ctas = 0;                 ///< of the launch
  std::uint64_t ctas_executed = 0;        ///< < ctas when sampled
  std::uint32_t ctas_per_sm_assumed = 0;  ///< resident CTAs per SM used for the cohort and L1
  bool sampled = false;
  std::vector<InstructionCounters> instructions;  ///< by index into Function::body
  std::vector<CalledFunction> called;             ///< device functions that were decoded for it
  std::vector<AllocationTraffic> allocations;     ///< those touched
  AtomicTraffic atomics;
  std::uint64_t barriers = 0;  ///< warp-level barrier executions
  std::vector<Fault> faults;
  std::string printed;  ///< device printf, at most 64 KiB

  [[nodiscard]] bool Completed() const {
    for (const Fault& f : faults) {
      if (f.fatal) {
        return false;
      }
    }
    return true;
  }
};

}  // namespace kernelpro::simt
