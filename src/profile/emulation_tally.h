// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "device/device.h"
#include "emulator/model/model.h"
#include "profile/ptx_opcode.h"

namespace kernelpro {

/// Requests and sectors of one kind of access. `used_bytes` counts at most 32 per sector: lanes
/// that read the same word do not make a sector fuller than full.
struct AccessTally {
  double instructions = 0, requests = 0, sectors = 0, lines = 0, hit_sectors = 0;
  double bytes = 0, used_bytes = 0;
  double wavefronts = 0;  ///< of the shared side of asynchronous copies

  void Add(const simt::InstructionCounters& c, double scale);
};

struct SharedTally {
  double instructions = 0, wavefronts = 0, ideal_wavefronts = 0;

  void Add(const simt::InstructionCounters& c, double scale);
};

/// Sums over instructions, in executions of the whole grid (sampled launches are scaled up).
struct Tally {
  double warps = 0, lanes = 0, lanes_on = 0;
  double branches = 0, divergent = 0, barriers = 0;
  AccessTally load, store, local_load, local_store, async_copy, atomic, reduction;
  SharedTally shared_load, shared_store, shared_atomic;
  std::array<double, 5> width = {};          ///< warp-level memory executions of 8..128 bits
  std::map<OpClass, double> lanes_by_class;  ///< lane-level, predicated on
  double fp64 = 0, double_conversions = 0, double_accesses = 0;  ///< lane-level
  double special_warps = 0;

  void Add(const simt::InstructionCounters& c, const PtxOpcode& op, double scale);
};

/// Everything that the launches of one kernel add up to.
struct KernelTally {
  Tally total;
  std::map<std::pair<std::string, std::uint32_t>, Tally> lines;
  std::map<std::string, double> opcodes;
  bool hits_known = true;  ///< L1 hits are followed in sampled launches only
  double launches = 0;
  double time_us = 0, run_cycles = 0;  ///< run_cycles leave out the fixed launch cost
  std::map<std::string, double> bound_cycles;
  double ctas = 0, dram_read = 0, dram_write = 0, l2_bytes = 0;
  double issued = 0, shared_load_wavefronts = 0, shared_store_wavefronts = 0;
  double atomic_operations = 0, atomic_hottest = 0;
  double occupancy_time = 0;                ///< achieved occupancy x time
  const EmulatedLaunch* longest = nullptr;  ///< launch figures are taken from it

  void Add(const EmulatedLaunch& launch, const model::GpuSpec& spec);
};

}  // namespace kernelpro
