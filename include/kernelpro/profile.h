// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

/// How a figure was obtained. No figure leaves a module without it.
enum class Provenance : std::uint8_t {
  kMeasured,  ///< hardware counter or clock
  kCounted,   ///< exact, from emulation or disassembly
  kModelled,  ///< estimate of the time model
};

[[nodiscard]] std::string_view Name(Provenance provenance);

struct Metric {
  double value = 0;
  std::string unit;  ///< "sector", "byte", "us", "%", "inst", "" for ratios
  Provenance provenance = Provenance::kCounted;
};

/// Counters of one source line (summed over its instructions).
struct LineMetrics {
  std::string file;
  std::uint32_t line = 0;
  std::map<std::string, Metric> metrics;
};

/// One instruction of the machine code that warps were sampled at (PC sampling).
struct HotSpot {
  std::uint64_t address = 0;  ///< byte offset in the function
  std::string instruction;    ///< "FFMA R0, R1, R2, R0"
  std::string file;           ///< where, when the build had -lineinfo
  std::uint32_t line = 0;
  double samples = 0;
  std::map<std::string, double> stalls;  ///< samples by reason: "long_scoreboard", ...
  /// What the instruction waits for, from the disassembly: the nearest producer of the kind that
  /// the largest stall reason names. Empty: unknown.
  std::string producer;  ///< "LDG.E R1, [R2.64]"
  std::uint64_t producer_address = 0;
  std::string producer_file;
  std::uint32_t producer_line = 0;
  std::uint32_t distance = 0;  ///< instructions from producer to consumer
};

/// A thing that the compiler said about one kernel's performance.
struct CompilerNote {
  /// "wgmma_serialized", "setmaxnreg_ignored", "spill", "local_memory", "double_precision", "other"
  std::string kind;
  std::string code;  ///< "C7511"; empty: none was printed
  std::string text;
  std::string file;
  std::uint32_t line = 0;
};

/// The hottest innermost loop of the machine code.
struct HotLoop {
  std::uint64_t first = 0, last = 0;  ///< byte offsets of its first and last instruction
  std::string file;                   ///< of its first instruction with a line
  std::uint32_t line = 0;
};

/// What the GPU or the host did at a time (CUPTI activity, nsys).
struct TimelineEvent {
  enum class Kind : std::uint8_t {
    kKernel,
    kCopy,
    kSet,         ///< memset
    kLaunch,      ///< host: a launching call
    kSync,        ///< host: a waiting call
    kAllocation,  ///< host: cudaMalloc, cudaFree and the like
    kApi,         ///< host: any other call
    kGraph,       ///< a whole graph on the GPU
    kCompile,     ///< host: JIT compilation or module loading
  };
  Kind kind = Kind::kKernel;
  std::string name;  ///< kernel or API function; "HtoD pageable" for copies
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t stream = 0;
  std::uint64_t correlation = 0;  ///< joins a launch with its kernel; 0: unknown
  std::uint64_t bytes = 0;        ///< copies, sets, allocations
  bool pageable = false;          ///< copies: host memory that is not pinned
  bool graph = false;             ///< the kernel was launched by a graph
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
};

struct KernelProfile {
  std::string name;  ///< demangled, without parameters
  std::string mangled;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  double time_us = 0;
  Provenance time_provenance = Provenance::kModelled;
  double time_share = 1;                  ///< of the whole call
  std::map<std::string, Metric> metrics;  ///< by Nsight Compute name
  std::vector<LineMetrics> lines;         ///< by file and line
  std::map<std::string, std::uint64_t>
      opcodes;  ///< by opcode: executed warp instructions (emulation, PTX), or how often it stands
                ///< in the machine code (SASS)
  std::map<std::string, std::string> texts;  ///< metrics that are words: "CachePreferNone"
  std::vector<HotSpot> hot_spots;            ///< by samples, largest first
  std::vector<CompilerNote> notes;
  std::optional<HotLoop> hot_loop;
  /// Asked for and not collected. A missing metric is absent from `metrics`, never zero.
  std::vector<std::string> missing;

  /// Value of a metric; nothing when it was not collected.
  [[nodiscard]] std::optional<double> Value(std::string_view metric) const;
};

struct Profile {
  std::string device;  ///< "emulator:h200", or the GPU named in a file
  std::string source;  ///< "emulation", "ncu", or the file that was read
  std::vector<KernelProfile> kernels;
  std::map<std::string, Metric>
      task;  ///< compulsory bytes, needed flops, floor; empty without a task
  std::map<std::string, Metric> system;  ///< "timeline.*", "nvml.*", "build.*": of the whole run
  std::vector<TimelineEvent> timeline;   ///< by start; empty when none was recorded
  /// What could not be collected and why, and what the profile rests on instead. Sentences.
  std::vector<std::string> notes;
};

}  // namespace kernelpro
