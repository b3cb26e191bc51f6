// SPDX-License-Identifier: Apache-2.0
#include "device/referee/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <csignal>
#include <string>

#include "device/protocol/bytes.h"
#include "device/protocol/runner_message.h"

namespace kernelpro::referee {
namespace {

using End = CallOutcome::End;
using protocol::CallReport;
using protocol::RunnerMessage;
using ::testing::HasSubstr;

RunnerEnd Returned(std::int32_t code) {
  protocol::ByteWriter out;
  out.U32(static_cast<std::uint32_t>(code));
  RunnerEnd end;
  end.answer = {static_cast<std::uint16_t>(RunnerMessage::kReturned), 1, out.Take()};
  end.host_memory_bytes = 1000;
  return end;
}

RunnerEnd Died(ProcessResult::End how, int number, std::uint64_t peak_bytes = 0) {
  RunnerEnd end;
  end.kind = RunnerEnd::Kind::kGone;
  end.host_memory_bytes = 1000;
  end.process.emplace();
  end.process->end = how;
  end.process->exit_code = number;
  end.process->signal = number;
  end.process->peak_rss_bytes = peak_bytes;
  return end;
}

simt::Fault Fault(simt::FaultKind kind, bool fatal, std::string message) {
  simt::Fault fault;
  fault.kind = kind;
  fault.fatal = fatal;
  fault.message = std::move(message);
  return fault;
}

CallReport WithLaunch(simt::Fault fault) {
  CallReport report;
  report.launches.emplace_back();
  report.launches[0].report.faults = {std::move(fault)};
  return report;
}

TEST(JudgeTest, ACleanReturn) {
  CallReport report;
  report.device_us = 12.5;
  const CallOutcome outcome = Judge(Returned(0), report, "hi\n");
  EXPECT_EQ(outcome.end, End::kReturned);
  EXPECT_EQ(outcome.cuda_error, 0);
  EXPECT_EQ(outcome.reason, "");
  EXPECT_EQ(outcome.cuda_error_name, "");
  EXPECT_EQ(outcome.device_us, 12.5);
  EXPECT_EQ(outcome.printed, "hi\n");
}

TEST(JudgeTest, AnErrorIsExplainedByTheGpu) {
  CallReport report;
  report.errors = {{9, true, "block of 5000 threads"}};
  const CallOutcome told = Judge(Returned(9), report, "");
  EXPECT_EQ(told.end, End::kReturned);
  EXPECT_EQ(told.cuda_error_name, "cudaErrorInvalidConfiguration");
  EXPECT_THAT(told.reason, HasSubstr("block of 5000 threads"));
  const CallOutcome hidden = Judge(Returned(0), report, "");
  EXPECT_EQ(hidden.cuda_error, 9);
  EXPECT_THAT(hidden.reason, HasSubstr("although a launch had failed"));
  // An error that is no launch may be handled by the candidate: a probe, for example.
  report.errors[0].launch = false;
  EXPECT_EQ(Judge(Returned(0), report, "").cuda_error, 0);
}

TEST(JudgeTest, FaultsOutrankWhatTheRunnerSays) {
  const auto report = WithLaunch(Fault(simt::FaultKind::kOutOfBounds, true, "past the end"));
  EXPECT_EQ(Judge(Returned(0), report, "").end, End::kDeviceFault);
  EXPECT_EQ(Judge(Died(ProcessResult::End::kSignaled, SIGSEGV), report, "").reason, "past the end");
  EXPECT_EQ(Judge(Returned(0), WithLaunch(Fault(simt::FaultKind::kBudget, true, "loop")), "").end,
            End::kTimedOut);
  EXPECT_EQ(
      Judge(Returned(0), WithLaunch(Fault(simt::FaultKind::kUnsupported, true, "op")), "").end,
      End::kUnsupported);
}

TEST(JudgeTest, FindingsThatAreNotFatalAreListedAfterFatalOnes) {
  auto report = WithLaunch(Fault(simt::FaultKind::kRace, false, "race"));
  EXPECT_EQ(Judge(Returned(0), report, "").end, End::kReturned);
  EXPECT_EQ(Judge(Returned(0), report, "").faults.size(), 1U);
  report.launches.emplace_back();
  report.launches[1].report.faults = {Fault(simt::FaultKind::kTrap, true, "trap")};
  const CallOutcome outcome = Judge(Returned(0), report, "");
  ASSERT_EQ(outcome.faults.size(), 2U);
  EXPECT_EQ(outcome.faults[0].message, "trap");
  EXPECT_EQ(outcome.end, End::kDeviceFault);
}

TEST(JudgeTest, SteppingOutOfBoundsOutranksEverything) {
  RunnerEnd forbidden = Died(ProcessResult::End::kExited, 86);
  forbidden.forbidden = SYS_socket;
  const CallOutcome outcome =
      Judge(forbidden, WithLaunch(Fault(simt::FaultKind::kTrap, true, "trap")), "");
  EXPECT_EQ(outcome.end, End::kForbidden);
  EXPECT_THAT(outcome.reason, HasSubstr("socket"));
  EXPECT_EQ(Judge(Died(ProcessResult::End::kSignaled, SIGSYS), CallReport{}, "").end,
            End::kForbidden);
  CallReport stray;
  stray.stray_requests = 1;
  EXPECT_EQ(Judge(Returned(0), stray, "").end, End::kForbidden);
  CallReport malformed;
  malformed.malformed = true;
  EXPECT_EQ(Judge(Returned(0), malformed, "").end, End::kForbidden);
  EXPECT_EQ(SystemCallName(100000), "system call 100000");
}

TEST(JudgeTest, Deaths) {
  EXPECT_EQ(Judge(Died(ProcessResult::End::kExited, 0), CallReport{}, "").end, End::kExited);
  EXPECT_EQ(Judge(Died(ProcessResult::End::kSignaled, SIGABRT, 10), CallReport{}, "").end,
            End::kCrashed);
  EXPECT_EQ(Judge(Died(ProcessResult::End::kSignaled, SIGSEGV, 990), CallReport{}, "").end,
            End::kOutOfMemory);
  EXPECT_EQ(Judge(Died(ProcessResult::End::kSignaled, SIGKILL), CallReport{}, "").end,
            End::kOutOfMemory);
  RunnerEnd still_there;
  still_there.kind = RunnerEnd::Kind::kGone;
  EXPECT_EQ(Judge(still_there, CallReport{}, "").end, End::kForbidden);
}

TEST(JudgeTest, OutOfDeviceMemoryNeedsBothSides) {
  CallReport report;
  report.out_of_memory = true;
  EXPECT_EQ(Judge(Returned(2), report, "").end, End::kOutOfMemory);
  EXPECT_EQ(Judge(Returned(2), CallReport{}, "").end, End::kReturned);
  EXPECT_EQ(Judge(Returned(0), report, "").end, End::kReturned);
}

TEST(JudgeTest, WithoutAReportTheDeviceIsLostUnlessTimeWasUp) {
  EXPECT_EQ(Judge(Returned(0), std::nullopt, "").end, End::kDeviceLost);
  RunnerEnd late;
  late.kind = RunnerEnd::Kind::kTimedOut;
  EXPECT_EQ(Judge(late, std::nullopt, "").end, End::kTimedOut);
  EXPECT_EQ(Judge(late, CallReport{}, "").end, End::kTimedOut);
}

TEST(JudgeTest, OutputIsMadeFitForTerminals) {
  CallReport report;
  report.launches.emplace_back();
  report.launches[0].report.printed = "from the kernel\n";
  EXPECT_EQ(Judge(Returned(0), report, "\x1b[31mred\n").printed, "?[31mred\nfrom the kernel\n");
  const std::size_t flood =
      Judge(Returned(0), CallReport{}, std::string(1U << 20U, 'x')).printed.size();
  EXPECT_LE(flood, kPrintedLimit);
  EXPECT_GT(flood, kPrintedLimit - 100);
}

}  // namespace
}  // namespace kernelpro::referee
