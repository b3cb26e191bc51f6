// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "device/protocol/gpu_request.h"
#include "device/runtime/abi.h"

namespace kernelpro::runtime {

/// Sends a request to the emulated GPU and waits for the answer. Requests of several threads take
/// turns. Without a connection, or when the GPU process is gone: cudaErrorInitializationError.
[[nodiscard]] protocol::GpuReply Ask(protocol::GpuOp op,
                                     std::initializer_list<std::uint64_t> values,
                                     std::span<const std::byte> bytes = {});
[[nodiscard]] protocol::GpuReply Ask(const protocol::GpuRequest& request);

/// Remembers the error of a call for cudaGetLastError of this thread, and returns it.
CudaError Report(CudaError error);
/// cudaGetLastError (clears) and cudaPeekAtLastError; sticky errors are never cleared.
[[nodiscard]] CudaError LastError(bool clear);

[[nodiscard]] inline std::uint64_t AddressOf(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// Device addresses and handles are numbers of the emulated GPU that host code can only pass on.
template <class T = void>
[[nodiscard]] T* AsPointer(std::uint64_t value) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(value));
}

[[nodiscard]] inline std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace kernelpro::runtime
