// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "emulator/simt/faults.h"
#include "emulator/simt/machine.h"
#include "emulator/simt/race.h"

namespace kernelpro::simt {
namespace {

/// Warp instructions of each resident CTA between switches when counters are sampled: about as far
/// as a warp gets before it waits for a load. Longer slices let one warp's accesses hit lines that
/// on the GPU others have pushed out (L1 hit rate of copy_chunk32 in the H200 suite at 24, 12, 6:
/// 0.75, 0.50, 0.25; Nsight Compute: 0.04).
constexpr std::int64_t kSampleSlice = 8;
constexpr std::int64_t kNoSlice = 1LL << 62;
/// All resident CTAs poll, and nothing has been written for so long: nobody will ever write it.
constexpr std::uint64_t kLivelock = 20'000'000;

}  // namespace

struct Machine::Pool {
  std::vector<std::unique_ptr<Cta>> all;
  std::vector<Cta*> free;

  Cta& Take() {
    if (free.empty()) {
      all.push_back(std::make_unique<Cta>());
      return *all.back();
    }
    Cta& cta = *free.back();
    free.pop_back();
    return cta;
  }
};

Machine::Machine(const ProgramImpl& program_in, const KernelCode& kernel_in,
                 const LaunchConfig& config_in, const EngineSpec& spec_in, DeviceMemory& memory_in)
    : program(&program_in),
      kernel(&kernel_in),
      config(&config_in),
      spec(&spec_in),
      memory(&memory_in),
      sampling(config_in.mode == Mode::kSample),
      checking(config_in.mode == Mode::kCheck),
      pool_(std::make_unique<Pool>()) {
  for (const auto& code : kernel->functions) {
    FunctionState& state = functions.emplace_back();
    state.segments.resize(code->segments.size());
    state.instructions.resize(code->function->body.size() + 1);
    state.caches.resize(code->accesses.size());
  }
}

Machine::~Machine() = default;

/// One pass over the warps.
Stop Machine::RunCta(Cta& cta, std::int64_t slice) {
  bool ran = false;
  bool spinning = true;
  for (Warp& warp : cta.warps) {
    if (warp.count == 0) {
      continue;
    }
    const std::uint64_t before = executed;
    const Stop stop = RunWarp(*this, warp, slice);
    if (stop == Stop::kFault) {
      return stop;
    }
    ran = ran || executed != before || stop == Stop::kExited;
    spinning = spinning && (stop == Stop::kSpinning || executed == before);
  }
  if (cta.live_threads == 0) {
    return Stop::kExited;
  }
  if (!ran) {
    ReportStuck(cta);
    return Stop::kFault;
  }
  return spinning ? Stop::kSpinning : Stop::kSliceOver;
}

void Machine::ReportStuck(Cta& cta) {
  std::string waiting;
  Warp* first = nullptr;
  std::set<const Decoded*> places;
  FaultKind kind = FaultKind::kDeadlock;
  for (Warp& warp : cta.warps) {
    for (std::uint32_t i = 0; i < warp.count; ++i) {
      Fragment& fragment = warp.fragments[i];
      const FunctionCode& code = *fragment.frame->code;
      const Decoded* at = fragment.waiting;
      std::string what;
      if (at != nullptr) {
        const Barrier& barrier = cta.barriers[fragment.barrier];
        what = fmt::format("at barrier {} with {} of {} threads", fragment.barrier, barrier.arrived,
                           barrier.expected == 0 ? cta.live_threads : barrier.expected);
      } else {
        const Segment& segment = code.segments[fragment.segment];
        at = &code.code[segment.begin];
        kind =
            segment.member_mask == kNoSlot ? FaultKind::kDivergentBarrier : FaultKind::kBadShuffle;
        what = fmt::format("at {} for other lanes of its warp",
                           code.function->body[at->instruction].opcode);
      }
      places.insert(at);
      if (first == nullptr || (kind != FaultKind::kDeadlock && fragment.waiting == nullptr)) {
        first = &warp;
      }
      waiting +=
          fmt::format("{}warp {} lanes 0x{:08x} {}{}", waiting.empty() ? "" : "; ", warp.index,
                      fragment.mask, what, At(program->module(), LocationOf(code, *at)));
    }
  }
  if (first == nullptr) {
    return;
  }
  if (kind == FaultKind::kDeadlock && places.size() > 1) {
    kind = FaultKind::kDivergentBarrier;
  }
  Context context{.machine = this, .cta = &cta, .warp = first};
  Fragment& fragment = first->fragments[0];
  context.Enter(*fragment.frame);
  const Decoded& at =
      fragment.waiting != nullptr
          ? *fragment.waiting
          : fragment.frame->code->code[fragment.frame->code->segments[fragment.segment].begin];
  Fault fault;
  fault.kind = kind;
  fault.message = fmt::format("waits for ever, and no thread of its block can run ({})", waiting);
  Report(context, at, std::countr_zero(fragment.mask), std::move(fault));
}

void Machine::ReportLivelock(Cta& cta) {
  for (Warp& warp : cta.warps) {
    if (warp.count == 0) {
      continue;
    }
    Context context{.machine = this, .cta = &cta, .warp = &warp};
    const Fragment& fragment = warp.fragments[0];
    context.Enter(*fragment.frame);
    const FunctionCode& code = *fragment.frame->code;
    Fault fault;
    fault.kind = FaultKind::kDeadlock;
    fault.message = fmt::format(
        "keeps polling memory, but no thread that could change it is running or can still start{}",
        sampling ? " (only some blocks run when counters are sampled)" : "");
    Report(context, code.code[code.segments[fragment.segment].begin],
           std::countr_zero(fragment.mask), std::move(fault));
    return;
  }
}

/// One CTA after the other; a CTA that polls lets others start or go on, as many as fit the chip.
void Machine::RunAll() {
  const std::uint64_t total = config->grid.Count();
  const std::size_t resident =
      std::size_t{spec->sm_count} * std::max(config->resident_ctas_per_sm, 1U);
  std::vector<Cta*> live;
  std::uint64_t next = 0;
  std::size_t at = 0;
  const auto start = [&] {
    Cta& cta = pool_->Take();
    StartCta(cta, next++);
    live.push_back(&cta);
    at = live.size() - 1;
  };
  start();
  while (!live.empty()) {
    const Stop stop = RunCta(*live[at], kNoSlice);
    if (stop == Stop::kFault) {
      return;
    }
    if (stop == Stop::kExited) {
      pool_->free.push_back(live[at]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      if (live.empty() && next < total) {
        start();
      }
      at = live.empty() ? 0 : at % live.size();
    } else if (stop == Stop::kSpinning) {
      if (next < total && live.size() < resident) {
        start();
        continue;
      }
      if (executed - last_progress > kLivelock) {
        ReportLivelock(*live[at]);
        return;
      }
      at = (at + 1) % live.size();
    }
  }
}

/// CTAs that would share an SM, in turns of a few instructions, through that SM's L1.
bool Machine::RunCohort(const std::vector<std::uint64_t>& ids) {
  std::vector<Cta*> live;
  for (const std::uint64_t id : ids) {
    live.push_back(&pool_->Take());
    StartCta(*live.back(), id);
  }
  while (!live.empty()) {
    for (std::size_t i = 0; i < live.size();) {
      const Stop stop = RunCta(*live[i], kSampleSlice);
      if (stop == Stop::kFault) {
        return false;
      }
      if (stop == Stop::kExited) {
        pool_->free.push_back(live[i]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    if (!live.empty() && executed - last_progress > kLivelock && PollsOnly(live)) {
      ReportLivelock(*live.front());
      return false;
    }
  }
  return true;
}

bool Machine::PollsOnly(const std::vector<Cta*>& live) {
  return std::ranges::all_of(live, [](const Cta* cta) {
    return std::ranges::all_of(cta->warps, [](const Warp& warp) {
      return warp.count == 0 || warp.polled ||
             std::all_of(warp.fragments.begin(), warp.fragments.begin() + warp.count,
                         [](const Fragment& f) { return f.state != FragmentState::kReady; });
    });
  });
}

void Machine::RunSample() {
  const std::uint64_t total = config->grid.Count();
  const std::uint64_t per_sm = std::min<std::uint64_t>(
      std::max(config->resident_ctas_per_sm, 1U), (total + spec->sm_count - 1) / spec->sm_count);
  const std::uint64_t cohorts =
      std::min<std::uint64_t>(std::max(config->cohorts, 1U), (total + per_sm - 1) / per_sm);
  report.ctas_per_sm_assumed = static_cast<std::uint32_t>(per_sm);
  std::set<std::uint64_t> taken;
  const bool all = total <= cohorts * per_sm;
  for (std::uint64_t c = 0; c < cohorts; ++c) {
    std::vector<std::uint64_t> ids;
    const std::uint64_t first = total * c / cohorts;
    for (std::uint64_t r = 0; r < total && ids.size() < per_sm && taken.size() < total; ++r) {
      // Not a stride of sm_count: round grid sizes are multiples of it too often.
      const std::uint64_t id = (first + r * (all ? 1 : spec->sm_count + 1ULL)) % total;
      if (taken.insert(id).second) {
        ids.push_back(id);
      }
    }
    const std::uint64_t on_chip = std::min(total, per_sm * spec->sm_count);
    const std::uint64_t l1 =
        spec->l1_bytes - std::min<std::uint64_t>(config->l1_carveout_bytes, spec->l1_bytes);
    traffic.StartCohort(l1, spec->l2_bytes * ids.size() / std::max<std::uint64_t>(on_chip, 1));
    if (ids.empty() || !RunCohort(ids)) {
      break;
    }
  }
  report.sampled = report.ctas_executed < total;
}

namespace {

/// Executions are counted by segment: every instruction of it gets its segment's count.
std::vector<InstructionCounters> Collect(const FunctionCode& code, const FunctionState& state) {
  std::vector<InstructionCounters> all = state.instructions;
  all.pop_back();  // the exit that the decoder added
  for (std::size_t s = 0; s < code.segments.size(); ++s) {
    for (std::uint32_t i = code.segments[s].begin; i < code.segments[s].end; ++i) {
      const Decoded& d = code.code[i];
      if (d.instruction >= all.size()) {
        continue;
      }
      InstructionCounters& n = all[d.instruction];
      n.warps = state.segments[s].warps;
      n.lanes = state.segments[s].lanes;
      n.lanes_on = d.guard == kNoSlot ? n.lanes : n.lanes_on;
    }
  }
  return all;
}

}  // namespace

void Machine::Finish() {
  report.instructions = Collect(*kernel->functions[0], functions[0]);
  for (std::size_t f = 1; f < functions.size(); ++f) {
    report.called.push_back(CalledFunction{kernel->functions[f]->function->name,
                                           Collect(*kernel->functions[f], functions[f])});
  }
  report.allocations = traffic.Summary();
  report.atomics = traffic.Atomics();
}

LaunchReport Machine::Run() {
  report.kernel = kernel->function->name;
  report.grid = config->grid;
  report.block = config->block;
  report.static_shared = kernel->static_shared;
  report.dynamic_shared = config->dynamic_shared;
  report.ctas = config->grid.Count();
  report.ctas_per_sm_assumed = config->resident_ctas_per_sm;
  if (sampling) {
    RunSample();
  } else {
    RunAll();
  }
  Finish();
  return std::move(report);
}

namespace {

Status CheckGeometry(const LaunchConfig& config, const KernelCode& kernel, const EngineSpec& spec) {
  const Dim3& g = config.grid;
  const Dim3& b = config.block;
  const bool grid_good =
      g.x >= 1 && g.x <= 0x7fffffffU && g.y >= 1 && g.y <= 65535 && g.z >= 1 && g.z <= 65535;
  const bool block_good = b.x >= 1 && b.y >= 1 && b.z >= 1 && b.x <= 1024 && b.y <= 1024 &&
                          b.z <= 64 && b.Count() <= spec.max_threads_per_cta;
  if (!grid_good || !block_good) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("invalid configuration: grid ({},{},{}) of blocks ({},{},{}); a block "
                            "has 1 to {} threads, a grid at most 2^31-1 x 65535 x 65535 blocks",
                            g.x, g.y, g.z, b.x, b.y, b.z, spec.max_threads_per_cta));
  }
  const ptx::Function& f = *kernel.function;
  const std::uint64_t most =
      std::uint64_t{f.max_ntid[0]} * std::max(f.max_ntid[1], 1U) * std::max(f.max_ntid[2], 1U);
  const bool required =
      f.req_ntid[0] == 0 || (f.req_ntid[0] == b.x && std::max(f.req_ntid[1], 1U) == b.y &&
                             std::max(f.req_ntid[2], 1U) == b.z);
  if ((most != 0 && b.Count() > most) || !required) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} was compiled for other block sizes (__launch_bounds__ or reqntid) "
                            "than ({},{},{})",
                            f.name, b.x, b.y, b.z));
  }
  const std::uint64_t shared = kernel.static_shared + config.dynamic_shared;
  if (shared > spec.max_shared_per_cta) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} needs {} bytes of shared memory a block ({} static, {} dynamic); "
                            "the limit is {}",
                            f.name, shared, kernel.static_shared, config.dynamic_shared,
                            spec.max_shared_per_cta));
  }
  return Ok();
}

}  // namespace

Result<LaunchReport> Launch(const Program& program, const LaunchConfig& config,
                            const EngineSpec& spec, DeviceMemory& memory) {
  const auto& implementation = dynamic_cast<const ProgramImpl&>(program);
  const KernelCode* kernel = implementation.Find(config.kernel);
  if (kernel == nullptr) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("no kernel '{}' in {}", config.kernel, program.module().label));
  }
  KP_RETURN_IF_ERROR(CheckGeometry(config, *kernel, spec));
  if (config.parameters.size() < kernel->parameter_bytes) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} takes {} bytes of parameters, {} were passed", config.kernel,
                            kernel->parameter_bytes, config.parameters.size()));
  }
  Machine machine(implementation, *kernel, config, spec, memory);
  return machine.Run();
}

}  // namespace kernelpro::simt
