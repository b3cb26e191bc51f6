// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>

#include "device/device.h"
#include "device/protocol/control.h"

/// The fields of every struct that crosses between referee and emulated GPU, once for both
/// directions: a field that is listed here is written and read, in this order.
namespace kernelpro::protocol {

template <class T, class Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

auto Members(Is<simt::Dim3> auto& v) {
  return std::tie(v.x, v.y, v.z);
}

auto Members(Is<simt::InstructionCounters> auto& v) {
  return std::tie(v.warps, v.lanes, v.lanes_on, v.requests, v.sectors, v.ideal_sectors, v.lines,
                  v.l1_hit_sectors, v.wavefronts, v.ideal_wavefronts, v.bytes, v.address_bits,
                  v.divergent);
}

auto Members(Is<simt::AllocationTraffic> auto& v) {
  return std::tie(v.name, v.total_sectors, v.unique_read, v.unique_write, v.unique_read_granules,
                  v.miss_read, v.miss_write);
}

auto Members(Is<simt::AtomicTraffic> auto& v) {
  return std::tie(v.operations, v.hottest_sector_operations);
}

auto Members(Is<simt::Fault> auto& v) {
  return std::tie(v.kind, v.fatal, v.message, v.kernel, v.cta, v.thread, v.instruction, v.file,
                  v.line, v.ptx_line, v.address, v.allocation, v.count);
}

auto Members(Is<simt::LaunchReport> auto& v) {
  return std::tie(v.kernel, v.grid, v.block, v.static_shared, v.dynamic_shared, v.ctas,
                  v.ctas_executed, v.ctas_per_sm_assumed, v.sampled, v.instructions, v.allocations,
                  v.atomics, v.barriers, v.faults, v.printed);
}

auto Members(Is<model::KernelResources> auto& v) {
  return std::tie(v.registers_per_thread, v.static_shared_bytes, v.local_bytes_per_thread,
                  v.spill_store_bytes, v.spill_load_bytes);
}

auto Members(Is<model::Occupancy> auto& v) {
  return std::tie(v.ctas_per_sm, v.warps_per_sm, v.theoretical, v.limit_warps, v.limit_registers,
                  v.limit_shared, v.limit_ctas);
}

auto Members(Is<model::Bound> auto& v) {
  return std::tie(v.name, v.cycles, v.share);
}

auto Members(Is<model::ModelledTime> auto& v) {
  return std::tie(v.time_us, v.registers_estimated, v.bounds, v.occupancy, v.dram_read_bytes,
                  v.dram_write_bytes, v.l2_bytes, v.issued_warp_instructions,
                  v.shared_load_wavefronts, v.shared_store_wavefronts);
}

auto Members(Is<EmulatedLaunch::Instruction> auto& v) {
  return std::tie(v.opcode, v.file, v.line);
}

auto Members(Is<EmulatedLaunch> auto& v) {
  return std::tie(v.report, v.instructions, v.files, v.time, v.resources, v.resources_estimated);
}

auto Members(Is<OpenMessage> auto& v) {
  return std::tie(v.kernels);
}

auto Members(Is<AllocateMessage> auto& v) {
  return std::tie(v.name, v.bytes, v.mapping_bytes, v.offset, v.read_only);
}

auto Members(Is<FreeMessage> auto& v) {
  return std::tie(v.address);
}

auto Members(Is<BeginCallMessage> auto& v) {
  return std::tie(v.mode, v.instruction_budget);
}

auto Members(Is<EndCallMessage> auto& /*v*/) {
  return std::tie();
}

auto Members(Is<Answer> auto& v) {
  return std::tie(v.address, v.error);
}

auto Members(Is<ErrorNote> auto& v) {
  return std::tie(v.error, v.launch, v.text);
}

auto Members(Is<CallReport> auto& v) {
  return std::tie(v.launches, v.launches_left_out, v.faults, v.device_us, v.errors, v.unsupported,
                  v.sticky_error, v.out_of_memory, v.stray_requests, v.malformed,
                  v.host_to_device_bytes, v.device_to_host_bytes);
}

}  // namespace kernelpro::protocol
