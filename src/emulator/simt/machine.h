// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/simt/async_copy.h"
#include "emulator/simt/code.h"
#include "emulator/simt/engine.h"
#include "emulator/simt/report.h"
#include "emulator/simt/traffic.h"

/// State of one launch while it runs.
namespace kernelpro::simt {

class RaceDetector;
class Machine;
struct Cta;
struct Warp;

struct SegmentCount {
  std::uint64_t warps = 0, lanes = 0;
};

/// The part of an allocation that an instruction last touched: address checks of the next execution
/// start here. Spans at most 4 GiB, so that lane offsets fit 32 bits.
struct AccessCache {
  std::uint64_t base = 1;   ///< device address; 1 is never one
  std::uint64_t bytes = 0;  ///< reachable from base
  std::byte* host = nullptr;
  std::uint64_t first_sector = 0;  ///< of base, counted from the allocation's start
  AllocationUse* use = nullptr;
  bool read_only = false;
};

/// Counters of one function over the launch, and what its instructions remember.
struct FunctionState {
  std::vector<SegmentCount> segments;
  std::vector<InstructionCounters> instructions;
  std::vector<AccessCache> caches;  ///< by Access
};

/// Storage for slots; grows only.
class AlignedBlock {
 public:
  /// At least `bytes`, 128-byte aligned, contents undefined after growth.
  std::byte* Reserve(std::size_t bytes);

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::unique_ptr<std::byte[]> storage_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// An activation of a function by some lanes of a warp. Fragments of one warp that came from the
/// same call share it (their lanes differ).
struct Frame {
  const FunctionCode* code = nullptr;
  FunctionState* state = nullptr;
  std::byte* registers = nullptr;
  Frame* caller = nullptr;
  const CallOp* call = nullptr;
  std::uint32_t call_segment = 0;    ///< of the caller
  std::uint32_t return_segment = 0;  ///< of the caller
  std::uint32_t depth = 0;
  LaneMask live = 0;  ///< lanes that have not returned
  std::uint64_t local_base = 0;
  bool constants_filled = false;
  std::unique_ptr<AlignedBlock> storage;  ///< of a call's registers; the kernel's are the CTA's
};

enum class FragmentState : std::uint8_t {
  kReady,
  kParked,     ///< waits for other lanes of its warp at a rendezvous
  kAtBarrier,  ///< waits for other warps
};

/// Lanes of a warp that are at the same place.
struct Fragment {
  Frame* frame = nullptr;
  std::uint32_t segment = 0;
  LaneMask mask = 0;
  FragmentState state = FragmentState::kReady;
  std::uint8_t barrier = 0;
  std::uint32_t previous = 0;  ///< the segment before this one
  bool deferred = false;       ///< took a back edge: lets lanes still inside the loop catch up
  const Decoded* waiting = nullptr;  ///< the barrier instruction
};

struct Warp {
  Cta* cta = nullptr;
  std::uint32_t index = 0;
  LaneMask lanes = 0;  ///< that exist
  LaneMask live = 0;   ///< that have not exited
  std::uint32_t count = 0;
  std::uint32_t current = 0;  ///< index into fragments
  std::array<Fragment, kWarpSize> fragments;
  Frame root;
  std::vector<std::unique_ptr<Frame>> frames;  ///< of calls, a pool: free when live == 0
  std::uint64_t back_edges = 0;                ///< taken in this slice
  std::uint32_t crowded_back_edges = 0;        ///< taken while the warp had several fragments
  LaneMask favoured = 0;                       ///< lanes whose turn it is, whatever their priority
  std::uint32_t favoured_left = 0;             ///< segments until that turn is over
  bool polled = false;                         ///< read something strongly in this slice
  bool yields = false;                         ///< nanosleep: ends the slice
  bool regroup = false;                        ///< several fragments changed state: look for equals
  AsyncCopies copies;                          ///< in flight
  std::uint32_t last_segment = 0;              ///< highest segment from which lanes left the kernel
};

struct Barrier {
  std::uint32_t arrived = 0;   ///< threads
  std::uint32_t expected = 0;  ///< 0: all live threads of the CTA
  std::uint32_t popc = 0;
  bool all = true, any = false;
  const Decoded* first = nullptr;  ///< the instruction of the first arrival of this phase
  bool mixed = false;              ///< another instruction arrived too
};

/// cp.async.mbarrier.arrive: lanes whose arrival comes when their copies are done.
struct AsyncArrival {
  std::uint32_t barrier = 0;  ///< offset in shared memory
  Warp* warp = nullptr;
  LaneMask lanes = 0;
  std::uint64_t before = 0;  ///< copies with smaller numbers
};

struct Cta {
  std::uint64_t linear = 0;
  Dim3 id;
  std::uint32_t slot = 0;  ///< of the context, dense
  std::vector<Warp> warps;
  AlignedBlock registers, shared, local;
  std::uint64_t shared_bytes = 0;
  std::uint64_t local_bytes = 0;  ///< per thread
  std::array<Barrier, 16> barriers;
  std::vector<AsyncArrival> arrivals;  ///< at mbarriers, not yet due
  std::uint32_t live_threads = 0;
  std::unique_ptr<RaceDetector> race;  ///< check mode
};

/// What an operation sees.
struct Context {
  Machine* machine = nullptr;
  Cta* cta = nullptr;
  Warp* warp = nullptr;
  Frame* frame = nullptr;
  std::byte* registers = nullptr;
  InstructionCounters* counters = nullptr;  ///< by body index
  AccessCache* caches = nullptr;
  const FunctionCode* code = nullptr;
  LaneMask active = 0;  ///< of the fragment

  void Enter(Frame& f) {
    frame = &f;
    registers = f.registers;
    counters = f.state->instructions.data();
    caches = f.state->caches.data();
    code = f.code;
  }
};

/// Why RunWarp came back.
enum class Stop : std::uint8_t { kBlocked, kExited, kSliceOver, kSpinning, kFault };

// interpreter.cc
/// Runs until the warp is blocked, has exited, has executed about `slice` instructions, or seems to
/// wait for somebody else.
[[nodiscard]] Stop RunWarp(Machine& machine, Warp& warp, std::int64_t slice);

// scheduler.cc
/// Merges fragments that have met and makes the one to run next current; kSliceOver stands for
/// "there is one".
[[nodiscard]] Stop Select(Context& context, Warp& warp);
/// True when the lanes that must come together here have.
[[nodiscard]] bool HaveMet(const Context& context, const Warp& warp, const Fragment& fragment,
                           const Segment& segment);
/// Puts `lanes` of the fragment into a new one at `segment`.
void Split(Warp& warp, Fragment& fragment, LaneMask lanes, std::uint32_t segment);
void Remove(Warp& warp, Fragment& fragment);
[[nodiscard]] bool Reaches(const FunctionCode& code, std::uint32_t from, std::uint32_t to);

// control.cc
/// Executes the instruction that ends a segment, branches apart. The fragment has moved on, or is
/// blocked or gone; false on a fatal fault.
[[nodiscard]] bool Terminate(Context& context, Warp& warp, const Segment& segment,
                             const Decoded& d);

// calls.cc
[[nodiscard]] bool EnterCall(Context& context, Fragment& fragment, const Segment& segment,
                             const Decoded& d);
void ReturnFromCall(Warp& warp, Fragment& fragment);

// printf.cc
[[nodiscard]] bool RunBuiltin(Context& context, const Decoded& d, LaneMask on);

// barrier.cc
[[nodiscard]] bool ArriveAtBarrier(Context& context, Fragment& fragment, const Segment& segment,
                                   const Decoded& d);
/// After threads have exited: barriers may be complete now.
[[nodiscard]] bool CompleteBarriers(Machine& machine, Cta& cta);

class Machine {
 public:
  Machine(const ProgramImpl& program, const KernelCode& kernel, const LaunchConfig& config,
          const EngineSpec& spec, DeviceMemory& memory);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] LaunchReport Run();

  // For the interpreter and the operations. Public data, because they are one mechanism.
  const ProgramImpl* program;
  const KernelCode* kernel;
  const LaunchConfig* config;
  const EngineSpec* spec;
  DeviceMemory* memory;
  LaunchReport report;
  std::vector<FunctionState> functions;  ///< by index into KernelCode::functions
  Traffic traffic;
  std::uint64_t executed = 0;       ///< warp-level instructions
  std::uint64_t last_progress = 0;  ///< `executed` when something last changed for others to see
  bool sampling = false;
  bool checking = false;

  /// Records a fault at `lane` of the context's warp; merged with an earlier non-fatal one of the
  /// same instruction and kind.
  void Report(const Context& context, const Decoded& at, int lane, Fault fault);
  void FillConstants(Cta& cta, Warp& warp, Frame& frame);

 private:
  struct Pool;

  void RunAll();
  void RunSample();
  [[nodiscard]] bool RunCohort(const std::vector<std::uint64_t>& ids);
  [[nodiscard]] Stop RunCta(Cta& cta, std::int64_t slice);
  void StartCta(Cta& cta, std::uint64_t linear);
  void PrepareCta(Cta& cta);
  void ReportStuck(Cta& cta);
  void ReportLivelock(Cta& cta);
  [[nodiscard]] static bool PollsOnly(const std::vector<Cta*>& live);
  void Finish();

  std::unique_ptr<Pool> pool_;
};

}  // namespace kernelpro::simt
