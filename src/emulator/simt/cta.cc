// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "emulator/simt/machine.h"
#include "emulator/simt/race.h"

/// Contexts of CTAs: registers, shared and local memory, and the vectors that are constant while a
/// CTA runs.
namespace kernelpro::simt {
namespace {

constexpr std::size_t kBlockAlignment = 128;

template <class T>
void Splat(std::byte* slot, T value) {
  for (int i = 0; i < kWarpSize; ++i) {
    std::memcpy(slot + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof value);
  }
}

void SplatBits(std::byte* slot, std::uint64_t bits, bool is_64) {
  if (is_64) {
    Splat(slot, bits);
  } else {
    Splat(slot, static_cast<std::uint32_t>(bits));
  }
}

std::uint64_t ParameterBits(const std::vector<std::byte>& parameters, const ConstantSlot& c) {
  std::uint64_t bits = 0;
  if (c.bits + c.width <= parameters.size()) {
    std::memcpy(&bits, parameters.data() + c.bits, c.width);
  }
  if (c.sign_extend && c.width < 8) {
    const unsigned shift = 64U - c.width * 8U;
    bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
  }
  return bits;
}

/// Specials that are the same in every lane of a CTA.
bool UniformSpecial(const Machine& machine, const Cta& cta, const Warp& warp, ptx::Special special,
                    std::uint64_t* value) {
  using ptx::Special;
  const LaunchConfig& config = *machine.config;
  const std::uint32_t warps = static_cast<std::uint32_t>(cta.warps.size());
  switch (special) {
    case Special::kNtidX:
      *value = config.block.x;
      return true;
    case Special::kNtidY:
      *value = config.block.y;
      return true;
    case Special::kNtidZ:
      *value = config.block.z;
      return true;
    case Special::kCtaidX:
      *value = cta.id.x;
      return true;
    case Special::kCtaidY:
      *value = cta.id.y;
      return true;
    case Special::kCtaidZ:
      *value = cta.id.z;
      return true;
    case Special::kNctaidX:
      *value = config.grid.x;
      return true;
    case Special::kNctaidY:
      *value = config.grid.y;
      return true;
    case Special::kNctaidZ:
      *value = config.grid.z;
      return true;
    case Special::kWarpId:
      *value = warp.index;
      return true;
    case Special::kNwarpId:
      *value = warps;
      return true;
    case Special::kSmId:
      *value = cta.linear % machine.spec->sm_count;
      return true;
    case Special::kNsmId:
      *value = machine.spec->sm_count;
      return true;
    case Special::kGridId:
      *value = 0;
      return true;
    case Special::kDynamicSmemSize:
      *value = config.dynamic_shared;
      return true;
    case Special::kTotalSmemSize:
      *value = machine.kernel->static_shared + config.dynamic_shared;
      return true;
    default:
      return false;
  }
}

std::uint32_t LaneSpecial(const Machine& machine, const Warp& warp, ptx::Special special,
                          std::uint32_t lane) {
  using ptx::Special;
  const Dim3& block = machine.config->block;
  const std::uint32_t thread = warp.index * kWarpSize + lane;
  const std::uint32_t bit = 1U << lane;
  switch (special) {
    case Special::kTidX:
      return thread % block.x;
    case Special::kTidY:
      return thread / block.x % block.y;
    case Special::kTidZ:
      return thread / block.x / block.y;
    case Special::kLanemaskEq:
      return bit;
    case Special::kLanemaskLe:
      return bit | (bit - 1);
    case Special::kLanemaskLt:
      return bit - 1;
    case Special::kLanemaskGe:
      return ~(bit - 1);
    case Special::kLanemaskGt:
      return ~(bit | (bit - 1));
    default:
      return lane;
  }
}

void FillSpecial(const Machine& machine, const Cta& cta, const Warp& warp, const ConstantSlot& c,
                 std::byte* slot) {
  std::uint64_t value = 0;
  if (UniformSpecial(machine, cta, warp, c.special, &value)) {
    SplatBits(slot, value, c.is_64);
    return;
  }
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const std::uint64_t bits = LaneSpecial(machine, warp, c.special, lane);
    std::memcpy(slot + std::size_t{lane} * (c.is_64 ? 8U : 4U), &bits, c.is_64 ? 8 : 4);
  }
}

bool ChangesWithCta(const ConstantSlot& c) {
  using ptx::Special;
  return c.kind == ConstantSlot::Kind::kSpecial &&
         (c.special == Special::kCtaidX || c.special == Special::kCtaidY ||
          c.special == Special::kCtaidZ || c.special == Special::kSmId);
}

}  // namespace

std::byte* AlignedBlock::Reserve(std::size_t bytes) {
  if (bytes > bytes_ || data_ == nullptr) {
    storage_ = std::make_unique<std::byte[]>(bytes + kBlockAlignment);
    void* start = storage_.get();
    std::size_t space = bytes + kBlockAlignment;
    data_ = static_cast<std::byte*>(std::align(kBlockAlignment, bytes, start, space));
    bytes_ = bytes;
  }
  return data_;
}

void Machine::FillConstants(Cta& cta, Warp& warp, Frame& frame) {
  const bool again = frame.constants_filled;
  for (const ConstantSlot& c : frame.code->constants) {
    if (again && !ChangesWithCta(c)) {
      continue;
    }
    std::byte* const slot = frame.registers + c.slot;
    switch (c.kind) {
      case ConstantSlot::Kind::kBits:
        SplatBits(slot, c.bits, c.is_64);
        break;
      case ConstantSlot::Kind::kPredicate: {
        const auto lanes = static_cast<LaneMask>(c.bits);
        std::memcpy(slot, &lanes, sizeof lanes);
        break;
      }
      case ConstantSlot::Kind::kParameter:
        SplatBits(slot, ParameterBits(config->parameters, c), c.is_64);
        break;
      case ConstantSlot::Kind::kSpecial:
        FillSpecial(*this, cta, warp, c, slot);
        break;
      case ConstantSlot::Kind::kLocal:
        SplatBits(slot, frame.local_base + c.bits, c.is_64);
        break;
    }
  }
  frame.constants_filled = true;
}

/// Local memory of a thread: what the kernel and its callees need, more when they may recurse.
static std::uint64_t LocalBytes(const KernelCode& kernel) {
  std::uint64_t bytes = 0;
  for (const auto& function : kernel.functions) {
    bytes += function->local_bytes;
  }
  const bool calls = kernel.functions.size() > 1;
  constexpr std::uint64_t kStack = 1024;  // CUDA's default cudaLimitStackSize
  return calls && bytes != 0 ? std::max(bytes, bytes - kernel.functions[0]->local_bytes + kStack)
                             : bytes;
}

void Machine::PrepareCta(Cta& cta) {
  const std::uint64_t threads = config->block.Count();
  const std::size_t warps = (threads + kWarpSize - 1) / kWarpSize;
  const FunctionCode& code = *kernel->functions[0];
  cta.warps.resize(warps);
  std::byte* const registers = cta.registers.Reserve(warps * std::size_t{code.block_bytes});
  cta.shared_bytes = kernel->static_shared + config->dynamic_shared;
  (void)cta.shared.Reserve(cta.shared_bytes);
  cta.local_bytes = LocalBytes(*kernel);
  (void)cta.local.Reserve(cta.local_bytes * warps * kWarpSize);
  for (std::uint32_t w = 0; w < warps; ++w) {
    Warp& warp = cta.warps[w];
    warp.cta = &cta;
    warp.index = w;
    const std::uint64_t left = threads - std::uint64_t{w} * kWarpSize;
    warp.lanes = left >= kWarpSize ? kAllLanes : (1U << left) - 1;
    warp.root.code = &code;
    warp.root.state = &functions[0];
    warp.root.registers = registers + w * std::size_t{code.block_bytes};
  }
  if (checking) {
    cta.race = std::make_unique<RaceDetector>(static_cast<std::uint32_t>(warps), cta.shared_bytes,
                                              kernel->shared_granule);
  }
}

void Machine::StartCta(Cta& cta, std::uint64_t linear) {
  cta.linear = linear;
  const Dim3& grid = config->grid;
  cta.id = Dim3{static_cast<std::uint32_t>(linear % grid.x),
                static_cast<std::uint32_t>(linear / grid.x % grid.y),
                static_cast<std::uint32_t>(linear / grid.x / grid.y)};
  if (cta.warps.empty()) {
    PrepareCta(cta);
  }
  const FunctionCode& code = *kernel->functions[0];
  cta.barriers = {};
  cta.arrivals.clear();
  cta.live_threads = static_cast<std::uint32_t>(config->block.Count());
  // A GPU leaves in shared memory what other blocks left there: never the zeros that a forgotten
  // initialisation needs. All ones read as a NaN and as -1.
  std::memset(cta.shared.data(), 0xff, cta.shared_bytes);
  std::memset(cta.local.data(), 0, cta.local_bytes * cta.warps.size() * kWarpSize);
  for (Warp& warp : cta.warps) {
    warp.live = warp.lanes;
    warp.root.live = warp.lanes;
    warp.count = 1;
    warp.current = 0;
    warp.fragments[0] = Fragment{.frame = &warp.root, .mask = warp.lanes};
    warp.crowded_back_edges = 0;
    warp.favoured = 0;
    warp.regroup = false;
    warp.last_segment = 0;
    warp.copies.Clear();
    for (const auto& frame : warp.frames) {
      frame->live = 0;
      frame->constants_filled = false;
    }
    std::memset(warp.root.registers, 0, code.cleared_bytes);
    FillConstants(cta, warp, warp.root);
  }
  if (cta.race != nullptr) {
    cta.race->StartCta();
  }
  ++report.ctas_executed;
}

}  // namespace kernelpro::simt
