// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The part of the CUDA 13 runtime's binary interface that a candidate built by nvcc uses: sizes,
/// offsets and enumerators. Declared here so that neither this library nor its users need the
/// toolkit; session_test.cc compiles against the real headers and so checks every figure used.
namespace kernelpro::runtime {

using CudaError = std::int32_t;  ///< cudaError_t
using Stream = void*;            ///< cudaStream_t
using Event = void*;             ///< cudaEvent_t
using Kernel = void*;            ///< cudaKernel_t

inline constexpr int kRuntimeVersion = 13000;

struct Dim3 {
  std::uint32_t x, y, z;
};

struct LaunchAttribute {
  std::uint32_t id;
  std::byte padding[4];
  std::byte value[64];
};

static_assert(sizeof(LaunchAttribute) == 72);

/// cudaLaunchAttributeID values that change nothing here, or ask for what is not there.
inline constexpr std::uint32_t kAttributeIgnore = 0;
inline constexpr std::uint32_t kAttributePriority = 8;

struct LaunchConfiguration {
  Dim3 grid;
  Dim3 block;
  std::size_t dynamic_shared;
  Stream stream;
  const LaunchAttribute* attributes;
  std::uint32_t attribute_count;
};

static_assert(sizeof(LaunchConfiguration) == 56);

/// cudaFuncAttributes.
struct FunctionAttributes {
  std::size_t static_shared;
  std::size_t constant_bytes;
  std::size_t local_bytes;
  int max_threads;
  int registers;
  int ptx_version;
  int binary_version;
  int cache_mode_ca;
  int max_dynamic_shared;
  int preferred_carveout;
  int cluster_must_be_set;
  std::byte rest[144 - 56];
};

static_assert(sizeof(FunctionAttributes) == 144);

/// cudaMemcpyKind.
enum class CopyKind : std::int32_t {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kDefault = 4,
};

/// What __cudaRegisterFatBinary gets: fatbinary_section.h of the toolkit.
struct FatBinaryWrapper {
  std::int32_t magic;
  std::int32_t version;
  const std::byte* data;
  const void* more;
};

inline constexpr std::int32_t kFatBinaryWrapperMagic = 0x466243b1;

}  // namespace kernelpro::runtime

/// Every function that a candidate may link to.
#define KP_CUDA_API extern "C" __attribute__((visibility("default")))
/// A second name for a per-thread-default-stream build. All streams run in submission order, so
/// both default streams behave alike.
#define KP_CUDA_ALIAS(name, suffix) \
  KP_CUDA_API __attribute__((alias(#name))) decltype(name) name##suffix
