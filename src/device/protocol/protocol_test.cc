// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "base/rng.h"
#include "device/protocol/bytes.h"
#include "device/protocol/control.h"
#include "device/protocol/cuda_error.h"
#include "device/protocol/frame.h"
#include "device/protocol/gpu_request.h"

namespace kernelpro::protocol {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) {
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

std::vector<std::byte> RandomBytes(Rng& rng, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(rng.Below(256));
  }
  return bytes;
}

TEST(BytesTest, FieldsAreLittleEndianAndComeBack) {
  ByteWriter out;
  out.U8(0xab);
  out.U16(0x1234);
  out.U32(0xdeadbeef);
  out.U64(0x0102030405060708);
  out.F64(-2.5);
  out.Text("warp");
  EXPECT_EQ(out.bytes()[1], std::byte{0x34});
  ByteReader in(out.bytes());
  EXPECT_EQ(in.U8(), 0xab);
  EXPECT_EQ(in.U16(), 0x1234);
  EXPECT_EQ(in.U32(), 0xdeadbeef);
  EXPECT_EQ(in.U64(), 0x0102030405060708U);
  EXPECT_EQ(in.F64(), -2.5);
  EXPECT_EQ(in.Text(), "warp");
  EXPECT_TRUE(in.Complete());
}

TEST(BytesTest, VarintsOfEveryLength) {
  for (unsigned shift = 0; shift < 64; ++shift) {
    for (const std::uint64_t value : {(1ULL << shift) - 1, 1ULL << shift, ~0ULL >> shift}) {
      ByteWriter out;
      out.Varint(value);
      ByteReader in(out.bytes());
      EXPECT_EQ(in.Varint(), value);
      EXPECT_TRUE(in.Complete());
    }
  }
  const auto bytes = Bytes({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80});
  ByteReader endless(bytes);
  (void)endless.Varint();
  EXPECT_FALSE(endless.ok());
}

TEST(BytesTest, AShortInputFailsOnceAndForAll) {
  const auto bytes = Bytes({1, 2, 3});
  ByteReader in(bytes);
  EXPECT_EQ(in.U32(), 0U);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.U8(), 0);
  const auto lie = Bytes({100, 1});
  ByteReader lying(lie);
  EXPECT_TRUE(lying.Blob().empty());
  EXPECT_FALSE(lying.ok());
}

TEST(FrameTest, AnySplitGivesTheSameFrames) {
  const Frame first{7, 42, Bytes({1, 2, 3})};
  const Frame second{8, 43, {}};
  std::vector<std::byte> stream = EncodeFrame(first);
  const auto more = EncodeFrame(second);
  stream.insert(stream.end(), more.begin(), more.end());
  for (std::size_t split = 0; split <= stream.size(); ++split) {
    FrameReader reader(16);
    std::vector<Frame> got;
    for (const auto part : {std::span(stream).first(split), std::span(stream).subspan(split)}) {
      reader.Feed(part);
      while (auto frame = reader.Next()) {
        got.push_back(*frame);
      }
    }
    ASSERT_EQ(got.size(), 2U) << "split at " << split;
    EXPECT_EQ(got[0].payload, first.payload);
    EXPECT_EQ(got[0].sequence, 42U);
    EXPECT_EQ(got[1].kind, 8);
    EXPECT_FALSE(reader.broken());
    EXPECT_FALSE(reader.pending());
  }
}

TEST(FrameTest, TooLargeOrAnotherVersionBreaksTheStream) {
  FrameReader small(3);
  small.Feed(EncodeFrame({1, 1, Bytes({1, 2, 3, 4})}));
  EXPECT_FALSE(small.Next());
  EXPECT_TRUE(small.broken());
  small.Feed(EncodeFrame({1, 1, {}}));
  EXPECT_FALSE(small.Next());

  auto stream = EncodeFrame({1, 1, {}});
  stream[4] = std::byte{99};
  FrameReader other(100);
  other.Feed(stream);
  EXPECT_FALSE(other.Next());
  EXPECT_TRUE(other.broken());
}

TEST(FrameTest, RandomStreamsAreSafe) {
  Rng rng(1);
  for (int round = 0; round < 2000; ++round) {
    FrameReader reader(64);
    for (int part = 0; part < 4; ++part) {
      auto bytes = RandomBytes(rng, rng.Below(40));
      if (bytes.size() > 6 && rng.Below(2) == 0) {  // Plausible headers, to get further in.
        std::memset(bytes.data(), 0, 6);
        bytes[0] = static_cast<std::byte>(rng.Below(80));
        bytes[4] = std::byte{1};
      }
      reader.Feed(bytes);
      while (const auto frame = reader.Next()) {
        EXPECT_LE(frame->payload.size(), 64U);
        (void)DecodeGpuRequest(*frame);
        (void)DecodeGpuReply(*frame);
      }
    }
  }
}

TEST(GpuRequestTest, ComesBack) {
  const GpuRequest request{GpuOp::kLaunch, {1, 0, ~0ULL}, Bytes({9, 8})};
  const auto got = DecodeGpuRequest(ToFrame(request, 5));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->op, GpuOp::kLaunch);
  EXPECT_EQ(got->values, request.values);
  EXPECT_EQ(got->bytes, request.bytes);
  EXPECT_EQ(got->Value(3), 0U);
  const GpuReply reply{-3, {4}, Bytes({1})};
  const Frame frame = ToFrame(reply, ToFrame(request, 5));
  EXPECT_EQ(frame.sequence, 5U);
  const auto answer = DecodeGpuReply(frame);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error, -3);
  EXPECT_EQ(answer->values, reply.values);
}

TEST(GpuRequestTest, LiesAreRefused) {
  Frame frame = ToFrame(GpuRequest{GpuOp::kMalloc, {64}, {}}, 1);
  frame.payload.push_back(std::byte{0});  // Something left over.
  EXPECT_FALSE(DecodeGpuRequest(frame));
  frame.payload.resize(frame.payload.size() - 2);  // Something missing.
  EXPECT_FALSE(DecodeGpuRequest(frame));
  EXPECT_FALSE(DecodeGpuRequest({0, 1, Bytes({0, 0})}));  // No such request.
  EXPECT_FALSE(DecodeGpuRequest({999, 1, Bytes({0, 0})}));
  ByteWriter many;
  many.Varint(1'000'000);  // That many integers, in as many bytes.
  many.Raw(std::vector<std::byte>(1'000'001));
  EXPECT_FALSE(DecodeGpuRequest({1, 1, many.Take()}));
}

simt::Fault SomeFault() {
  simt::Fault fault;
  fault.kind = simt::FaultKind::kRace;
  fault.fatal = false;
  fault.message = "two warps";
  fault.kernel = "k";
  fault.cta = {1, 2, 3};
  fault.thread = {4, 5, 6};
  fault.instruction = 7;
  fault.file = "k.cu";
  fault.line = 8;
  fault.ptx_line = 9;
  fault.address = 0xabcdef0123;
  fault.allocation = "x + 4";
  fault.count = 10;
  return fault;
}

EmulatedLaunch SomeLaunch() {
  EmulatedLaunch launch;
  launch.report.kernel = "k";
  launch.report.grid = {10, 11, 12};
  launch.report.block = {13, 14, 15};
  launch.report.static_shared = 16;
  launch.report.dynamic_shared = 17;
  launch.report.ctas = 18;
  launch.report.ctas_executed = 19;
  launch.report.ctas_per_sm_assumed = 20;
  launch.report.sampled = true;
  launch.report.instructions.resize(2);
  launch.report.instructions[1].lanes_on = ~0ULL;
  launch.report.instructions[1].divergent = 21;
  launch.report.allocations = {{"x", 1, 2, 3, 4, 5, 6}};
  launch.report.called = {{"f", std::vector<simt::InstructionCounters>(3)}};
  launch.report.called[0].instructions[2].warps = 28;
  launch.report.atomics = {22, 23, 29};
  launch.report.barriers = 24;
  launch.report.faults = {SomeFault()};
  launch.report.printed = "device says";
  launch.instructions = {{"ld.global.f32", 1, 2}, {"ret", 3, 4}};
  launch.files = {"", "k.cu"};
  launch.time.time_us = 0.25;
  launch.time.registers_estimated = true;
  launch.time.bounds = {{"dram", 5.5, 1}};
  launch.time.occupancy.limit_ctas = 25;
  launch.time.shared_store_wavefronts = 26;
  launch.resources.spill_load_bytes = 27;
  launch.resources_estimated = true;
  return launch;
}

CallReport SomeReport() {
  CallReport report;
  report.launches = {SomeLaunch(), SomeLaunch()};
  report.launches_left_out = 1;
  report.faults = {SomeFault()};
  report.device_us = 3.5;
  report.errors = {{9, true, "too many threads"}};
  report.unsupported = "clusters";
  report.sticky_error = 700;
  report.out_of_memory = true;
  report.stray_requests = 2;
  report.malformed = true;
  report.host_to_device_bytes = 3;
  report.device_to_host_bytes = 4;
  return report;
}

TEST(ControlTest, ReportsComeBackWhole) {
  const Frame frame = ToFrame(ControlKind::kEndCall, 77, SomeReport());
  const auto got = DecodeControl<CallReport>(frame);
  ASSERT_TRUE(got);
  // Encoding is a function of every field: equal bytes mean equal reports.
  EXPECT_EQ(ToFrame(ControlKind::kEndCall, 77, *got).payload, frame.payload);
  ASSERT_EQ(got->launches.size(), 2U);
  const EmulatedLaunch& launch = got->launches[1];
  EXPECT_EQ(launch.report.block, (simt::Dim3{13, 14, 15}));
  EXPECT_EQ(launch.report.instructions[1].lanes_on, ~0ULL);
  EXPECT_EQ(launch.report.instructions[1].divergent, 21U);
  ASSERT_EQ(launch.report.called.size(), 1U);
  EXPECT_EQ(launch.report.called[0].instructions[2].warps, 28U);
  EXPECT_EQ(launch.report.atomics.hottest_sector_requests, 29U);
  EXPECT_EQ(launch.report.allocations[0].miss_write, 6U);
  EXPECT_EQ(launch.report.faults[0].address, 0xabcdef0123U);
  EXPECT_EQ(launch.report.faults[0].kind, simt::FaultKind::kRace);
  EXPECT_FALSE(launch.report.faults[0].fatal);
  EXPECT_EQ(launch.report.printed, "device says");
  EXPECT_EQ(launch.instructions[0].opcode, "ld.global.f32");
  EXPECT_EQ(launch.instructions[1].line, 4U);
  EXPECT_EQ(launch.time.bounds[0].cycles, 5.5);
  EXPECT_EQ(launch.time.occupancy.limit_ctas, 25U);
  EXPECT_EQ(launch.time.shared_store_wavefronts, 26);
  EXPECT_EQ(launch.resources.spill_load_bytes, 27U);
  EXPECT_TRUE(launch.resources_estimated && launch.time.registers_estimated);
  EXPECT_EQ(got->errors[0].text, "too many threads");
  EXPECT_TRUE(got->errors[0].launch && got->malformed && got->out_of_memory);
  EXPECT_EQ(got->sticky_error, 700);
  EXPECT_EQ(got->device_to_host_bytes, 4U);
}

TEST(ControlTest, NegativeAndLargestNumbersComeBack) {
  CallReport report;
  report.sticky_error = -1;
  report.device_us = std::numeric_limits<double>::infinity();
  report.launches_left_out = ~0ULL;
  const auto got = DecodeControl<CallReport>(ToFrame(ControlKind::kEndCall, 1, report));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->sticky_error, -1);
  EXPECT_EQ(got->device_us, report.device_us);
  EXPECT_EQ(got->launches_left_out, ~0ULL);
}

TEST(ControlTest, OtherMessagesComeBack) {
  OpenMessage open;
  open.kernels["k"].registers_per_thread = 40;
  open.kernels["l"].static_shared_bytes = 9;
  EXPECT_EQ(DecodeControl<OpenMessage>(ToFrame(ControlKind::kOpen, 1, open))
                ->kernels.at("k")
                .registers_per_thread,
            40U);
  const AllocateMessage allocate{"x", 10, 8192, 4096, true};
  const auto got = DecodeControl<AllocateMessage>(ToFrame(ControlKind::kAllocate, 1, allocate));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->name, "x");
  EXPECT_EQ(got->offset, 4096U);
  EXPECT_TRUE(got->read_only);
  const auto begin = DecodeControl<BeginCallMessage>(
      ToFrame(ControlKind::kBeginCall, 1, BeginCallMessage{CallMode::kTime, 5}));
  ASSERT_TRUE(begin);
  EXPECT_EQ(begin->mode, CallMode::kTime);
  EXPECT_TRUE(DecodeControl<EndCallMessage>(ToFrame(ControlKind::kEndCall, 1, EndCallMessage{})));
  EXPECT_EQ(DecodeControl<Answer>(ToFrame(ControlKind::kFree, 1, Answer{7, "no"}))->error, "no");
}

TEST(ControlTest, CutAndRandomPayloadsAreRefused) {
  const Frame whole = ToFrame(ControlKind::kEndCall, 1, SomeReport());
  for (std::size_t size = 0; size < whole.payload.size(); ++size) {
    Frame cut = whole;
    cut.payload.resize(size);
    EXPECT_FALSE(DecodeControl<CallReport>(cut)) << size;
  }
  Rng rng(2);
  for (int round = 0; round < 3000; ++round) {
    Frame frame = whole;
    for (std::uint64_t flips = 1 + rng.Below(4); flips > 0; --flips) {
      frame.payload[rng.Below(frame.payload.size())] = static_cast<std::byte>(rng.Below(256));
    }
    (void)DecodeControl<CallReport>(frame);
    frame.payload = RandomBytes(rng, rng.Below(200));
    (void)DecodeControl<CallReport>(frame);
    (void)DecodeControl<OpenMessage>(frame);
    (void)DecodeControl<AllocateMessage>(frame);
  }
}

TEST(CudaErrorTest, NamesAndTexts) {
  EXPECT_STREQ(CudaErrorName(0), "cudaSuccess");
  EXPECT_STREQ(CudaErrorName(700), "cudaErrorIllegalAddress");
  EXPECT_STREQ(CudaErrorText(700), "an illegal memory access was encountered");
  EXPECT_STREQ(CudaErrorName(kErrorUnknown), "cudaErrorUnknown");
  EXPECT_STREQ(CudaErrorText(123456), "unrecognized error code");
  EXPECT_TRUE(IsStickyCudaError(kErrorIllegalAddress));
  EXPECT_FALSE(IsStickyCudaError(kErrorInvalidConfiguration));
}

}  // namespace
}  // namespace kernelpro::protocol
