// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/playbook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stop_token>
#include <string>

#include "propose/playbook/testing/fixture.h"

namespace kernelpro::playbook {
namespace {

using ::testing::HasSubstr;

const std::string kRows = Program(R"(constexpr int kThreads = 128;
__global__ void K(const float* a, float* c, int m, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m) return;
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += a[row * n + i];
  c[row] = sum / 3.0f;
}
)",
                                  "  K<<<(m + kThreads - 1) / kThreads, kThreads, 0, stream>>>"
                                  "(args->a, args->c, m, n);");

TEST(Playbook, UnparsableCandidateIsDeclinedWithClangsWords) {
  const auto answer =
      Ask(SharedPlaybook(), SmallTask(), "#include \"kernelpro_task.h\"\nint x = ;\n");
  EXPECT_TRUE(answer.proposals.empty());
  ASSERT_EQ(answer.declined.size(), 1U);
  EXPECT_THAT(answer.declined[0].why, HasSubstr("line 2: expected expression"));
  const auto noise = Ask(SharedPlaybook(), SmallTask(),
                         "\x7f"
                         "ELF\x01\x02\xff\xfe{{{{");
  EXPECT_TRUE(noise.proposals.empty());
  EXPECT_EQ(noise.declined.size(), 1U);
}

TEST(Playbook, CandidateWithoutKernelIsSaidSo) {
  const auto answer = Ask(SharedPlaybook(), SmallTask(), "#include \"kernelpro_task.h\"\n");
  EXPECT_TRUE(answer.proposals.empty());
  EXPECT_THAT(WhyNot(answer, "playbook"), HasSubstr("defines no __global__ function"));
}

TEST(Playbook, MostPromisingFirstAndNoTwoAlike) {
  const auto answer =
      Ask(SharedPlaybook(), SmallTask(), kRows,
          {MakeFinding("lat.ilp", 0.4, 0.3), MakeFinding("mem.coalesce_ld", 1, 0.9)});
  std::set<std::string> sources = {kRows};
  double last = 1;
  for (const Proposal& proposal : answer.proposals) {
    EXPECT_TRUE(sources.insert(proposal.candidate.source).second) << proposal.action;
    EXPECT_LE(proposal.prior, last) << proposal.action;
    EXPECT_GT(proposal.prior, 0) << proposal.action;
    EXPECT_FALSE(proposal.reason.empty());
    last = proposal.prior;
  }
  ASSERT_FALSE(answer.proposals.empty());
  EXPECT_EQ(answer.proposals[0].action, "warp_per_row(K)");
  EXPECT_EQ(answer.proposals[0].finding, "mem.coalesce_ld");
  const Proposal* tunable = Find(answer, "tune_constant(kThreads=256)");
  ASSERT_NE(tunable, nullptr);
  EXPECT_EQ(tunable->finding, "");
}

TEST(Playbook, FindingsOfAnotherKernelDoNotCount) {
  Finding elsewhere = MakeFinding("mem.coalesce_ld", 1, 0.9);
  elsewhere.kernel = "Other";
  const auto answer = Ask(SharedPlaybook(), SmallTask(), kRows, {elsewhere});
  const Proposal* proposal = Find(answer, "warp_per_row(K)");
  ASSERT_NE(proposal, nullptr);
  EXPECT_EQ(proposal->finding, "");
  elsewhere.kernel = "ns::K<float>(float const*)";
  const auto here = Ask(SharedPlaybook(), SmallTask(), kRows, {elsewhere});
  EXPECT_EQ(Find(here, "warp_per_row(K)")->finding, "mem.coalesce_ld");
}

TEST(Playbook, SameRequestSameAnswer) {
  const auto first = Ask(SharedPlaybook(), SmallTask(), kRows);
  const auto fresh = MakePlaybook({});
  const auto second = Ask(*fresh, SmallTask(), kRows);
  ASSERT_EQ(first.proposals.size(), second.proposals.size());
  for (std::size_t i = 0; i < first.proposals.size(); ++i) {
    EXPECT_EQ(first.proposals[i].action, second.proposals[i].action);
    EXPECT_EQ(first.proposals[i].candidate.source, second.proposals[i].candidate.source);
  }
}

TEST(Playbook, FlagsOfTheParentAreKept) {
  const Task task = SmallTask();
  const Candidate parent{kRows, {"-maxrregcount=64"}};
  const Diagnosis diagnosis;
  const Profile profile;
  const auto answer = SharedPlaybook().Propose({task, parent, diagnosis, profile, 0}, {});
  ASSERT_TRUE(answer.ok());
  for (const Proposal& proposal : answer->proposals) {
    EXPECT_EQ(proposal.candidate.flags, parent.flags);
  }
}

TEST(Playbook, StopsWhenAsked) {
  const Task task = SmallTask();
  const Candidate parent{kRows, {}};
  const Diagnosis diagnosis;
  const Profile profile;
  std::stop_source stop;
  stop.request_stop();
  const auto answer =
      SharedPlaybook().Propose({task, parent, diagnosis, profile, 0}, stop.get_token());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kCancelled);
}

TEST(Playbook, MissingToolkitIsAnError) {
  const auto playbook = MakePlaybook({.cuda_include_folder = "/nonexistent"});
  const Task task = SmallTask();
  const Candidate parent{kRows, {}};
  const Diagnosis diagnosis;
  const Profile profile;
  const auto answer = playbook->Propose({task, parent, diagnosis, profile, 0}, {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace kernelpro::playbook
