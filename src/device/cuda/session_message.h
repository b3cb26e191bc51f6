// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "device/protocol/frame.h"
#include "device/protocol/runner_message.h"
#include "device/referee/frame_socket.h"

/// Shared by the two files that make up a session.
namespace kernelpro::cuda {

[[nodiscard]] inline referee::Deadline After(std::chrono::milliseconds patience) {
  return std::chrono::steady_clock::now() + patience;
}

[[nodiscard]] inline protocol::Frame Message(protocol::RunnerMessage kind, std::uint64_t sequence,
                                             std::vector<std::byte> payload = {}) {
  return {static_cast<std::uint16_t>(kind), sequence, std::move(payload)};
}

}  // namespace kernelpro::cuda
