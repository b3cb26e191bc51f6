// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/emulated_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/protocol/cuda_error.h"

namespace kernelpro::gpu {
namespace {

/// Handles are numbers that no CUDA constant (0, 1, 2: default streams) and no small integer of a
/// confused candidate is equal to.
constexpr std::uint64_t kFirstHandle = 0x4b500001;

}  // namespace

EmulatedGpu::EmulatedGpu(model::GpuSpec spec, std::uint64_t memory_bytes)
    : spec_(std::move(spec)),
      engine_(model::ToEngineSpec(spec_)),
      memory_(std::min(spec_.memory_bytes, memory_bytes)),
      next_handle_(kFirstHandle) {}

void EmulatedGpu::SetResources(std::map<std::string, model::KernelResources> resources) {
  resources_ = std::move(resources);
}

Result<std::uint64_t> EmulatedGpu::AddBuffer(const protocol::AllocateMessage& request,
                                             std::byte* base) {
  KP_ASSIGN_OR_RETURN(const std::uint64_t address,
                      memory_.Allocate(request.bytes, request.name, base));
  if (request.read_only) {
    KP_RETURN_IF_ERROR(memory_.SetReadOnly(address, true));
    inputs_.insert(address);
  }
  return address;
}

Status EmulatedGpu::RemoveBuffer(std::uint64_t address) {
  inputs_.erase(address);
  return memory_.Free(address);
}

void EmulatedGpu::BeginCall(const protocol::BeginCallMessage& call) {
  mode_ = call.mode;
  budget_left_ = call.instruction_budget;
  call_start_us_ = clock_us_;
  // Stray requests were noted between the calls and belong to this one's report.
  protocol::CallReport fresh;
  fresh.stray_requests = report_.stray_requests;
  fresh.malformed = report_.malformed;
  report_ = std::move(fresh);
  recorded_instructions_ = 0;
}

protocol::CallReport EmulatedGpu::EndCall() {
  report_.device_us = clock_us_ - call_start_us_;
  report_.sticky_error = sticky_;
  return std::exchange(report_, {});
}

void EmulatedGpu::NoteError(std::int32_t error, std::string text, bool launch) {
  for (const protocol::ErrorNote& note : report_.errors) {
    if (note.error == error && note.launch == launch) {
      return;
    }
  }
  report_.errors.push_back({error, launch, std::move(text)});
}

protocol::GpuReply EmulatedGpu::Failed(std::int32_t error, std::string text, bool launch) {
  NoteError(error, std::move(text), launch);
  Reply reply;
  reply.error = error;
  return reply;
}

protocol::GpuReply EmulatedGpu::Unsupported(std::int32_t error, std::string text) {
  if (report_.unsupported.empty()) {
    report_.unsupported = text;
  }
  return Failed(error, std::move(text));
}

protocol::GpuReply EmulatedGpu::RefuseStray() {
  ++report_.stray_requests;
  Reply reply;
  reply.error = protocol::kErrorNotPermitted;
  return reply;
}

void EmulatedGpu::NoteMalformed() {
  report_.malformed = true;
}

protocol::GpuReply EmulatedGpu::Handle(const protocol::GpuRequest& request) {
  if (sticky_ != protocol::kSuccess) {
    Reply reply;
    reply.error = sticky_;
    return reply;
  }
  return Dispatch(request);
}

protocol::GpuReply EmulatedGpu::Dispatch(const Request& request) {
  using protocol::GpuOp;
  switch (request.op) {
    case GpuOp::kRegisterModule:
      return RegisterModule(request);
    case GpuOp::kFindFunction:
      return FindFunction(request);
    case GpuOp::kFindVariable:
      return FindVariable(request);
    case GpuOp::kFunctionInfo:
      return FunctionInfo(request);
    case GpuOp::kFunctionSetAttribute:
      return SetFunctionAttribute(request);
    case GpuOp::kOccupancy:
      return Occupancy(request);
    case GpuOp::kLaunch:
      return Launch(request);
    case GpuOp::kMalloc:
      return Malloc(request);
    case GpuOp::kFree:
      return Free(request);
    case GpuOp::kMemset:
      return Memset(request);
    case GpuOp::kWrite:
      return Write(request);
    case GpuOp::kRead:
      return Read(request);
    case GpuOp::kCopy:
      return Copy(request);
    case GpuOp::kMemoryInfo:
      return MemoryInfo();
    case GpuOp::kDeviceInfo:
      return DeviceInfo();
    case GpuOp::kSynchronize:
      return {};
    case GpuOp::kStreamCreate:
    case GpuOp::kStreamDestroy:
    case GpuOp::kStreamInfo:
      return Stream(request);
    case GpuOp::kEventCreate:
    case GpuOp::kEventDestroy:
    case GpuOp::kEventRecord:
    case GpuOp::kEventQuery:
    case GpuOp::kEventElapsed:
      return Event(request);
  }
  Reply reply;
  reply.error = protocol::kErrorUnknown;
  return reply;
}

}  // namespace kernelpro::gpu
