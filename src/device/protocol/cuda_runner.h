// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

/// What passes between the referee and the runner of a real GPU beside runner_message.h. As there:
/// all that the runner says may be forged. Standard library only.
namespace kernelpro::protocol {

/// argv[1] of a runner for a real GPU; argv[2] is the path of libcudart.
inline constexpr const char* kCudaMode = "--cuda";

/// The page that both map (kDoorbellFd): each side rings by storing the number of the batch.
inline constexpr int kDoorbellFd = 4;

struct Doorbell {
  std::atomic<std::uint32_t> warm;  ///< runner: warm-up calls are over, the device is idle
  std::atomic<std::uint32_t> wake;  ///< referee: inputs are there; make the context the GPU's again
  std::atomic<std::uint32_t> awake;  ///< runner
  std::atomic<std::uint32_t> go;     ///< referee, as it reads its clock
  std::atomic<std::uint32_t> gate;   ///< referee: a gated call may go on; the GPU reads it too
  std::atomic<std::uint32_t> done;   ///< runner: all calls are over and the context is idle
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Payload of kOpen: 64 bytes of CUDA IPC handle, u64 bytes of the allocation.
/// Payload of kOpened: u64 address in the runner; 0: the text that follows says why not. Then a u32
/// count of sandbox measures, each: text name, u8 on, text detail.
/// Payload of kBatch: u32 bytes of one argument image, u32 warm-up calls, u32 timed calls, then the
/// images, warm-up first. At most kBatchLimit.
inline constexpr std::uint32_t kBatchLimit = 8U << 20U;

/// Payload of kReturned of a real GPU: i32 what the candidate returned (the first failure of a
/// batch), then these.
struct CudaFigures {
  std::int32_t synchronize = 0;  ///< cuCtxSynchronize after the call
  std::int32_t last_error = 0;   ///< cudaGetLastError after the call
  std::uint8_t capturing = 0;    ///< the candidate left the stream in capture mode
  std::uint32_t threads = 0;     ///< that the candidate started and that still run
  std::uint64_t persisting = 0;  ///< L2 set aside for persisting lines, bytes
  double stream_us = 0;          ///< batch: between events around the calls on their stream
  double context_us = 0;         ///< batch: to an event recorded after the context was idle
};

}  // namespace kernelpro::protocol
