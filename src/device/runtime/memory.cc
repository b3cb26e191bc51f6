// SPDX-License-Identifier: Apache-2.0
// Allocation, copies, fills, and variables of the device by name.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "device/protocol/cuda_error.h"
#include "device/runtime/client.h"
#include "device/runtime/registry.h"

namespace kernelpro::runtime {
namespace {

using protocol::GpuOp;

/// Alignment of device allocations and of the rows that cudaMallocPitch makes.
constexpr std::size_t kPitch = 512;

/// For cudaMemcpyDefault: only the GPU knows its allocations.
bool IsOnDevice(const void* pointer) {
  const auto reply = Ask(GpuOp::kRead, {AddressOf(pointer), 0});
  return reply.error == protocol::kSuccess;
}

CudaError Write(void* to, const void* from, std::size_t bytes) {
  const auto* source = static_cast<const std::byte*>(from);
  std::uint64_t address = AddressOf(to);
  while (bytes > 0) {
    const std::size_t piece = std::min<std::size_t>(bytes, protocol::kCopyPieceBytes);
    const auto reply = Ask(GpuOp::kWrite, {address}, std::span(source, piece));
    if (reply.error != protocol::kSuccess) {
      return reply.error;
    }
    source += piece;
    address += piece;
    bytes -= piece;
  }
  return protocol::kSuccess;
}

CudaError Read(void* to, const void* from, std::size_t bytes) {
  auto* target = static_cast<std::byte*>(to);
  std::uint64_t address = AddressOf(from);
  while (bytes > 0) {
    const std::size_t piece = std::min<std::size_t>(bytes, protocol::kCopyPieceBytes);
    const auto reply = Ask(GpuOp::kRead, {address, piece});
    if (reply.error != protocol::kSuccess) {
      return reply.error;
    }
    if (reply.bytes.size() != piece) {
      return protocol::kErrorUnknown;
    }
    std::memcpy(target, reply.bytes.data(), piece);
    target += piece;
    address += piece;
    bytes -= piece;
  }
  return protocol::kSuccess;
}

CopyKind Resolve(CopyKind kind, const void* to, const void* from) {
  if (kind != CopyKind::kDefault) {
    return kind;
  }
  const bool to_device = IsOnDevice(to);
  const bool from_device = IsOnDevice(from);
  if (to_device) {
    return from_device ? CopyKind::kDeviceToDevice : CopyKind::kHostToDevice;
  }
  return from_device ? CopyKind::kDeviceToHost : CopyKind::kHostToHost;
}

CudaError Copy(void* to, const void* from, std::size_t bytes, CopyKind kind) {
  if (bytes == 0) {
    return protocol::kSuccess;
  }
  switch (Resolve(kind, to, from)) {
    case CopyKind::kHostToHost:
      std::memmove(to, from, bytes);
      return protocol::kSuccess;
    case CopyKind::kHostToDevice:
      return Write(to, from, bytes);
    case CopyKind::kDeviceToHost:
      return Read(to, from, bytes);
    case CopyKind::kDeviceToDevice:
      return Ask(GpuOp::kCopy, {AddressOf(to), AddressOf(from), bytes}).error;
    default:
      return protocol::kErrorInvalidMemcpyDirection;
  }
}

struct Rows {
  std::size_t width, height;
};

CudaError Copy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                 Rows rows, CopyKind kind) {
  if (rows.width > to_pitch || rows.width > from_pitch) {
    return protocol::kErrorInvalidPitchValue;
  }
  for (std::size_t row = 0; row < rows.height; ++row) {
    const CudaError error =
        Copy(static_cast<std::byte*>(to) + row * to_pitch,
             static_cast<const std::byte*>(from) + row * from_pitch, rows.width, kind);
    if (error != protocol::kSuccess) {
      return error;
    }
  }
  return protocol::kSuccess;
}

CudaError Fill(void* to, int value, std::size_t bytes) {
  if (bytes == 0) {
    return protocol::kSuccess;
  }
  return Ask(GpuOp::kMemset, {AddressOf(to), static_cast<std::uint8_t>(value), bytes}).error;
}

CudaError Allocate(void** pointer, std::size_t bytes) {
  if (pointer == nullptr) {
    return protocol::kErrorInvalidValue;
  }
  *pointer = nullptr;
  if (bytes == 0) {
    return protocol::kSuccess;
  }
  const auto reply = Ask(GpuOp::kMalloc, {bytes});
  *pointer = AsPointer(reply.Value(0));
  return reply.error;
}

CudaError Release(void* pointer) {
  return pointer == nullptr ? protocol::kSuccess : Ask(GpuOp::kFree, {AddressOf(pointer)}).error;
}

CudaError AllocateHost(void** pointer, std::size_t bytes) {
  if (pointer == nullptr) {
    return protocol::kErrorInvalidValue;
  }
  *pointer = std::calloc(1, std::max<std::size_t>(bytes, 1));
  return *pointer == nullptr ? protocol::kErrorMemoryAllocation : protocol::kSuccess;
}

/// [offset, offset + bytes) of a device variable; nullptr with *error set otherwise.
void* VariablePlace(const void* symbol, std::size_t offset, std::size_t bytes, CudaError* error) {
  const HostVariable* const variable = Registry::Get().FindVariable(symbol);
  if (variable == nullptr) {
    *error = protocol::kErrorInvalidSymbol;
    return nullptr;
  }
  *error = variable->error;
  if (variable->error == protocol::kSuccess &&
      (offset > variable->bytes || bytes > variable->bytes - offset)) {
    *error = protocol::kErrorInvalidValue;
  }
  return *error == protocol::kSuccess ? AsPointer(variable->address + offset) : nullptr;
}

CudaError CopyToVariable(const void* symbol, const void* from, std::size_t bytes,
                         std::size_t offset, CopyKind kind) {
  CudaError error = protocol::kSuccess;
  void* const place = VariablePlace(symbol, offset, bytes, &error);
  if (place == nullptr) {
    return error;
  }
  return Copy(place, from, bytes, kind);
}

CudaError CopyFromVariable(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                           CopyKind kind) {
  CudaError error = protocol::kSuccess;
  const void* const place = VariablePlace(symbol, offset, bytes, &error);
  if (place == nullptr) {
    return error;
  }
  return Copy(to, place, bytes, kind);
}

}  // namespace
}  // namespace kernelpro::runtime

using kernelpro::runtime::Ask;
using kernelpro::runtime::CopyKind;
using kernelpro::runtime::CudaError;
using kernelpro::runtime::Report;
using kernelpro::runtime::Stream;
namespace protocol = kernelpro::protocol;
namespace runtime = kernelpro::runtime;

KP_CUDA_API CudaError cudaMalloc(void** pointer, std::size_t bytes) {
  return Report(runtime::Allocate(pointer, bytes));
}

KP_CUDA_API CudaError cudaMallocAsync(void** pointer, std::size_t bytes, Stream /*stream*/) {
  return Report(runtime::Allocate(pointer, bytes));
}

KP_CUDA_ALIAS(cudaMallocAsync, _ptsz);

KP_CUDA_API CudaError cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width,
                                      std::size_t height) {
  if (pitch == nullptr || width > SIZE_MAX - runtime::kPitch) {
    return Report(protocol::kErrorInvalidValue);
  }
  *pitch = (width + runtime::kPitch - 1) / runtime::kPitch * runtime::kPitch;
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(*pitch, height, &bytes)) {
    return Report(protocol::kErrorMemoryAllocation);
  }
  return Report(runtime::Allocate(pointer, bytes));
}

KP_CUDA_API CudaError cudaFree(void* pointer) {
  return Report(runtime::Release(pointer));
}

KP_CUDA_API CudaError cudaFreeAsync(void* pointer, Stream /*stream*/) {
  return Report(runtime::Release(pointer));
}

KP_CUDA_ALIAS(cudaFreeAsync, _ptsz);

KP_CUDA_API CudaError cudaMallocHost(void** pointer, std::size_t bytes) {
  return Report(runtime::AllocateHost(pointer, bytes));
}

KP_CUDA_API CudaError cudaHostAlloc(void** pointer, std::size_t bytes, unsigned /*flags*/) {
  return Report(runtime::AllocateHost(pointer, bytes));
}

KP_CUDA_API CudaError cudaFreeHost(void* pointer) {
  std::free(pointer);
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaMemcpy(void* to, const void* from, std::size_t bytes, CopyKind kind) {
  return Report(runtime::Copy(to, from, bytes, kind));
}

KP_CUDA_ALIAS(cudaMemcpy, _ptds);

KP_CUDA_API CudaError cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, CopyKind kind,
                                      Stream /*stream*/) {
  return Report(runtime::Copy(to, from, bytes, kind));
}

KP_CUDA_ALIAS(cudaMemcpyAsync, _ptsz);

KP_CUDA_API CudaError cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from,
                                   std::size_t from_pitch, std::size_t width, std::size_t height,
                                   CopyKind kind) {
  return Report(runtime::Copy2D(to, to_pitch, from, from_pitch, {width, height}, kind));
}

KP_CUDA_ALIAS(cudaMemcpy2D, _ptds);

KP_CUDA_API CudaError cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                        std::size_t from_pitch, std::size_t width,
                                        std::size_t height, CopyKind kind, Stream /*stream*/) {
  return Report(runtime::Copy2D(to, to_pitch, from, from_pitch, {width, height}, kind));
}

KP_CUDA_ALIAS(cudaMemcpy2DAsync, _ptsz);

KP_CUDA_API CudaError cudaMemset(void* to, int value, std::size_t bytes) {
  return Report(runtime::Fill(to, value, bytes));
}

KP_CUDA_ALIAS(cudaMemset, _ptds);

KP_CUDA_API CudaError cudaMemsetAsync(void* to, int value, std::size_t bytes, Stream /*stream*/) {
  return Report(runtime::Fill(to, value, bytes));
}

KP_CUDA_ALIAS(cudaMemsetAsync, _ptsz);

KP_CUDA_API CudaError cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width,
                                   std::size_t height) {
  if (width > pitch) {
    return Report(protocol::kErrorInvalidValue);
  }
  CudaError error = protocol::kSuccess;
  for (std::size_t row = 0; row < height && error == protocol::kSuccess; ++row) {
    error = runtime::Fill(static_cast<std::byte*>(to) + row * pitch, value, width);
  }
  return Report(error);
}

KP_CUDA_ALIAS(cudaMemset2D, _ptds);

KP_CUDA_API CudaError cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                                        std::size_t height, Stream /*stream*/) {
  return cudaMemset2D(to, pitch, value, width, height);
}

KP_CUDA_ALIAS(cudaMemset2DAsync, _ptsz);

KP_CUDA_API CudaError cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes,
                                         std::size_t offset, CopyKind kind) {
  return Report(runtime::CopyToVariable(symbol, from, bytes, offset, kind));
}

KP_CUDA_ALIAS(cudaMemcpyToSymbol, _ptds);

KP_CUDA_API CudaError cudaMemcpyToSymbolAsync(const void* symbol, const void* from,
                                              std::size_t bytes, std::size_t offset, CopyKind kind,
                                              Stream /*stream*/) {
  return Report(runtime::CopyToVariable(symbol, from, bytes, offset, kind));
}

KP_CUDA_ALIAS(cudaMemcpyToSymbolAsync, _ptsz);

KP_CUDA_API CudaError cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes,
                                           std::size_t offset, CopyKind kind) {
  return Report(runtime::CopyFromVariable(to, symbol, bytes, offset, kind));
}

KP_CUDA_ALIAS(cudaMemcpyFromSymbol, _ptds);

KP_CUDA_API CudaError cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes,
                                                std::size_t offset, CopyKind kind,
                                                Stream /*stream*/) {
  return Report(runtime::CopyFromVariable(to, symbol, bytes, offset, kind));
}

KP_CUDA_ALIAS(cudaMemcpyFromSymbolAsync, _ptsz);

KP_CUDA_API CudaError cudaGetSymbolAddress(void** pointer, const void* symbol) {
  CudaError error = protocol::kSuccess;
  *pointer = runtime::VariablePlace(symbol, 0, 0, &error);
  return Report(error);
}

KP_CUDA_API CudaError cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  const auto* const variable = runtime::Registry::Get().FindVariable(symbol);
  if (variable == nullptr) {
    return Report(protocol::kErrorInvalidSymbol);
  }
  *bytes = variable->bytes;
  return Report(variable->error);
}

KP_CUDA_API CudaError cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const auto reply = Ask(protocol::GpuOp::kMemoryInfo, {});
  if (free_bytes != nullptr) {
    *free_bytes = reply.Value(0);
  }
  if (total_bytes != nullptr) {
    *total_bytes = reply.Value(1);
  }
  return Report(reply.error);
}
