// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/test_candidates/arguments.h"

namespace kernelpro {

/// A session on the emulated H200 with the buffers of Arguments, for tests.
class SessionTest : public ::testing::Test {
 protected:
  static constexpr int kElements = 1000;

  void SetUp() override;
  /// After every test: none of our children is left, and the next session works.
  void TearDown() override;

  /// Opens a session with a candidate of test_candidates/.
  void Open(const std::string& candidate);
  void Open(const std::string& candidate, const SessionRequest& request);
  [[nodiscard]] CallOutcome Call(int what, CallRequest request = {});
  /// A second Call must fail: the session has ended.
  void ExpectDead();

  [[nodiscard]] std::vector<float> ReadC();
  [[nodiscard]] std::vector<double> ReadResults();
  void ExpectSumInC();

  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
  BufferId a_ = 0, b_ = 0, c_ = 0, results_ = 0;
};

/// Running processes whose parent is this one and whose name is "kernelpro-...".
[[nodiscard]] std::vector<std::string> LeftoverChildren();

}  // namespace kernelpro
