// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// The CUDA driver, opened at run time so that one binary starts on machines with and without a
/// GPU. Standard library only: the untrusted runner uses it too. Types and numbers are the driver's
/// ABI (cuda.h), which NVIDIA keeps compatible.
namespace kernelpro::cuda {

using Code = int;  ///< CUresult; 0 is success and most values equal those of cudaError_t
using DevicePointer = std::uint64_t;
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;

struct IpcHandle {
  char bytes[64];
};

struct Uuid {
  unsigned char bytes[16];
};

inline constexpr Code kOk = 0;

inline constexpr unsigned kScheduleSpin = 1;  ///< CU_CTX_SCHED_SPIN
inline constexpr unsigned kIpcLazyPeerAccess = 1;
inline constexpr unsigned kHostRegisterDeviceMap = 2;  ///< CU_MEMHOSTREGISTER_DEVICEMAP
inline constexpr unsigned kWaitEqual = 1;              ///< CU_STREAM_WAIT_VALUE_EQ

/// CUdevice_attribute.
inline constexpr int kAttributeMultiprocessors = 16;
inline constexpr int kAttributeClockKhz = 13;
inline constexpr int kAttributeMemoryClockKhz = 36;
inline constexpr int kAttributeMemoryBusBits = 37;
inline constexpr int kAttributeL2Bytes = 38;
inline constexpr int kAttributeMajor = 75;
inline constexpr int kAttributeMinor = 76;

/// CUlimit.
inline constexpr int kLimitPersistingL2 = 6;

/// Every function of the driver that KernelPro calls, by its versioned name.
#define KP_CUDA_FUNCTIONS(X)                                                               \
  X(cuInit, (unsigned))                                                                    \
  X(cuDriverGetVersion, (int*))                                                            \
  X(cuDeviceGetCount, (int*))                                                              \
  X(cuDeviceGet, (int*, int))                                                              \
  X(cuDeviceGetName, (char*, int, int))                                                    \
  X(cuDeviceGetUuid, (Uuid*, int))                                                         \
  X(cuDeviceGetPCIBusId, (char*, int, int))                                                \
  X(cuDeviceGetAttribute, (int*, int, int))                                                \
  X(cuDeviceTotalMem_v2, (std::size_t*, int))                                              \
  X(cuDevicePrimaryCtxRetain, (Context*, int))                                             \
  X(cuDevicePrimaryCtxSetFlags_v2, (int, unsigned))                                        \
  X(cuCtxSetCurrent, (Context))                                                            \
  X(cuCtxSynchronize, ())                                                                  \
  X(cuCtxSetLimit, (int, std::size_t))                                                     \
  X(cuCtxGetLimit, (std::size_t*, int))                                                    \
  X(cuCtxResetPersistingL2Cache, ())                                                       \
  X(cuMemAlloc_v2, (DevicePointer*, std::size_t))                                          \
  X(cuMemFree_v2, (DevicePointer))                                                         \
  X(cuMemGetInfo_v2, (std::size_t*, std::size_t*))                                         \
  X(cuMemcpyHtoD_v2, (DevicePointer, const void*, std::size_t))                            \
  X(cuMemcpyDtoH_v2, (void*, DevicePointer, std::size_t))                                  \
  X(cuMemcpyDtoD_v2, (DevicePointer, DevicePointer, std::size_t))                          \
  X(cuMemsetD8_v2, (DevicePointer, unsigned char, std::size_t))                            \
  X(cuMemsetD8Async, (DevicePointer, unsigned char, std::size_t, Stream))                  \
  X(cuIpcGetMemHandle, (IpcHandle*, DevicePointer))                                        \
  X(cuIpcOpenMemHandle_v2, (DevicePointer*, IpcHandle, unsigned))                          \
  X(cuModuleLoadData, (Module*, const void*))                                              \
  X(cuModuleGetFunction, (Function*, Module, const char*))                                 \
  X(cuLaunchKernel, (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                     unsigned, Stream, void**, void**))                                    \
  X(cuStreamCreate, (Stream*, unsigned))                                                   \
  X(cuStreamSynchronize, (Stream))                                                         \
  X(cuStreamWaitValue32_v2, (Stream, DevicePointer, std::uint32_t, unsigned))              \
  X(cuMemHostRegister_v2, (void*, std::size_t, unsigned))                                  \
  X(cuMemHostGetDevicePointer_v2, (DevicePointer*, void*, unsigned))                       \
  X(cuStreamIsCapturing, (Stream, int*))                                                   \
  X(cuEventCreate, (Event*, unsigned))                                                     \
  X(cuEventRecord, (Event, Stream))                                                        \
  X(cuEventElapsedTime, (float*, Event, Event))                                            \
  X(cuGetErrorName, (Code, const char**))                                                  \
  X(cuGetErrorString, (Code, const char**))

struct Driver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declarator
#define KP_CUDA_POINTER(name, arguments) Code(*name) arguments = nullptr;
  KP_CUDA_FUNCTIONS(KP_CUDA_POINTER)
#undef KP_CUDA_POINTER

  /// Opens libcuda.so.1 and fills the table; empty when done, else why not. Does not call cuInit.
  [[nodiscard]] std::string Open();

  /// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered".
  [[nodiscard]] std::string Describe(Code code) const;
};

}  // namespace kernelpro::cuda
