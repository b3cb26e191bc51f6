// SPDX-License-Identifier: Apache-2.0
// What must work: real libraries made by nvcc, whole sessions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <stop_token>
#include <thread>

#include "device/session_fixture.h"

namespace kernelpro {
namespace {

using End = CallOutcome::End;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HonestSessionTest : public SessionTest {
 protected:
  /// Opens honest.cu, calls and expects success.
  CallOutcome Succeed(int what, CallRequest request = {}) {
    Open("honest");
    CallOutcome outcome = Call(what, std::move(request));
    EXPECT_EQ(outcome.end, End::kReturned) << outcome.reason;
    EXPECT_EQ(outcome.cuda_error, 0) << outcome.cuda_error_name << ": " << outcome.reason;
    EXPECT_TRUE(outcome.faults.empty()) << outcome.faults.front().message;
    return outcome;
  }
};

TEST_F(HonestSessionTest, VectorAddComputesCountsAndTakesTime) {
  const CallOutcome outcome = Succeed(kVectorAdd);
  ExpectSumInC();
  ASSERT_EQ(outcome.launches.size(), 1U);
  const EmulatedLaunch& launch = outcome.launches[0];
  EXPECT_EQ(launch.report.kernel, "_Z3AddPKfS0_Pfi");
  EXPECT_EQ(launch.report.grid, (simt::Dim3{4, 1, 1}));
  EXPECT_EQ(launch.report.block, (simt::Dim3{256, 1, 1}));
  EXPECT_EQ(launch.report.ctas_executed, 4U);
  EXPECT_EQ(launch.instructions.size(), launch.report.instructions.size());
  // Two loads and one store of 1,000 floats: 1,000 lanes each, from the lines of honest.cu.
  std::uint64_t load_lanes = 0;
  std::uint64_t store_lanes = 0;
  for (std::size_t i = 0; i < launch.instructions.size(); ++i) {
    const auto& instruction = launch.instructions[i];
    if (instruction.opcode.starts_with("ld.global")) {
      load_lanes += launch.report.instructions[i].lanes_on;
      ASSERT_LT(instruction.file, launch.files.size());
      EXPECT_THAT(launch.files[instruction.file], HasSubstr("honest.cu"));
    }
    if (instruction.opcode.starts_with("st.global")) {
      store_lanes += launch.report.instructions[i].lanes_on;
    }
  }
  EXPECT_EQ(load_lanes, 2000U);
  EXPECT_EQ(store_lanes, 1000U);
  EXPECT_GT(outcome.device_us, 0);
}

TEST_F(HonestSessionTest, TellsWhatKeepsTheCandidateIn) {
  Open("honest");
  bool filtered = false;
  for (const SandboxMeasure& measure : session_->sandbox()) {
    EXPECT_FALSE(measure.detail.empty()) << measure.name;
    filtered = filtered || (measure.name == "seccomp" && measure.on);
  }
  EXPECT_TRUE(filtered);
}

TEST_F(HonestSessionTest, ASessionTakesManyCallsWithFreshInputs) {
  Open("honest");
  for (int i = 0; i < 5; ++i) {
    const std::vector<float> ones(kElements, static_cast<float>(i));
    ASSERT_TRUE(session_->Write(a_, 0, std::as_bytes(std::span(ones))));
    const CallOutcome outcome = Call(kVectorAdd);
    ASSERT_EQ(outcome.end, End::kReturned) << outcome.reason;
    EXPECT_EQ(outcome.launches.size(), 1U);
    EXPECT_EQ(ReadC()[10], static_cast<float>(i) + 5.0F);
  }
}

TEST_F(HonestSessionTest, TimeModeSamplesAndModels) {
  CallRequest request;
  request.mode = CallMode::kTime;
  const CallOutcome outcome = Succeed(kVectorAdd, request);
  ASSERT_EQ(outcome.launches.size(), 1U);
  EXPECT_GT(outcome.launches[0].time.time_us, 0);
  EXPECT_FALSE(outcome.launches[0].time.bounds.empty());
  EXPECT_TRUE(std::isfinite(outcome.device_us));
  EXPECT_DOUBLE_EQ(outcome.device_us, outcome.launches[0].time.time_us);
}

TEST_F(HonestSessionTest, PtxasFiguresReplaceTheEstimate) {
  SessionRequest request;
  request.kernels["_Z3AddPKfS0_Pfi"].registers_per_thread = 77;
  Open("honest", request);
  const CallOutcome with = Call(kVectorAdd);
  ASSERT_EQ(with.launches.size(), 1U);
  EXPECT_EQ(with.launches[0].resources.registers_per_thread, 77U);
  EXPECT_FALSE(with.launches[0].resources_estimated);
  const CallOutcome without = Call(kAlignedVector);
  ASSERT_EQ(without.launches.size(), 1U);
  EXPECT_TRUE(without.launches[0].resources_estimated);
}

TEST_F(HonestSessionTest, SymbolsAreWrittenReadAndUsed) {
  Succeed(kSymbols);
  const auto results = ReadResults();
  EXPECT_EQ(results[0], 7);   // table[6], from its initialiser
  EXPECT_EQ(results[1], 50);  // table[7], written
  EXPECT_EQ(results[2], 32);  // sizeof table
  EXPECT_EQ(results[3], 3);   // table[2] through its address
  const auto c = ReadC();
  EXPECT_EQ(c[0], 1);  // 0 * 10 + table[0]
  EXPECT_EQ(c[15], 15 * 10 + 50);
}

TEST_F(HonestSessionTest, StreamsAndEventsFollowTheModelledClock) {
  const CallOutcome outcome = Succeed(kStreamsAndEvents);
  ExpectSumInC();
  const auto results = ReadResults();
  ASSERT_EQ(outcome.launches.size(), 1U);
  EXPECT_FLOAT_EQ(static_cast<float>(results[0]),
                  static_cast<float>(outcome.launches[0].time.time_us * 1e-3));
  EXPECT_EQ(results[1], 400);  // elapsed time of an event without timing
  EXPECT_EQ(results[2], 400);  // a destroyed stream
  EXPECT_EQ(results[3], 400);  // cudaGetLastError gives it
  EXPECT_EQ(results[4], 0);    // and clears it
}

TEST_F(HonestSessionTest, OccupancyAndAttributes) {
  Succeed(kOccupancy);
  const auto results = ReadResults();
  EXPECT_EQ(results[0], 8);  // 2,048 threads of an SM / 256
  EXPECT_GE(results[1], 132);
  EXPECT_EQ(static_cast<int>(results[2]) % 32, 0);
  EXPECT_GT(results[3], 0);
  EXPECT_EQ(results[4], 1024);
  EXPECT_EQ(results[5], 48 * 1024);
  EXPECT_EQ(results[6], 90);
}

TEST_F(HonestSessionTest, PropertiesMatchTheRealHeaders) {
  Succeed(kProperties);
  // Read by code that nvcc compiled against the toolkit's cudaDeviceProp. An H200's figures.
  const std::vector<double> want = {132,   132,   232448, 232448, 9,     0,  32,
                                    2048,  65535, 64,     49152,  0,     1,  1,
                                    13000, 101,   1,      1,      65536, 32, 233472};
  auto got = ReadResults();
  got.resize(want.size());
  EXPECT_EQ(got, want);
}

TEST_F(HonestSessionTest, CopiesAndFills) {
  const CallOutcome outcome = Succeed(kCopies);
  const auto results = ReadResults();
  EXPECT_THAT(std::vector<double>(results.begin(), results.begin() + 4), ElementsAre(0, 1, 4, 5));
  EXPECT_EQ(results[4], 1);  // cudaFree of what was freed already
  const auto c = ReadC();
  EXPECT_EQ(c[kElements / 2 - 1], kElements / 2 - 1);
  EXPECT_EQ(c[kElements / 2], 0);
  EXPECT_EQ(outcome.device_to_host_bytes, kElements * 4U + 16U);
  EXPECT_EQ(outcome.host_to_device_bytes, kElements / 2 * 4U + 5U * 8U);
  EXPECT_GT(outcome.device_us, 0);
}

TEST_F(HonestSessionTest, LaunchExtendedWithoutAttributes) {
  Succeed(kLaunchExtended);
  ExpectSumInC();
}

TEST_F(HonestSessionTest, LargeSharedMemoryWithTheAttribute) {
  const CallOutcome outcome = Succeed(kLargeShared);
  ASSERT_EQ(outcome.launches.size(), 1U);
  EXPECT_EQ(outcome.launches[0].report.dynamic_shared, 96U * 1024U);
  EXPECT_EQ(ReadC()[999], 999);
}

TEST_F(HonestSessionTest, ThreadsOfTheCallWork) {
  Succeed(kHostThread);
  ExpectSumInC();
}

TEST_F(HonestSessionTest, OutputIsKept) {
  EXPECT_EQ(Succeed(kPrintOnce).printed, "hello from the host\n");
}

TEST_F(HonestSessionTest, ModestMemoryIsGranted) {
  Succeed(kModestMemory);
  ExpectSumInC();
}

TEST_F(HonestSessionTest, ShortHostWorkIsNoTimeout) {
  Succeed(kShortSleep);
  ExpectSumInC();
}

TEST_F(HonestSessionTest, AlignedVectorsAndUniformBarriers) {
  Succeed(kAlignedVector);
  EXPECT_EQ(ReadC()[255], 255);
  Succeed(kUniformBarrier);
  EXPECT_EQ(ReadC()[999], 999);
}

TEST_F(HonestSessionTest, PrepareIsCalledWhereItExists) {
  CallRequest request;
  request.prepare = true;
  Succeed(kNothing, request);
  std::uint32_t word = 0;
  ASSERT_TRUE(session_->Read(c_, 16, std::as_writable_bytes(std::span(&word, 1))));
  EXPECT_EQ(word, 0x3f3f3f3fU);
  Open("hostile");
  const CallOutcome without = Call(kNothing, request);
  EXPECT_EQ(without.end, End::kReturned) << without.reason;
}

TEST_F(HonestSessionTest, StaticConstructorsMayAllocate) {
  Open("constructor_allocates");
  const CallOutcome outcome = Call(0);
  EXPECT_EQ(outcome.end, End::kReturned) << outcome.reason;
  ExpectSumInC();
}

TEST_F(HonestSessionTest, BuffersAreZeroedBoundedAndFreed) {
  Open("honest");
  const auto id = session_->Allocate({"fresh", 10'001, false});
  ASSERT_TRUE(id);
  std::vector<std::byte> bytes(10'001, std::byte{1});
  ASSERT_TRUE(session_->Read(*id, 0, bytes));
  EXPECT_EQ(bytes, std::vector<std::byte>(10'001));
  EXPECT_FALSE(session_->Read(*id, 1, bytes));
  EXPECT_FALSE(session_->Write(*id, 10'001, std::span(bytes).first(1)));
  EXPECT_TRUE(*session_->GuardsIntact(*id));
  ASSERT_TRUE(session_->Free(*id));
  EXPECT_FALSE(session_->Read(*id, 0, bytes));
  EXPECT_FALSE(session_->Free(*id));
  const auto huge = session_->Allocate({"huge", 1ULL << 44U, false});
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, ErrorCode::kUnavailable);
}

TEST_F(HonestSessionTest, ACallCanBeStopped) {
  Open("hostile");
  std::stop_source source;
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    source.request_stop();
  });
  CallRequest request;
  Arguments arguments{};
  arguments.what = kHostLoop;
  const auto bytes = std::as_bytes(std::span(&arguments, 1));
  request.arguments.assign(bytes.begin(), bytes.end());
  const auto outcome = session_->Call(request, source.get_token());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kCancelled);
  ExpectDead();
}

TEST(DeviceTest, ChoicesAreNamed) {
  EXPECT_EQ(OpenDevice("auto").value()->info().id, "emulator:h200");
  EXPECT_THAT(OpenDevice("auto").value()->info().title, HasSubstr("emulated"));
  EXPECT_EQ(OpenDevice("emulator").value()->info().arch, "sm_90");
  // Far beyond what any machine has; without a driver that is what is missing.
  const auto cuda = OpenDevice("cuda:999");
  ASSERT_FALSE(cuda);
  EXPECT_THAT(cuda.error().message, AnyOf(HasSubstr("libcuda.so.1"), HasSubstr("no GPU 999")));
  EXPECT_FALSE(OpenDevice("cuda:one"));
  const auto odd = OpenDevice("quantum");
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(OpenDevice("emulator:abacus"));
  EXPECT_FALSE(OpenDevice("emulatorish"));
}

TEST(DeviceTest, AMissingLibraryIsNotFound) {
  const auto session = OpenDevice("emulator").value()->Open({"/no/such/library.so", {}});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace kernelpro
