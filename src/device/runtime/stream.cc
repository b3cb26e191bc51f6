// SPDX-License-Identifier: Apache-2.0
// Streams and events. The emulated GPU runs everything in the order in which it was submitted,
// which is one of the orders that CUDA allows: work is done when the call that submitted it
// returns.
#include <bit>

#include "device/protocol/cuda_error.h"
#include "device/runtime/client.h"

using kernelpro::protocol::GpuOp;
using kernelpro::runtime::AddressOf;
using kernelpro::runtime::Ask;
using kernelpro::runtime::AsPointer;
using kernelpro::runtime::CudaError;
using kernelpro::runtime::Event;
using kernelpro::runtime::Report;
using kernelpro::runtime::Stream;
namespace protocol = kernelpro::protocol;

namespace {

CudaError CreateStream(Stream* stream, unsigned flags, int priority) {
  if (stream == nullptr) {
    return Report(protocol::kErrorInvalidValue);
  }
  const auto reply = Ask(GpuOp::kStreamCreate, {flags, static_cast<std::uint32_t>(priority)});
  *stream = AsPointer(reply.Value(0));
  return Report(reply.error);
}

CudaError CreateEvent(Event* event, unsigned flags) {
  if (event == nullptr) {
    return Report(protocol::kErrorInvalidValue);
  }
  const auto reply = Ask(GpuOp::kEventCreate, {flags});
  *event = AsPointer(reply.Value(0));
  return Report(reply.error);
}

/// Everything submitted is done: what is left is to hand out a fault of an earlier kernel.
CudaError Synchronize() {
  return Report(Ask(GpuOp::kSynchronize, {}).error);
}

CudaError CheckStream(Stream stream) {
  return Report(Ask(GpuOp::kStreamInfo, {AddressOf(stream)}).error);
}

}  // namespace

KP_CUDA_API CudaError cudaStreamCreate(Stream* stream) {
  return CreateStream(stream, 0, 0);
}

KP_CUDA_API CudaError cudaStreamCreateWithFlags(Stream* stream, unsigned flags) {
  return CreateStream(stream, flags, 0);
}

KP_CUDA_API CudaError cudaStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
  return CreateStream(stream, flags, priority);
}

KP_CUDA_API CudaError cudaStreamDestroy(Stream stream) {
  return Report(Ask(GpuOp::kStreamDestroy, {AddressOf(stream)}).error);
}

KP_CUDA_API CudaError cudaStreamSynchronize(Stream stream) {
  return CheckStream(stream);
}

KP_CUDA_ALIAS(cudaStreamSynchronize, _ptsz);

KP_CUDA_API CudaError cudaStreamQuery(Stream stream) {
  return CheckStream(stream);
}

KP_CUDA_ALIAS(cudaStreamQuery, _ptsz);

KP_CUDA_API CudaError cudaStreamWaitEvent(Stream stream, Event event, unsigned /*flags*/) {
  const CudaError error = Ask(GpuOp::kEventQuery, {AddressOf(event)}).error;
  return error == protocol::kSuccess ? CheckStream(stream) : Report(error);
}

KP_CUDA_ALIAS(cudaStreamWaitEvent, _ptsz);

KP_CUDA_API CudaError cudaStreamGetFlags(Stream stream, unsigned* flags) {
  const auto reply = Ask(GpuOp::kStreamInfo, {AddressOf(stream)});
  *flags = static_cast<unsigned>(reply.Value(0));
  return Report(reply.error);
}

KP_CUDA_ALIAS(cudaStreamGetFlags, _ptsz);

KP_CUDA_API CudaError cudaStreamGetPriority(Stream stream, int* priority) {
  const auto reply = Ask(GpuOp::kStreamInfo, {AddressOf(stream)});
  *priority = static_cast<int>(static_cast<std::uint32_t>(reply.Value(1)));
  return Report(reply.error);
}

KP_CUDA_ALIAS(cudaStreamGetPriority, _ptsz);

KP_CUDA_API CudaError cudaStreamGetDevice(Stream /*stream*/, int* device) {
  *device = 0;
  return protocol::kSuccess;
}

KP_CUDA_ALIAS(cudaStreamGetDevice, _ptsz);

KP_CUDA_API CudaError cudaStreamIsCapturing(Stream /*stream*/, int* status) {
  *status = 0;  // cudaStreamCaptureStatusNone: there are no graphs here.
  return protocol::kSuccess;
}

KP_CUDA_ALIAS(cudaStreamIsCapturing, _ptsz);

KP_CUDA_API CudaError cudaLaunchHostFunc(Stream stream, void (*function)(void*), void* data) {
  const CudaError error = CheckStream(stream);
  if (error == protocol::kSuccess) {
    function(data);
  }
  return error;
}

KP_CUDA_ALIAS(cudaLaunchHostFunc, _ptsz);

KP_CUDA_API CudaError cudaDeviceSynchronize() {
  return Synchronize();
}

/// Every launch is looked at: a program that marks the ones it means loses nothing.
KP_CUDA_API CudaError cudaProfilerStart() {
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaProfilerStop() {
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaEventCreate(Event* event) {
  return CreateEvent(event, 0);
}

KP_CUDA_API CudaError cudaEventCreateWithFlags(Event* event, unsigned flags) {
  return CreateEvent(event, flags);
}

KP_CUDA_API CudaError cudaEventDestroy(Event event) {
  return Report(Ask(GpuOp::kEventDestroy, {AddressOf(event)}).error);
}

KP_CUDA_API CudaError cudaEventRecord(Event event, Stream stream) {
  return Report(Ask(GpuOp::kEventRecord, {AddressOf(event), AddressOf(stream)}).error);
}

KP_CUDA_ALIAS(cudaEventRecord, _ptsz);

KP_CUDA_API CudaError cudaEventRecordWithFlags(Event event, Stream stream, unsigned /*flags*/) {
  return cudaEventRecord(event, stream);
}

KP_CUDA_ALIAS(cudaEventRecordWithFlags, _ptsz);

KP_CUDA_API CudaError cudaEventSynchronize(Event event) {
  return Report(Ask(GpuOp::kEventQuery, {AddressOf(event)}).error);
}

KP_CUDA_API CudaError cudaEventQuery(Event event) {
  return Report(Ask(GpuOp::kEventQuery, {AddressOf(event)}).error);
}

KP_CUDA_API CudaError cudaEventElapsedTime(float* milliseconds, Event start, Event stop) {
  const auto reply = Ask(GpuOp::kEventElapsed, {AddressOf(start), AddressOf(stop)});
  if (milliseconds != nullptr) {
    *milliseconds = static_cast<float>(std::bit_cast<double>(reply.Value(0)));
  }
  return Report(reply.error);
}
