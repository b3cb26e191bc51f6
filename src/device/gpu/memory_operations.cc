// SPDX-License-Identifier: Apache-2.0
// Allocation, copies and fills on the emulated GPU. Their time is modelled by bytes over bandwidth
// plus the launch overhead of the GPU's data file.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "device/gpu/emulated_gpu.h"
#include "device/protocol/cuda_error.h"

namespace kernelpro::gpu {
namespace {

/// PCIe 5.0 x16 carries 32 GT/s x 16 lanes x 128/130 / 8 bits = 63 GB/s each way: an upper bound.
constexpr double kHostLinkBytesPerSecond = 63.0e9;
constexpr double kMicrosecondsPerSecond = 1e6;
/// cudaMalloc hands out multiples of this.
constexpr std::size_t kMostAllocations = 65536;

}  // namespace

void EmulatedGpu::SpendOnBytes(double bytes, double bytes_per_second, bool starts) {
  clock_us_ += bytes / bytes_per_second * kMicrosecondsPerSecond;
  clock_us_ += starts ? spec_.launch_overhead_us : 0;
}

protocol::GpuReply EmulatedGpu::Malloc(const Request& request) {
  const std::uint64_t bytes = request.Value(0);
  if (candidate_allocations_.size() >= kMostAllocations) {
    report_.out_of_memory = true;
    return Failed(protocol::kErrorMemoryAllocation,
                  fmt::format("more than {} allocations are alive", kMostAllocations));
  }
  const auto address =
      bytes == 0 ? Result<std::uint64_t>(Fail(ErrorCode::kInvalidArgument, "no bytes asked for"))
                 : memory_.Allocate(bytes, fmt::format("cudaMalloc #{}", next_handle_++));
  if (!address) {
    report_.out_of_memory = true;
    return Failed(
        protocol::kErrorMemoryAllocation,
        fmt::format("cudaMalloc of {} bytes refused: {}", bytes, address.error().message));
  }
  candidate_allocations_[*address] = bytes;
  Reply reply;
  reply.values = {*address};
  return reply;
}

protocol::GpuReply EmulatedGpu::Free(const Request& request) {
  const std::uint64_t address = request.Value(0);
  // Only what the candidate allocated itself: the referee's buffers are not its to free.
  if (candidate_allocations_.erase(address) == 0 || !memory_.Free(address)) {
    return Failed(protocol::kErrorInvalidValue,
                  fmt::format("cudaFree of {:#x}, which cudaMalloc did not return", address));
  }
  return {};
}

std::span<std::byte> EmulatedGpu::Writable(std::uint64_t address, std::uint64_t bytes,
                                           std::string_view doing, std::int32_t* error) {
  auto view = memory_.View(address, bytes);
  if (!view) {
    *error = protocol::kErrorInvalidValue;
    NoteError(*error, fmt::format("{}: {}", doing, view.error().message));
    return {};
  }
  const simt::Allocation* const allocation = memory_.Find(address);
  // Constant memory is read-only for kernels alone; inputs are for everybody.
  if (allocation != nullptr && inputs_.contains(allocation->address)) {
    simt::Fault fault;
    fault.kind = simt::FaultKind::kWriteToReadOnly;
    fault.message =
        fmt::format("{} writes to {}, an input that must not be changed.", doing, allocation->name);
    fault.address = address;
    fault.allocation = fmt::format("{} + {}", allocation->name, address - allocation->address);
    *error = sticky_ = protocol::kErrorIllegalAddress;
    NoteError(*error, fault.message);
    report_.faults.push_back(std::move(fault));
    return {};
  }
  *error = protocol::kSuccess;
  return *view;
}

protocol::GpuReply EmulatedGpu::Memset(const Request& request) {
  Reply reply;
  const auto target = Writable(request.Value(0), request.Value(2), "cudaMemset", &reply.error);
  if (reply.error == protocol::kSuccess) {
    std::memset(target.data(), static_cast<int>(request.Value(1) & 0xffU), target.size());
    SpendOnBytes(static_cast<double>(target.size()), spec_.dram_bytes_per_s, true);
  }
  return reply;
}

protocol::GpuReply EmulatedGpu::Write(const Request& request) {
  Reply reply;
  const std::uint64_t address = request.Value(0);
  const auto target =
      Writable(address, request.bytes.size(), "cudaMemcpy from the host", &reply.error);
  if (reply.error == protocol::kSuccess && !target.empty()) {
    std::memcpy(target.data(), request.bytes.data(), target.size());
    report_.host_to_device_bytes += target.size();
    SpendOnBytes(static_cast<double>(target.size()), kHostLinkBytesPerSecond,
                 address != next_contiguous_);
    next_contiguous_ = address + target.size();
  }
  return reply;
}

protocol::GpuReply EmulatedGpu::Read(const Request& request) {
  const std::uint64_t address = request.Value(0);
  const std::uint64_t bytes = request.Value(1);
  Reply reply;
  if (bytes > protocol::kCopyPieceBytes) {
    return Failed(protocol::kErrorInvalidValue, "a copy came in too large a piece");
  }
  const auto source = memory_.View(address, bytes);
  if (!source) {
    reply.error = protocol::kErrorInvalidValue;
    if (bytes != 0) {  // An empty read only asks whether the address is ours.
      NoteError(reply.error, "cudaMemcpy to the host: " + source.error().message);
    }
    return reply;
  }
  if (bytes != 0) {
    reply.bytes.assign(source->begin(), source->end());
    report_.device_to_host_bytes += bytes;
    SpendOnBytes(static_cast<double>(bytes), kHostLinkBytesPerSecond, address != next_contiguous_);
    next_contiguous_ = address + bytes;
  }
  return reply;
}

protocol::GpuReply EmulatedGpu::Copy(const Request& request) {
  const std::uint64_t bytes = request.Value(2);
  const auto source = memory_.View(request.Value(1), bytes);
  if (!source) {
    return Failed(protocol::kErrorInvalidValue,
                  "cudaMemcpy on the device: " + source.error().message);
  }
  Reply reply;
  const auto target = Writable(request.Value(0), bytes, "cudaMemcpy on the device", &reply.error);
  if (reply.error == protocol::kSuccess) {
    std::memmove(target.data(), source->data(), target.size());
    constexpr double kReadAndWrite = 2;
    SpendOnBytes(kReadAndWrite * static_cast<double>(bytes), spec_.dram_bytes_per_s, true);
  }
  return reply;
}

protocol::GpuReply EmulatedGpu::MemoryInfo() const {
  Reply reply;
  reply.values = {memory_.capacity_bytes() - memory_.used_bytes(), memory_.capacity_bytes()};
  return reply;
}

}  // namespace kernelpro::gpu
