// SPDX-License-Identifier: Apache-2.0
// The one device: its properties, limits and errors.
#include <array>
#include <cstring>
#include <string>

#include "device/protocol/cuda_error.h"
#include "device/runtime/client.h"

using kernelpro::protocol::DeviceFigure;
using kernelpro::protocol::GpuOp;
using kernelpro::runtime::Ask;
using kernelpro::runtime::CudaError;
using kernelpro::runtime::Report;
namespace protocol = kernelpro::protocol;

namespace {

constexpr int kMaxThreadsPerBlock = 1024;
constexpr int kMaxGridX = 2147483647;
constexpr int kMaxGridYz = 65535;
constexpr int kMaxBlockZ = 64;
constexpr int kConstantBytes = 65536;
constexpr int kSharedPerBlock = 48 * 1024;  ///< without opting in
constexpr int kWarpSize = 32;
constexpr int kTextureAlignment = 512;
constexpr int kSurfaceAlignment = 512;
constexpr int kTexturePitchAlignment = 32;

class Figures {
 public:
  Figures() : reply_(Ask(GpuOp::kDeviceInfo, {})) {}

  [[nodiscard]] CudaError error() const { return reply_.error; }

  [[nodiscard]] std::uint64_t Get(DeviceFigure which) const {
    return reply_.Value(static_cast<std::size_t>(which));
  }

  [[nodiscard]] int Int(DeviceFigure which) const { return static_cast<int>(Get(which)); }

  [[nodiscard]] std::string title() const {
    return {reinterpret_cast<const char*>(reply_.bytes.data()), reply_.bytes.size()};
  }

 private:
  protocol::GpuReply reply_;
};

/// cudaDeviceProp of CUDA 13: 1,008 bytes; the fields are written at their offsets.
class Properties {
 public:
  explicit Properties(void* image) : image_(static_cast<std::byte*>(image)) {
    std::memset(image_, 0, kBytes);
  }

  void Int(std::size_t offset, int value) { std::memcpy(image_ + offset, &value, sizeof value); }

  void Size(std::size_t offset, std::uint64_t value) {
    std::memcpy(image_ + offset, &value, sizeof value);
  }

  void Name(const std::string& name) {
    std::memcpy(image_, name.data(), std::min<std::size_t>(name.size(), 255));
  }

 private:
  static constexpr std::size_t kBytes = 1008;

  std::byte* image_;
};

void FillProperties(const Figures& gpu, Properties& p) {
  p.Name(gpu.title());
  p.Size(288, gpu.Get(DeviceFigure::kMemoryBytes));    // totalGlobalMem
  p.Size(296, kSharedPerBlock);                        // sharedMemPerBlock
  p.Int(304, gpu.Int(DeviceFigure::kRegistersPerSm));  // regsPerBlock
  p.Int(308, kWarpSize);                               // warpSize
  p.Size(312, 2147483647);                             // memPitch
  p.Int(320, kMaxThreadsPerBlock);                     // maxThreadsPerBlock
  p.Int(324, kMaxThreadsPerBlock);                     // maxThreadsDim
  p.Int(328, kMaxThreadsPerBlock);
  p.Int(332, kMaxBlockZ);
  p.Int(336, kMaxGridX);  // maxGridSize
  p.Int(340, kMaxGridYz);
  p.Int(344, kMaxGridYz);
  p.Size(352, kConstantBytes);                                 // totalConstMem
  p.Int(360, gpu.Int(DeviceFigure::kComputeCapability) / 10);  // major
  p.Int(364, gpu.Int(DeviceFigure::kComputeCapability) % 10);  // minor
  p.Size(368, kTextureAlignment);                              // textureAlignment
  p.Size(376, kTexturePitchAlignment);                         // texturePitchAlignment
  p.Int(384, gpu.Int(DeviceFigure::kSmCount));                 // multiProcessorCount
  p.Int(560, 1);                                               // concurrentKernels
  p.Int(584, 1);                                               // asyncEngineCount
  p.Int(588, 1);                                               // unifiedAddressing
  p.Int(596, gpu.Int(DeviceFigure::kL2Bytes));                 // l2CacheSize
  p.Int(604, gpu.Int(DeviceFigure::kWarpsPerSm) * kWarpSize);  // maxThreadsPerMultiProcessor
  p.Int(608, 1);                                               // streamPrioritiesSupported
  p.Int(612, 1);                                               // globalL1CacheSupported
  p.Int(616, 1);                                               // localL1CacheSupported
  p.Size(624, gpu.Get(DeviceFigure::kSharedPerSm));            // sharedMemPerMultiprocessor
  p.Int(632, gpu.Int(DeviceFigure::kRegistersPerSm));          // regsPerMultiprocessor
  p.Size(672, gpu.Get(DeviceFigure::kSharedPerCtaOptIn));      // sharedMemPerBlockOptin
  p.Int(688, gpu.Int(DeviceFigure::kCtasPerSm));               // maxBlocksPerMultiProcessor
  p.Size(696, gpu.Get(DeviceFigure::kSharedReservedPerCta));   // reservedSharedMemPerBlock
}

struct Attribute {
  int id;
  int (*value)(const Figures&);
};

template <DeviceFigure figure>
int Of(const Figures& gpu) {
  return gpu.Int(figure);
}

template <int value>
int Constant(const Figures& /*gpu*/) {
  return value;
}

// By cudaDeviceAttr. What is not listed (textures, peers, managed memory, graphs) is absent from
// this device and answers 0, as CUDA does for features that a device does not have.
constexpr auto kAttributes = std::to_array<Attribute>({
    {1, Constant<kMaxThreadsPerBlock>},
    {2, Constant<kMaxThreadsPerBlock>},
    {3, Constant<kMaxThreadsPerBlock>},
    {4, Constant<kMaxBlockZ>},
    {5, Constant<kMaxGridX>},
    {6, Constant<kMaxGridYz>},
    {7, Constant<kMaxGridYz>},
    {8, Constant<kSharedPerBlock>},
    {9, Constant<kConstantBytes>},
    {10, Constant<kWarpSize>},
    {11, Constant<2147483647>},
    {12, Of<DeviceFigure::kRegistersPerSm>},
    {13, Of<DeviceFigure::kClockKhz>},
    {14, Constant<kTextureAlignment>},
    {15, Constant<1>},
    {16, Of<DeviceFigure::kSmCount>},
    {30, Constant<kSurfaceAlignment>},
    {31, Constant<1>},
    {38, Of<DeviceFigure::kL2Bytes>},
    {39, [](const Figures& gpu) { return gpu.Int(DeviceFigure::kWarpsPerSm) * kWarpSize; }},
    {40, Constant<1>},
    {41, Constant<1>},
    {51, Constant<kTexturePitchAlignment>},
    {75, [](const Figures& gpu) { return gpu.Int(DeviceFigure::kComputeCapability) / 10; }},
    {76, [](const Figures& gpu) { return gpu.Int(DeviceFigure::kComputeCapability) % 10; }},
    {78, Constant<1>},
    {79, Constant<1>},
    {80, Constant<1>},
    {81, Of<DeviceFigure::kSharedPerSm>},
    {82, Of<DeviceFigure::kRegistersPerSm>},
    {97, Of<DeviceFigure::kSharedPerCtaOptIn>},
    {106, Of<DeviceFigure::kCtasPerSm>},
    {111, Of<DeviceFigure::kSharedReservedPerCta>},
});
constexpr int kLargestAttribute = 147;

}  // namespace

KP_CUDA_API CudaError cudaGetDeviceCount(int* count) {
  *count = 1;
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaGetDevice(int* device) {
  *device = 0;
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaSetDevice(int device) {
  return device == 0 ? protocol::kSuccess : Report(protocol::kErrorInvalidDevice);
}

KP_CUDA_API CudaError cudaSetDeviceFlags(unsigned /*flags*/) {
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaGetDeviceProperties(void* properties, int device) {
  if (device != 0) {
    return Report(protocol::kErrorInvalidDevice);
  }
  const Figures gpu;
  Properties image(properties);
  FillProperties(gpu, image);
  return Report(gpu.error());
}

KP_CUDA_API CudaError cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (device != 0) {
    return Report(protocol::kErrorInvalidDevice);
  }
  if (attribute < 1 || attribute > kLargestAttribute) {
    return Report(protocol::kErrorInvalidValue);
  }
  const Figures gpu;
  *value = 0;
  for (const Attribute& known : kAttributes) {
    if (known.id == attribute) {
      *value = known.value(gpu);
    }
  }
  return Report(gpu.error());
}

KP_CUDA_API CudaError cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaDeviceSetCacheConfig(int /*configuration*/) {
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaDeviceGetCacheConfig(int* configuration) {
  *configuration = 0;  // cudaFuncCachePreferNone
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaDeviceSetLimit(int limit, std::size_t /*value*/) {
  // cudaLimitStackSize, PrintfFifoSize and MallocHeapSize are taken: none of them bounds the
  // emulator more than it does itself. The rest belongs to features that are not here.
  return limit >= 0 && limit <= 2 ? protocol::kSuccess : Report(protocol::kErrorUnsupportedLimit);
}

KP_CUDA_API CudaError cudaDeviceGetLimit(std::size_t* value, int limit) {
  constexpr std::array<std::size_t, 3> kDefaults{1024, 1U << 20U, 8U << 20U};
  if (limit < 0 || limit > 2) {
    return Report(protocol::kErrorUnsupportedLimit);
  }
  *value = kDefaults[static_cast<std::size_t>(limit)];
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaDriverGetVersion(int* version) {
  *version = kernelpro::runtime::kRuntimeVersion;
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaRuntimeGetVersion(int* version) {
  *version = kernelpro::runtime::kRuntimeVersion;
  return protocol::kSuccess;
}

KP_CUDA_API CudaError cudaGetLastError() {
  return kernelpro::runtime::LastError(true);
}

KP_CUDA_API CudaError cudaPeekAtLastError() {
  return kernelpro::runtime::LastError(false);
}

KP_CUDA_API const char* cudaGetErrorName(CudaError error) {
  return protocol::CudaErrorName(error);
}

KP_CUDA_API const char* cudaGetErrorString(CudaError error) {
  return protocol::CudaErrorText(error);
}
