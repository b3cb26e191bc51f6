// SPDX-License-Identifier: Apache-2.0
#include "profile/session_load.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "device/protocol/cuda_runner.h"

namespace kernelpro {
namespace {

/// Each call's arguments travel in the batch's message; most of it may be used.
constexpr std::size_t kMessageBytes = protocol::kBatchLimit / 4 * 3;
constexpr std::size_t kMostCalls = 20'000;

}  // namespace

SessionLoad::SessionLoad(cuda::CudaSession& session, std::vector<std::byte> arguments,
                         std::vector<std::vector<PointerSlot>> pointers, std::stop_token stop)
    : session_(session),
      arguments_(std::move(arguments)),
      pointers_(std::move(pointers)),
      stop_(std::move(stop)) {
  KP_CHECK(!pointers_.empty());
}

Result<std::uint64_t> SessionLoad::Run(std::chrono::nanoseconds about) {
  const double wanted = call_ns_ > 0 ? static_cast<double>(about.count()) / call_ns_ : 1;
  const std::size_t fit = kMessageBytes / std::max<std::size_t>(arguments_.size(), 1);
  const auto most = static_cast<double>(std::clamp<std::size_t>(fit, 1, kMostCalls));
  const auto calls = static_cast<std::size_t>(std::clamp(std::round(wanted), 1.0, most));
  cuda::BatchRequest request;
  request.arguments = arguments_;
  for (std::size_t i = 0; i < calls; ++i) {
    request.timed.push_back(pointers_[next_]);
    next_ = (next_ + 1) % pointers_.size();
  }
  request.fill = [] { return Ok(); };
  KP_ASSIGN_OR_RETURN(const cuda::BatchOutcome outcome, session_.TimeBatch(request, stop_));
  if (outcome.call.end != CallOutcome::End::kReturned || outcome.call.cuda_error != 0) {
    return Fail(ErrorCode::kToolFailed,
                "the kernel failed while its energy was measured: " + outcome.call.reason);
  }
  call_ns_ = std::max(1.0, outcome.wall_us * 1e3 / static_cast<double>(calls));
  return calls;
}

}  // namespace kernelpro
