// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "selftest/fixture.h"
#include "selftest/tally.h"
#include "toolchain/toolchain.h"

namespace kernelpro::selftest {

struct SuiteOptions {
  std::filesystem::path suite;         ///< the folder that holds fixtures/ and tasks/
  std::filesystem::path cache_folder;  ///< where compiled references are kept
  unsigned jobs = 1;                   ///< compilations at once
  /// Less than an evaluation allows: fixtures that never return are a part of the suite.
  std::chrono::milliseconds call_limit{10'000};
};

/// Called after each fixture, in the order in which they are run (task by task).
using OnResult = std::function<void(const FixtureResult& result, std::size_t done)>;

/// Builds and judges the hostile candidate and the twin of each fixture, with the same toolchain
/// and referee as any candidate; compiles ahead with `jobs` threads, evaluates one after another. A
/// failure of ours in one fixture is its verdict infrastructure_error; an Error when the tasks or
/// the toolchain do not work, or kCancelled.
[[nodiscard]] Result<std::vector<FixtureResult>> RunSuite(std::vector<Fixture> fixtures,
                                                          Device& device, Toolchain& toolchain,
                                                          const SuiteOptions& options,
                                                          const OnResult& on_result,
                                                          const std::stop_token& stop);

}  // namespace kernelpro::selftest
