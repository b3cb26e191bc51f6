// SPDX-License-Identifier: Apache-2.0
// The parts of the real GPU's device that need no GPU; the rest is in tests/gpu.
#include "device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "device/cuda/driver.h"
#include "device/cuda/memory_kernels.h"
#include "device/cuda/nvml.h"
#include "device/cuda/session.h"
#include "device/protocol/bytes.h"
#include "device/protocol/cuda_error.h"
#include "device/protocol/runner_message.h"
#include "device/referee/outcome.h"

namespace kernelpro::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CudaDevice, NamesLeadToTheEmulatorsDataFiles) {
  EXPECT_EQ(SpecFor("NVIDIA H200", 9, 0), "h200");
  EXPECT_EQ(SpecFor("NVIDIA H100 80GB HBM3", 9, 0), "h100");
  EXPECT_EQ(SpecFor("NVIDIA A100-SXM4-40GB", 8, 0), "a100");
  EXPECT_EQ(SpecFor("NVIDIA L4", 8, 9), "l4");
  EXPECT_EQ(SpecFor("NVIDIA GeForce RTX 4090", 8, 9), "rtx4090");
  // Unknown ones: the nearest generation.
  EXPECT_EQ(SpecFor("NVIDIA GB300", 10, 3), "h100");
  EXPECT_EQ(SpecFor("NVIDIA RTX A2000", 8, 6), "a100");
}

TEST(CudaDevice, WithoutADriverItSaysWhatIsMissing) {
  if (CountGpus() > 0) {
    GTEST_SKIP() << "skipped: this machine has a GPU";
  }
  const auto device = OpenCuda(0);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, ErrorCode::kUnavailable);
}

TEST(Nvml, ThrottleReasonsAndTheOnesThatSpoil) {
  EXPECT_THAT(ThrottleReasons(0x1), IsEmpty());  // idle
  EXPECT_THAT(ThrottleReasons(0x4 | 0x40),
              ElementsAre("software power cap", "hardware thermal slowdown"));
  EXPECT_FALSE(SpoilsSample(0x1 | 0x4));
  EXPECT_TRUE(SpoilsSample(0x8));
  EXPECT_TRUE(SpoilsSample(0x80 | 0x4));
}

TEST(Nvml, ALibraryThatIsMissingTellsNothing) {
  const auto nvml = Nvml::Open("0000:00:00.0");
  if (nvml->missing().empty()) {
    GTEST_SKIP() << "skipped: this machine has NVML";
  }
  EXPECT_LT(nvml->Read().sm_mhz, 0);
  EXPECT_THAT(nvml->ComputeProcesses(), IsEmpty());
}

CallOutcome OutcomeOf(const protocol::CudaFigures& figures, std::int32_t returned) {
  protocol::ByteWriter out;
  out.U32(static_cast<std::uint32_t>(returned));
  referee::RunnerEnd end;
  end.answer = {static_cast<std::uint16_t>(protocol::RunnerMessage::kReturned), 1, out.Take()};
  return referee::Judge(end, ReportOf(figures), "");
}

TEST(CudaReport, WhatTheGpuStoppedIsAFault) {
  protocol::CudaFigures figures;
  EXPECT_EQ(OutcomeOf(figures, 0).end, CallOutcome::End::kReturned);
  figures.synchronize = protocol::kErrorIllegalAddress;
  const CallOutcome illegal = OutcomeOf(figures, protocol::kErrorIllegalAddress);
  EXPECT_EQ(illegal.end, CallOutcome::End::kDeviceFault);
  ASSERT_EQ(illegal.faults.size(), 1U);
  EXPECT_EQ(illegal.faults[0].kind, simt::FaultKind::kOutOfBounds);
  figures.synchronize = protocol::kErrorMisalignedAddress;
  EXPECT_EQ(OutcomeOf(figures, 0).faults.at(0).kind, simt::FaultKind::kMisaligned);
  figures.synchronize = protocol::kErrorAssert;
  EXPECT_EQ(OutcomeOf(figures, 0).faults.at(0).kind, simt::FaultKind::kTrap);
}

TEST(CudaReport, ALaunchErrorThatWasIgnoredIsTold) {
  protocol::CudaFigures figures;
  figures.last_error = protocol::kErrorInvalidConfiguration;
  const CallOutcome outcome = OutcomeOf(figures, 0);
  EXPECT_EQ(outcome.cuda_error, protocol::kErrorInvalidConfiguration);
  EXPECT_THAT(outcome.reason, HasSubstr("returned success although a launch had failed"));
}

TEST(RefereeKernels, AreEmbedded) {
  for (const char* name : {"kp_poison", "kp_check_bands", "kp_mix", "kp_compare",
                           "kp_sum_of_squares", "kp_count_differences", "kp_count_poison"}) {
    EXPECT_THAT(RefereeKernels(), HasSubstr(name));
  }
}

}  // namespace
}  // namespace kernelpro::cuda
