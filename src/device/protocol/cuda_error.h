// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// cudaError_t as numbers with their names: the values are CUDA's ABI. Standard library only.
namespace kernelpro::protocol {

inline constexpr std::int32_t kSuccess = 0;
inline constexpr std::int32_t kErrorInvalidValue = 1;
inline constexpr std::int32_t kErrorMemoryAllocation = 2;
inline constexpr std::int32_t kErrorInitialization = 3;
inline constexpr std::int32_t kErrorInvalidConfiguration = 9;
inline constexpr std::int32_t kErrorInvalidPitchValue = 12;
inline constexpr std::int32_t kErrorInvalidSymbol = 13;
inline constexpr std::int32_t kErrorInvalidMemcpyDirection = 21;
inline constexpr std::int32_t kErrorMissingConfiguration = 52;
inline constexpr std::int32_t kErrorInvalidDeviceFunction = 98;
inline constexpr std::int32_t kErrorInvalidDevice = 101;
inline constexpr std::int32_t kErrorInvalidKernelImage = 200;
inline constexpr std::int32_t kErrorNoKernelImageForDevice = 209;
inline constexpr std::int32_t kErrorUnsupportedLimit = 215;
inline constexpr std::int32_t kErrorInvalidPtx = 218;
inline constexpr std::int32_t kErrorInvalidResourceHandle = 400;
inline constexpr std::int32_t kErrorNotReady = 600;
inline constexpr std::int32_t kErrorIllegalAddress = 700;
inline constexpr std::int32_t kErrorLaunchOutOfResources = 701;
inline constexpr std::int32_t kErrorLaunchTimeout = 702;
inline constexpr std::int32_t kErrorAssert = 710;
inline constexpr std::int32_t kErrorMisalignedAddress = 716;
inline constexpr std::int32_t kErrorLaunchFailure = 719;
inline constexpr std::int32_t kErrorNotPermitted = 800;
/// From the emulated GPU itself: a kernel reached something that it cannot run. Sticky.
inline constexpr std::int32_t kErrorNotSupported = 801;
inline constexpr std::int32_t kErrorUnknown = 999;

/// "cudaErrorInvalidValue"; "unrecognized error code" as CUDA says it for unknown numbers.
[[nodiscard]] const char* CudaErrorName(std::int32_t code);
/// "invalid argument".
[[nodiscard]] const char* CudaErrorText(std::int32_t code);
/// Errors after which every later CUDA call of the process fails with the same.
[[nodiscard]] bool IsStickyCudaError(std::int32_t code);

}  // namespace kernelpro::protocol
