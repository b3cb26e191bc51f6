// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <stop_token>
#include <vector>

#include "base/result.h"
#include "device/cuda/session.h"
#include "profile/power_window.h"

namespace kernelpro {

/// A candidate in its runner as the load of MeasurePower: calls back to back in batches, each on
/// the next of several sets of buffers. A launch of the report is one call of kernelpro_run.
class SessionLoad final : public PowerLoad {
 public:
  /// `pointers`: one set of buffers a call, used in turn; at least one. The session must outlive
  /// this; inputs are the caller's, and should be like the task's.
  SessionLoad(cuda::CudaSession& session, std::vector<std::byte> arguments,
              std::vector<std::vector<PointerSlot>> pointers, std::stop_token stop);

  /// kToolFailed with the reason when a call failed.
  [[nodiscard]] Result<std::uint64_t> Run(std::chrono::nanoseconds about) override;

 private:
  cuda::CudaSession& session_;
  std::vector<std::byte> arguments_;
  std::vector<std::vector<PointerSlot>> pointers_;
  std::stop_token stop_;
  std::size_t next_ = 0;
  double call_ns_ = 0;  ///< of the last batch; 0 before the first
};

}  // namespace kernelpro
