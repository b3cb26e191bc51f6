// SPDX-License-Identifier: Apache-2.0
#include "profile/permission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace kernelpro {
namespace {

using State = CounterPermission::State;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kRestricted = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\nX: 0\n";
constexpr const char* kOpen = "RmProfilingAdminOnly: 0\n";
constexpr const char* kRoot = "Name:\tx\nCapEff:\t000001ffffffffff\n";
constexpr const char* kDocker = "CapEff:\t00000000a80425fb\n";  // Docker's default set
constexpr const char* kNothing = "CapEff:\t0000000000000000\n";
constexpr const char* kMachine = "         0          0 4294967295\n";

TEST(CounterPermission, FollowsDriverAndCapability) {
  EXPECT_EQ(JudgeCounterPermission(kOpen, kNothing, kMachine).state, State::kAllowed);
  EXPECT_EQ(JudgeCounterPermission(kRestricted, kRoot, kMachine).state, State::kAllowed);
  for (const char* status : {kDocker, kNothing}) {
    const CounterPermission refused = JudgeCounterPermission(kRestricted, status, kMachine);
    EXPECT_EQ(refused.state, State::kRefused);
    EXPECT_THAT(refused.why, HasSubstr("CAP_SYS_ADMIN"));
  }
}

TEST(CounterPermission, SaysWhenItCannotTell) {
  EXPECT_EQ(JudgeCounterPermission(std::nullopt, kRoot, kMachine).state, State::kNoDriver);
  EXPECT_EQ(JudgeCounterPermission("Version: 1\n", kRoot, kMachine).state, State::kUnknown);
  EXPECT_EQ(JudgeCounterPermission(kRestricted, "", kMachine).state, State::kUnknown);
  // Root inside a user name space only.
  EXPECT_EQ(JudgeCounterPermission(kRestricted, kRoot, "0 1000 1\n").state, State::kUnknown);
  EXPECT_EQ(JudgeCounterPermission(kOpen, kNothing, "0 1000 1\n").state, State::kAllowed);
}

TEST(CounterPermission, ParsersTakeOnlyWhatTheyKnow) {
  EXPECT_EQ(CountersForAdministratorsOnly("RmProfilingAdminOnly: 2\n"), std::nullopt);
  EXPECT_EQ(CountersForAdministratorsOnly(""), std::nullopt);
  EXPECT_EQ(EffectiveCapabilities("CapEff:\t00000000a80425fb"), std::uint64_t{0xa80425fb});
  EXPECT_EQ(EffectiveCapabilities("CapEff:\tzz"), std::nullopt);
  EXPECT_EQ(EffectiveCapabilities("CapEff:\t00000000000000000000000000000001ff"),
            std::uint64_t{0x1ff});
  EXPECT_EQ(EffectiveCapabilities("CapEff:\tffffffffffffffffffff"), std::nullopt);
  EXPECT_THAT(CounterFixes(), SizeIs(3));
}

}  // namespace
}  // namespace kernelpro
