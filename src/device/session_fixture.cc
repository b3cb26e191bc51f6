// SPDX-License-Identifier: Apache-2.0
#include "device/session_fixture.h"

#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

namespace kernelpro {
namespace {

std::vector<float> Ramp(int count, float step) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<float>(i) * step;
  }
  return values;
}

}  // namespace

std::vector<std::string> LeftoverChildren() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    // pid (comm) state ppid ...
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) {
      continue;
    }
    const std::size_t close = line.rfind(')');
    std::istringstream rest(line.substr(close + 1));
    char state = 0;
    long parent = 0;
    rest >> state >> parent;
    if (parent == ::getpid()) {
      found.push_back(line.substr(0, close + 3));
    }
  }
  return found;
}

void SessionTest::SetUp() {
  auto device = OpenDevice("emulator:h200");
  ASSERT_TRUE(device) << device.error().message;
  device_ = std::move(device).value();
}

void SessionTest::TearDown() {
  session_.reset();
  EXPECT_THAT(LeftoverChildren(), ::testing::IsEmpty());
  Open("honest");
  const CallOutcome outcome = Call(kVectorAdd);
  EXPECT_EQ(outcome.end, CallOutcome::End::kReturned) << outcome.reason;
  ExpectSumInC();
  session_.reset();
  EXPECT_THAT(LeftoverChildren(), ::testing::IsEmpty());
}

void SessionTest::Open(const std::string& candidate) {
  Open(candidate, {});
}

void SessionTest::Open(const std::string& candidate, const SessionRequest& request) {
  SessionRequest with_library = request;
  with_library.library =
      std::filesystem::path(KP_BINARY_DIR) / "test_candidates" / (candidate + ".so");
  auto session = device_->Open(with_library);
  ASSERT_TRUE(session) << session.error().message;
  session_ = std::move(session).value();
  const std::uint64_t bytes = kElements * sizeof(float);
  const auto allocate = [&](const char* name, std::uint64_t size, bool read_only) {
    const auto id = session_->Allocate({name, size, read_only});
    // A session whose candidate failed to load has no buffers.
    return id ? *id : BufferId{0};
  };
  a_ = allocate("a", bytes, true);
  b_ = allocate("b", bytes, true);
  c_ = allocate("c", bytes, false);
  results_ = allocate("results", kResults * sizeof(double), false);
  if (c_ != 0) {
    const std::vector<float> a = Ramp(kElements, 1);
    const std::vector<float> b = Ramp(kElements, 0.5F);
    ASSERT_TRUE(session_->Write(a_, 0, std::as_bytes(std::span(a))));
    ASSERT_TRUE(session_->Write(b_, 0, std::as_bytes(std::span(b))));
  }
}

CallOutcome SessionTest::Call(int what, CallRequest request) {
  Arguments arguments{};
  arguments.n = kElements;
  arguments.what = what;
  request.arguments.resize(sizeof arguments);
  std::memcpy(request.arguments.data(), &arguments, sizeof arguments);
  if (c_ != 0) {
    request.pointers = {{offsetof(Arguments, a), a_},
                        {offsetof(Arguments, b), b_},
                        {offsetof(Arguments, c), c_},
                        {offsetof(Arguments, results), results_}};
  }
  auto outcome = session_->Call(request, {});
  if (!outcome) {
    ADD_FAILURE() << outcome.error().message;
    return {};
  }
  return std::move(outcome).value();
}

void SessionTest::ExpectDead() {
  const auto again = session_->Call({}, {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kUnavailable) << again.error().message;
}

std::vector<float> SessionTest::ReadC() {
  std::vector<float> values(kElements);
  EXPECT_TRUE(session_->Read(c_, 0, std::as_writable_bytes(std::span(values))));
  return values;
}

std::vector<double> SessionTest::ReadResults() {
  std::vector<double> values(kResults);
  EXPECT_TRUE(session_->Read(results_, 0, std::as_writable_bytes(std::span(values))));
  return values;
}

void SessionTest::ExpectSumInC() {
  const std::vector<float> c = ReadC();
  for (int i = 0; i < kElements; ++i) {
    ASSERT_EQ(c[static_cast<std::size_t>(i)], static_cast<float>(i) * 1.5F) << "at " << i;
  }
  EXPECT_TRUE(*session_->GuardsIntact(c_));
  EXPECT_TRUE(*session_->GuardsIntact(a_));
}

}  // namespace kernelpro
