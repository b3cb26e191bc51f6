// SPDX-License-Identifier: Apache-2.0
// What must be caught. The honest twin of each case is in honest_session_test.cc; TearDown proves
// that nothing is left and that the next session works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "device/session_fixture.h"

namespace kernelpro {
namespace {

using End = CallOutcome::End;
using simt::FaultKind;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HostileSessionTest : public SessionTest {
 protected:
  /// Calls one behaviour of hostile.cu and expects this end and a dead session.
  CallOutcome Expect(int what, End end, const std::string& in_reason, CallRequest request = {}) {
    Open("hostile");
    CallOutcome outcome = Call(what, std::move(request));
    EXPECT_EQ(outcome.end, end) << outcome.reason;
    EXPECT_THAT(outcome.reason, HasSubstr(in_reason));
    if (outcome.end != End::kReturned) {
      ExpectDead();
      // What the call computed stays readable.
      EXPECT_EQ(ReadC().size(), static_cast<std::size_t>(kElements));
    }
    return outcome;
  }

  CallOutcome ExpectFault(int what, FaultKind kind, int cuda_error) {
    CallOutcome outcome = Expect(what, End::kDeviceFault, "");
    EXPECT_EQ(outcome.cuda_error, cuda_error) << outcome.cuda_error_name;
    EXPECT_FALSE(outcome.faults.empty());
    if (!outcome.faults.empty()) {
      EXPECT_EQ(outcome.faults[0].kind, kind) << outcome.faults[0].message;
      EXPECT_TRUE(outcome.faults[0].fatal);
      EXPECT_EQ(outcome.reason, outcome.faults[0].message);
    }
    return outcome;
  }

  static CallRequest WallLimit(int limit_ms) {
    CallRequest request;
    request.wall_limit = milliseconds(limit_ms);
    return request;
  }
};

TEST_F(HostileSessionTest, SegmentationFault) {
  Expect(kSegfault, End::kCrashed, "SIGSEGV");
}

TEST_F(HostileSessionTest, ScribblingOverDevicePointers) {
  Expect(kScribble, End::kCrashed, "SIGSEGV");
  EXPECT_EQ(ReadC()[0], 0);
}

TEST_F(HostileSessionTest, Abort) {
  Expect(kAbort, End::kCrashed, "SIGABRT");
}

TEST_F(HostileSessionTest, ExitZeroIsNoSuccess) {
  const CallOutcome outcome = Expect(kExitZero, End::kExited, "status 0");
  EXPECT_EQ(outcome.printed, "verdict: ok\n");
}

TEST_F(HostileSessionTest, Exception) {
  Expect(kThrow, End::kCrashed, "thrown by the candidate");
}

TEST_F(HostileSessionTest, Fork) {
  Expect(kFork, End::kForbidden, "clone (a new process)");
}

TEST_F(HostileSessionTest, System) {
  Expect(kSystem, End::kForbidden, "system call");
}

TEST_F(HostileSessionTest, Exec) {
  Expect(kExec, End::kForbidden, "execve");
}

TEST_F(HostileSessionTest, Socket) {
  Expect(kSocket, End::kForbidden, "socket");
}

TEST_F(HostileSessionTest, Kill) {
  Expect(kKillParent, End::kForbidden, "kill");
}

TEST_F(HostileSessionTest, Unlink) {
  Expect(kUnlink, End::kForbidden, "unlink");
}

TEST_F(HostileSessionTest, OpenForWriting) {
  Expect(kOpenForWriting, End::kForbidden, "for writing");
  EXPECT_FALSE(std::filesystem::exists("/tmp/kernelpro-forbidden"));
}

TEST_F(HostileSessionTest, FilesOfTheMachineStayShut) {
  Expect(kReadSecret, End::kReturned, "");
}

TEST_F(HostileSessionTest, ReplacingTheSandboxHandler) {
  Expect(kReplaceHandler, End::kForbidden, "rt_sigaction");
}

TEST_F(HostileSessionTest, EndlessHostLoop) {
  Expect(kHostLoop, End::kTimedOut, "host code did not return", WallLimit(300));
}

TEST_F(HostileSessionTest, EndlessKernelMeetsItsBudget) {
  CallRequest request;
  request.instruction_budget = 100'000;
  const CallOutcome outcome = Expect(kKernelLoop, End::kTimedOut, "", request);
  ASSERT_FALSE(outcome.faults.empty());
  EXPECT_EQ(outcome.faults[0].kind, FaultKind::kBudget);
  EXPECT_THAT(outcome.faults[0].file, HasSubstr("hostile.cu"));
  EXPECT_GT(outcome.faults[0].line, 0U);
}

TEST_F(HostileSessionTest, EndlessKernelMeetsTheWallLimit) {
  CallRequest request = WallLimit(500);
  request.instruction_budget = ~0ULL;
  Expect(kKernelLoop, End::kTimedOut, "kernel was still running", request);
}

TEST_F(HostileSessionTest, OutOfBoundsWrite) {
  const CallOutcome outcome = ExpectFault(kOutOfBoundsWrite, FaultKind::kOutOfBounds, 700);
  EXPECT_EQ(outcome.cuda_error_name, "cudaErrorIllegalAddress");
  EXPECT_TRUE(*session_->GuardsIntact(c_));
}

TEST_F(HostileSessionTest, MisalignedAccess) {
  ExpectFault(kMisaligned, FaultKind::kMisaligned, 716);
}

TEST_F(HostileSessionTest, DivergentBarrier) {
  Expect(kDivergentBarrier, End::kDeviceFault, "");
}

TEST_F(HostileSessionTest, WritingAnInput) {
  ExpectFault(kWriteInput, FaultKind::kWriteToReadOnly, 700);
}

TEST_F(HostileSessionTest, WritingAnInputFromTheHost) {
  ExpectFault(kWriteInputFromHost, FaultKind::kWriteToReadOnly, 700);
}

TEST_F(HostileSessionTest, PrintingVerdictsChangesNothing) {
  const CallOutcome outcome = Expect(kPrintFlood, End::kReturned, "");
  EXPECT_LE(outcome.printed.size(), 64U << 10U);
  EXPECT_GT(outcome.printed.size(), 60U << 10U);
  EXPECT_THAT(outcome.printed, HasSubstr("PASS"));
  EXPECT_THAT(outcome.launches, IsEmpty());
}

TEST_F(HostileSessionTest, ForgedSuccess) {
  Open("hostile");
  const CallOutcome outcome = Call(kForgeReturn);
  // Whether the forged answer is taken for an early return or found out at once depends on the
  // number that was guessed. Believed or not, it brings nothing: no launch, no output.
  EXPECT_THAT(outcome.launches, IsEmpty());
  EXPECT_EQ(ReadC(), std::vector<float>(kElements));
  if (outcome.end == End::kReturned) {
    const CallOutcome next = Call(kNothing);
    EXPECT_EQ(next.end, End::kForbidden) << next.reason;
  } else {
    EXPECT_EQ(outcome.end, End::kForbidden) << outcome.reason;
  }
  ExpectDead();
}

TEST_F(HostileSessionTest, GarbageForTheReferee) {
  Expect(kForgeGarbage, End::kForbidden, "descriptors that belong to the runner");
}

TEST_F(HostileSessionTest, GarbageForTheGpu) {
  Expect(kForgeGpuFrame, End::kForbidden, "descriptors that belong to the runner");
}

TEST_F(HostileSessionTest, ClosingTheDescriptors) {
  Expect(kCloseDescriptors, End::kForbidden, "closed the descriptors");
}

TEST_F(HostileSessionTest, HugeDeviceAllocation) {
  const CallOutcome outcome = Expect(kHugeDeviceMemory, End::kOutOfMemory, "cudaMalloc");
  EXPECT_EQ(outcome.cuda_error, 2);
}

TEST_F(HostileSessionTest, HugeHostAllocation) {
  SessionRequest small;
  small.host_memory_bytes = 512ULL << 20U;
  Open("hostile", small);
  const CallOutcome outcome = Call(kHugeHostMemory, WallLimit(100'000));
  EXPECT_EQ(outcome.end, End::kOutOfMemory) << outcome.reason;
}

TEST_F(HostileSessionTest, HostAllocationWithoutACheck) {
  SessionRequest small;
  small.host_memory_bytes = 512ULL << 20U;
  Open("hostile", small);
  const CallOutcome outcome = Call(kHostMemoryCrash, WallLimit(100'000));
  EXPECT_EQ(outcome.end, End::kOutOfMemory) << outcome.reason;
}

TEST_F(HostileSessionTest, LaunchOfFiveThousandThreads) {
  const CallOutcome outcome = Expect(kTooManyThreads, End::kReturned, "5000 threads");
  EXPECT_EQ(outcome.cuda_error_name, "cudaErrorInvalidConfiguration");
  EXPECT_THAT(outcome.faults, IsEmpty());
}

TEST_F(HostileSessionTest, FailedLaunchThatNobodyLookedAt) {
  const CallOutcome outcome =
      Expect(kTooManyThreadsIgnored, End::kReturned, "although a launch had failed");
  EXPECT_EQ(outcome.cuda_error_name, "cudaErrorInvalidConfiguration");
}

TEST_F(HostileSessionTest, SharedMemoryWithoutTheAttribute) {
  const CallOutcome outcome =
      Expect(kSharedWithoutAttribute, End::kReturned, "cudaFuncSetAttribute");
  EXPECT_EQ(outcome.cuda_error_name, "cudaErrorInvalidValue");
}

TEST_F(HostileSessionTest, MoreSharedMemoryThanThereIs) {
  const CallOutcome outcome = Expect(kSharedTooMuch, End::kReturned, "262144 bytes");
  EXPECT_EQ(outcome.cuda_error_name, "cudaErrorInvalidValue");
}

TEST_F(HostileSessionTest, FreeingTheRefereesBuffers) {
  const CallOutcome outcome = Expect(kFreeReferees, End::kReturned, "cudaMalloc did not return");
  EXPECT_EQ(outcome.cuda_error_name, "cudaErrorInvalidValue");
}

TEST_F(HostileSessionTest, CopyToAWrongPointer) {
  const CallOutcome outcome = Expect(kWrongPointer, End::kReturned, "");
  EXPECT_EQ(outcome.cuda_error_name, "cudaErrorInvalidValue");
}

TEST_F(HostileSessionTest, UnknownStream) {
  const CallOutcome outcome = Expect(kUnknownStream, End::kReturned, "no such stream");
  EXPECT_EQ(outcome.cuda_error_name, "cudaErrorInvalidResourceHandle");
}

TEST_F(HostileSessionTest, ThreadLeftBehind) {
  Open("hostile");
  EXPECT_EQ(Call(kThreadLeftBehind).end, End::kReturned);
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_EQ(ReadC(), std::vector<float>(kElements));  // The GPU does not listen between calls.
  const CallOutcome next = Call(kNothing);
  EXPECT_EQ(next.end, End::kForbidden) << next.reason;
  EXPECT_THAT(next.reason, HasSubstr("left behind"));
}

TEST_F(HostileSessionTest, ConstructorThatExits) {
  Open("constructor_exits");
  const CallOutcome outcome = Call(0);
  EXPECT_EQ(outcome.end, End::kExited) << outcome.reason;
  EXPECT_EQ(outcome.printed, "all tests passed\n");
  ExpectDead();
}

TEST_F(HostileSessionTest, FunctionThatTheGpuDoesNotHave) {
  Open("unknown_function");
  const CallOutcome outcome = Call(0);
  EXPECT_EQ(outcome.end, End::kLoadFailed) << outcome.reason;
  EXPECT_THAT(outcome.reason, HasSubstr("cudaMallocManaged"));
}

TEST_F(HostileSessionTest, NoEntryPoint) {
  Open("no_entry");
  const CallOutcome outcome = Call(0);
  EXPECT_EQ(outcome.end, End::kLoadFailed) << outcome.reason;
  EXPECT_THAT(outcome.reason, HasSubstr("kernelpro_run"));
}

TEST_F(HostileSessionTest, ClusterLaunchIsUnsupported) {
  Open("cluster");
  const CallOutcome outcome = Call(0);
  EXPECT_EQ(outcome.end, End::kUnsupported) << outcome.reason;
  EXPECT_THAT(outcome.reason, HasSubstr("cluster"));
}

TEST_F(HostileSessionTest, CompressedPtxIsSaid) {
  Open("compressed");
  const CallOutcome outcome = Call(0);
  EXPECT_EQ(outcome.end, End::kUnsupported) << outcome.reason;
  EXPECT_THAT(outcome.reason, HasSubstr("-no-compress"));
}

}  // namespace
}  // namespace kernelpro
