// SPDX-License-Identifier: Apache-2.0
// Streams and events. Everything runs in the order in which it arrives, so a stream is a name and
// an event a reading of the modelled clock.
#include <bit>

#include "device/gpu/emulated_gpu.h"
#include "device/protocol/cuda_error.h"

namespace kernelpro::gpu {
namespace {

using protocol::GpuOp;

constexpr std::uint64_t kLastDefaultStream = 2;  ///< 0 default, 1 legacy, 2 per thread
constexpr std::size_t kMostHandles = 65536;
constexpr std::uint64_t kEventDisableTiming = 2;
constexpr double kMillisecondsPerMicrosecond = 1e-3;

}  // namespace

bool EmulatedGpu::IsStream(std::uint64_t handle) const {
  return handle <= kLastDefaultStream || streams_.contains(handle);
}

protocol::GpuReply EmulatedGpu::Stream(const Request& request) {
  Reply reply;
  if (request.op == GpuOp::kStreamCreate) {
    if (streams_.size() >= kMostHandles) {
      return Failed(protocol::kErrorMemoryAllocation, "too many streams");
    }
    streams_[next_handle_] = {static_cast<std::uint32_t>(request.Value(0)),
                              static_cast<std::uint32_t>(request.Value(1))};
    reply.values = {next_handle_++};
    return reply;
  }
  const std::uint64_t handle = request.Value(0);
  if (!IsStream(handle) || (request.op == GpuOp::kStreamDestroy && handle <= kLastDefaultStream)) {
    return Failed(protocol::kErrorInvalidResourceHandle, "no such stream");
  }
  if (request.op == GpuOp::kStreamDestroy) {
    streams_.erase(handle);
    return reply;
  }
  const auto found = streams_.find(handle);
  const StreamState state = found == streams_.end() ? StreamState{} : found->second;
  reply.values = {state.flags, state.priority};
  return reply;
}

protocol::GpuReply EmulatedGpu::Event(const Request& request) {
  Reply reply;
  if (request.op == GpuOp::kEventCreate) {
    if (events_.size() >= kMostHandles) {
      return Failed(protocol::kErrorMemoryAllocation, "too many events");
    }
    events_[next_handle_].timing = (request.Value(0) & kEventDisableTiming) == 0;
    reply.values = {next_handle_++};
    return reply;
  }
  const auto event = events_.find(request.Value(0));
  if (event == events_.end()) {
    return Failed(protocol::kErrorInvalidResourceHandle, "no such event");
  }
  if (request.op == GpuOp::kEventDestroy) {
    events_.erase(event);
    return reply;
  }
  if (request.op == GpuOp::kEventRecord) {
    if (!IsStream(request.Value(1))) {
      return Failed(protocol::kErrorInvalidResourceHandle, "no such stream");
    }
    event->second.recorded = true;
    event->second.at_us = clock_us_;
    return reply;
  }
  if (request.op == GpuOp::kEventElapsed) {
    const auto stop = events_.find(request.Value(1));
    if (stop == events_.end() || !event->second.recorded || !stop->second.recorded ||
        !event->second.timing || !stop->second.timing) {
      return Failed(protocol::kErrorInvalidResourceHandle,
                    "cudaEventElapsedTime needs two recorded events with timing");
    }
    const double elapsed_us = stop->second.at_us - event->second.at_us;
    reply.values = {std::bit_cast<std::uint64_t>(elapsed_us * kMillisecondsPerMicrosecond)};
  }
  return reply;
}

protocol::GpuReply EmulatedGpu::DeviceInfo() const {
  using protocol::DeviceFigure;
  Reply reply;
  reply.values.resize(static_cast<std::size_t>(DeviceFigure::kCount));
  const auto set = [&](DeviceFigure which, std::uint64_t value) {
    reply.values[static_cast<std::size_t>(which)] = value;
  };
  constexpr double kHzPerKhz = 1e3;
  set(DeviceFigure::kComputeCapability, spec_.compute_capability);
  set(DeviceFigure::kSmCount, spec_.sm_count);
  set(DeviceFigure::kClockKhz, static_cast<std::uint64_t>(spec_.clock_hz / kHzPerKhz));
  set(DeviceFigure::kWarpsPerSm, spec_.warps_per_sm);
  set(DeviceFigure::kCtasPerSm, spec_.ctas_per_sm);
  set(DeviceFigure::kRegistersPerSm, spec_.registers_per_sm);
  set(DeviceFigure::kSharedPerSm, spec_.shared_per_sm_bytes);
  set(DeviceFigure::kSharedPerCtaOptIn, spec_.shared_per_cta_bytes);
  set(DeviceFigure::kSharedReservedPerCta, spec_.shared_reserved_per_cta_bytes);
  set(DeviceFigure::kL2Bytes, spec_.l2_bytes);
  set(DeviceFigure::kMemoryBytes, memory_.capacity_bytes());
  const auto title = std::as_bytes(std::span(spec_.title.data(), spec_.title.size()));
  reply.bytes.assign(title.begin(), title.end());
  return reply;
}

}  // namespace kernelpro::gpu
