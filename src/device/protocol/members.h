// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>

#include "device/device.h"
#include "device/protocol/control.h"

/// The fields of every struct that crosses between referee and emulated GPU, once for both
/// directions: a field that is listed here is written and read, in this order. Naming every field
/// makes the compiler refuse a struct that has grown a new one.
namespace kernelpro::protocol {

template <class T, class Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

auto Members(Is<simt::Dim3> auto& v) {
  auto& [x, y, z] = v;
  return std::tie(x, y, z);
}

auto Members(Is<simt::InstructionCounters> auto& v) {
  auto& [warps, lanes, lanes_on, requests, sectors, ideal_sectors, lines, l1_hit_sectors,
         wavefronts, ideal_wavefronts, bytes, address_bits, divergent] = v;
  return std::tie(warps, lanes, lanes_on, requests, sectors, ideal_sectors, lines, l1_hit_sectors,
                  wavefronts, ideal_wavefronts, bytes, address_bits, divergent);
}

auto Members(Is<simt::AllocationTraffic> auto& v) {
  auto& [name, total_sectors, unique_read, unique_write, unique_read_granules, miss_read,
         miss_write] = v;
  return std::tie(name, total_sectors, unique_read, unique_write, unique_read_granules, miss_read,
                  miss_write);
}

auto Members(Is<simt::AtomicTraffic> auto& v) {
  auto& [operations, hottest_sector_operations, hottest_sector_requests] = v;
  return std::tie(operations, hottest_sector_operations, hottest_sector_requests);
}

auto Members(Is<simt::Fault> auto& v) {
  auto& [kind, fatal, message, kernel, cta, thread, instruction, file, line, ptx_line, address,
         allocation, count] = v;
  return std::tie(kind, fatal, message, kernel, cta, thread, instruction, file, line, ptx_line,
                  address, allocation, count);
}

auto Members(Is<simt::CalledFunction> auto& v) {
  auto& [name, instructions] = v;
  return std::tie(name, instructions);
}

auto Members(Is<simt::LaunchReport> auto& v) {
  auto& [kernel, grid, block, static_shared, dynamic_shared, ctas, ctas_executed,
         ctas_per_sm_assumed, sampled, instructions, called, allocations, atomics, barriers, faults,
         printed] = v;
  return std::tie(kernel, grid, block, static_shared, dynamic_shared, ctas, ctas_executed,
                  ctas_per_sm_assumed, sampled, instructions, called, allocations, atomics,
                  barriers, faults, printed);
}

auto Members(Is<model::KernelResources> auto& v) {
  auto& [registers_per_thread, static_shared_bytes, local_bytes_per_thread, spill_store_bytes,
         spill_load_bytes] = v;
  return std::tie(registers_per_thread, static_shared_bytes, local_bytes_per_thread,
                  spill_store_bytes, spill_load_bytes);
}

auto Members(Is<model::Occupancy> auto& v) {
  auto& [ctas_per_sm, warps_per_sm, theoretical, limit_warps, limit_registers, limit_shared,
         limit_ctas] = v;
  return std::tie(ctas_per_sm, warps_per_sm, theoretical, limit_warps, limit_registers,
                  limit_shared, limit_ctas);
}

auto Members(Is<model::Bound> auto& v) {
  auto& [name, cycles, share] = v;
  return std::tie(name, cycles, share);
}

auto Members(Is<model::ModelledTime> auto& v) {
  auto& [time_us, registers_estimated, bounds, occupancy, dram_read_bytes, dram_write_bytes,
         l2_bytes, issued_warp_instructions, shared_load_wavefronts, shared_store_wavefronts] = v;
  return std::tie(time_us, registers_estimated, bounds, occupancy, dram_read_bytes,
                  dram_write_bytes, l2_bytes, issued_warp_instructions, shared_load_wavefronts,
                  shared_store_wavefronts);
}

auto Members(Is<EmulatedLaunch::Instruction> auto& v) {
  auto& [opcode, file, line] = v;
  return std::tie(opcode, file, line);
}

auto Members(Is<EmulatedLaunch> auto& v) {
  auto& [report, instructions, files, time, resources, resources_estimated] = v;
  return std::tie(report, instructions, files, time, resources, resources_estimated);
}

auto Members(Is<OpenMessage> auto& v) {
  auto& [kernels] = v;
  return std::tie(kernels);
}

auto Members(Is<AllocateMessage> auto& v) {
  auto& [name, bytes, mapping_bytes, offset, read_only] = v;
  return std::tie(name, bytes, mapping_bytes, offset, read_only);
}

auto Members(Is<FreeMessage> auto& v) {
  auto& [address] = v;
  return std::tie(address);
}

auto Members(Is<BeginCallMessage> auto& v) {
  auto& [mode, instruction_budget] = v;
  return std::tie(mode, instruction_budget);
}

auto Members(Is<EndCallMessage> auto& /*v*/) {
  return std::tie();
}

auto Members(Is<Answer> auto& v) {
  auto& [address, error] = v;
  return std::tie(address, error);
}

auto Members(Is<ErrorNote> auto& v) {
  auto& [error, launch, text] = v;
  return std::tie(error, launch, text);
}

auto Members(Is<CallReport> auto& v) {
  auto& [launches, launches_left_out, faults, device_us, errors, unsupported, sticky_error,
         out_of_memory, stray_requests, malformed, host_to_device_bytes, device_to_host_bytes] = v;
  return std::tie(launches, launches_left_out, faults, device_us, errors, unsupported, sticky_error,
                  out_of_memory, stray_requests, malformed, host_to_device_bytes,
                  device_to_host_bytes);
}

}  // namespace kernelpro::protocol
