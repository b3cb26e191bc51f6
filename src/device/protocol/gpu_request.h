// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/protocol/frame.h"

/// What the drop-in CUDA runtime in the runner asks of the emulated GPU. Every request has one
/// shape: a few integers and one byte string; so has every answer. Standard library only.
namespace kernelpro::protocol {

/// In brackets the integers, then what the byte string holds; after the arrow the answer's.
enum class GpuOp : std::uint16_t {
  kRegisterModule = 1,    ///< [] fat binary -> [module]
  kFindFunction,          ///< [module] kernel name -> [function, (offset, bytes) per parameter ...]
  kFindVariable,          ///< [module] variable name -> [address, bytes]
  kFunctionInfo,          ///< [function] -> [FunctionFigure ...]
  kFunctionSetAttribute,  ///< [function, attribute, value]
  kOccupancy,             ///< [function, block threads, dynamic shared] -> [CTAs per SM]
  kLaunch,                ///< [LaunchField ...] parameter block
  kMalloc,                ///< [bytes] -> [address]
  kFree,                  ///< [address]
  kMemset,                ///< [address, byte value, bytes]
  kWrite,                 ///< [address] bytes
  kRead,                  ///< [address, bytes] -> bytes
  kCopy,                  ///< [destination, source, bytes]
  kSynchronize,           ///< [] -> the sticky error, if any
  kStreamCreate,          ///< [flags, priority as i32] -> [stream]
  kStreamDestroy,         ///< [stream]
  kStreamInfo,            ///< [stream] -> [flags, priority]
  kEventCreate,           ///< [flags] -> [event]
  kEventDestroy,          ///< [event]
  kEventRecord,           ///< [event, stream]
  kEventQuery,            ///< [event]
  kEventElapsed,          ///< [start, stop] -> [bits of a double: milliseconds]
  kMemoryInfo,            ///< [] -> [free, total]
  kDeviceInfo,            ///< [] -> [DeviceFigure ...] GPU's name
};

enum class LaunchField : std::uint8_t {
  kFunction,
  kGridX,
  kGridY,
  kGridZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kDynamicShared,
  kStream,
  kUnsupportedAttributes,  ///< clusters and the like: refused
  kCount,
};

enum class FunctionFigure : std::uint8_t {
  kStaticShared,
  kConstantBytes,
  kLocalBytes,
  kMaxThreads,
  kRegisters,
  kMaxDynamicShared,
  kPreferredCarveout,
  kPtxVersion,
  kBinaryVersion,
  kCount,
};

enum class DeviceFigure : std::uint8_t {
  kComputeCapability,
  kSmCount,
  kClockKhz,
  kWarpsPerSm,
  kCtasPerSm,
  kRegistersPerSm,
  kSharedPerSm,
  kSharedPerCtaOptIn,
  kSharedReservedPerCta,
  kL2Bytes,
  kMemoryBytes,
  kCount,
};

struct GpuRequest {
  GpuOp op = GpuOp::kSynchronize;
  std::vector<std::uint64_t> values;
  std::vector<std::byte> bytes;

  /// 0 when the request has no such integer.
  [[nodiscard]] std::uint64_t Value(std::size_t index) const {
    return index < values.size() ? values[index] : 0;
  }
};

struct GpuReply {
  std::int32_t error = 0;  ///< cudaError_t
  std::vector<std::uint64_t> values;
  std::vector<std::byte> bytes;

  [[nodiscard]] std::uint64_t Value(std::size_t index) const {
    return index < values.size() ? values[index] : 0;
  }
};

[[nodiscard]] Frame ToFrame(const GpuRequest& request, std::uint64_t sequence);
[[nodiscard]] Frame ToFrame(const GpuReply& reply, const Frame& request);
/// Nothing when it is not a well-formed request. Pure; any frame is safe to pass.
[[nodiscard]] std::optional<GpuRequest> DecodeGpuRequest(const Frame& frame);
[[nodiscard]] std::optional<GpuReply> DecodeGpuReply(const Frame& frame);

}  // namespace kernelpro::protocol
