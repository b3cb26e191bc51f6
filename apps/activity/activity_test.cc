// SPDX-License-Identifier: Apache-2.0
// The injection library in a process of its own, with a CUPTI made by hand; and RunWithActivity.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "process/process.h"
#include "profile/activity_run.h"
#include "profile/activity_trace.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

constexpr const char* kFolder = KP_BINARY_DIR "/test_activity/";

ActivityRunOptions Options(const std::string& end, std::vector<std::string> environment = {}) {
  ActivityRunOptions options;
  options.argv = {kFolder + std::string("activity_program"), end};
  options.environment = std::move(environment);
  options.cupti = kFolder + std::string("libactivity_fake_cupti.so");
  options.wall = std::chrono::seconds(60);
  return options;
}

Error ErrorOf(const ActivityRunOptions& options) {
  auto run = RunWithActivity(options);
  return run.ok() ? Error{ErrorCode::kInternal, "no error", {}} : std::move(run).error();
}

TEST(Activity, LibraryIsBesideTheProgram) {
  EXPECT_EQ(ActivityLibrary().filename(), "libkernelpro-activity.so");
}

TEST(Activity, EveryKindOfRecordArrives) {
  const auto run = RunWithActivity(Options("exit"));
  ASSERT_TRUE(run.ok()) << run.error().message;
  const Profile& profile = run->profile;
  EXPECT_EQ(profile.device, "Fake \"GPU\" 9000");
  ASSERT_EQ(profile.kernels.size(), 2U);
  EXPECT_EQ(profile.kernels[0].name, "fill");  // two launches
  EXPECT_EQ(profile.kernels[0].Value("timeline.instances"), 2);
  EXPECT_EQ(profile.kernels[0].Value("launch__registers_per_thread"), 24);
  EXPECT_EQ(profile.kernels[1].name, "scale<float>");
  std::map<TimelineEvent::Kind, int> kinds;
  for (const TimelineEvent& event : profile.timeline) {
    ++kinds[event.kind];
  }
  EXPECT_EQ(kinds[TimelineEvent::Kind::kKernel], 3);
  EXPECT_EQ(kinds[TimelineEvent::Kind::kLaunch], 3);  // the driver's are inside the runtime's
  EXPECT_EQ(kinds[TimelineEvent::Kind::kCopy], 1);
  EXPECT_EQ(kinds[TimelineEvent::Kind::kSet], 1);
  EXPECT_EQ(kinds[TimelineEvent::Kind::kGraph], 1);
  EXPECT_EQ(kinds[TimelineEvent::Kind::kCompile], 1);
  EXPECT_THAT(profile.notes, Contains(HasSubstr("1 activities had not ended")));
  EXPECT_THAT(profile.notes, testing::Not(Contains(HasSubstr("exit handlers"))));
  EXPECT_TRUE(profile.system.contains("timeline.busy.pct"));
}

TEST(Activity, ProgramsThatSkipTheirExitHandlersKeepTheirTrace) {
  const auto left = RunWithActivity(Options("_exit"));
  ASSERT_TRUE(left.ok()) << left.error().message;
  EXPECT_EQ(left->profile.kernels.size(), 2U);
  EXPECT_THAT(left->profile.notes, Contains(HasSubstr("without its exit handlers")));
  const Error killed = ErrorOf(Options("kill"));
  EXPECT_EQ(killed.code, ErrorCode::kToolFailed);
  EXPECT_THAT(killed.message, HasSubstr("SIGKILL"));
}

TEST(Activity, ProfilerStopWritesAtOnce) {
  const auto run = RunWithActivity(Options("profiler"));
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->profile.kernels.size(), 2U);
}

TEST(Activity, TimeLimitGivesWhatWasTraced) {
  ActivityRunOptions options = Options("hang");
  options.wall = std::chrono::milliseconds(1500);
  const auto run = RunWithActivity(options);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->process.end, ProcessResult::End::kTimedOut);
  EXPECT_THAT(run->profile.notes, Contains(HasSubstr("until then")));
}

TEST(Activity, ChildrenDoNotSpoilTheTrace) {
  const auto forked = RunWithActivity(Options("fork"));
  ASSERT_TRUE(forked.ok()) << forked.error().message;
  EXPECT_EQ(forked->profile.kernels[0].Value("timeline.instances"), 2);  // and not 4
  const auto again = RunWithActivity(Options("again"));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_THAT(again->profile.notes, Contains(HasSubstr("2 processes of the run")));
}

TEST(Activity, NeverWritesIntoTheProgramsFiles) {
  TemporaryFolder folder = std::move(TemporaryFolder::Create("kernelpro-activity-test")).value();
  ProcessSpec spec;
  spec.argv = {kFolder + std::string("activity_program"), "daemon"};
  spec.environment = {"CUDA_INJECTION64_PATH=" + ActivityLibrary().string(),
                      "KERNELPRO_ACTIVITY_FILE=" + (folder.path() / "trace").string(),
                      std::string("KERNELPRO_CUPTI=") + kFolder + "libactivity_fake_cupti.so"};
  const auto result = RunProcess(spec);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->out, "size of its own file: 0\n");
}

TEST(Activity, LimitIsCounted) {
  ActivityRunOptions options = Options("exit", {"FAKE_CUPTI_KERNELS=100"});
  options.record_limit = 30;  // 10 kernels, each with its two calls; 307 records come
  const auto run = RunWithActivity(options);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_THAT(run->profile.notes, Contains(HasSubstr("277 records came after the limit")));
  EXPECT_LE(run->profile.timeline.size(), 30U);
}

TEST(Activity, FailuresSayWhatToDo) {
  const Error failed = ErrorOf(Options("fail"));
  EXPECT_EQ(failed.code, ErrorCode::kToolFailed);
  EXPECT_THAT(failed.message, HasSubstr("exited with 3"));
  const Error none = ErrorOf(Options("exit", {"FAKE_CUPTI_KERNELS=0", "FAKE_CUPTI_GRAPH=0"}));
  EXPECT_EQ(none.code, ErrorCode::kNotFound);
  EXPECT_THAT(none.message, HasSubstr("ran no kernel"));
  const Error host = ErrorOf(Options("host"));
  EXPECT_EQ(host.code, ErrorCode::kNotFound);
  EXPECT_THAT(host.message, HasSubstr("before it started CUDA"));
  ActivityRunOptions missing = Options("exit");
  missing.cupti = "/nowhere/libcupti.so.13";
  EXPECT_EQ(ErrorOf(missing).code, ErrorCode::kUnavailable);
  EXPECT_THAT(ErrorOf(missing).message, HasSubstr("KERNELPRO_CUPTI"));
  missing = Options("exit");
  missing.library = "/nowhere/lib.so";
  EXPECT_EQ(ErrorOf(missing).code, ErrorCode::kUnavailable);
  EXPECT_EQ(ErrorOf({}).code, ErrorCode::kInvalidArgument);
}

TEST(Activity, AnotherCuptiIsRefusedWithItsVersion) {
  const Error old = ErrorOf(Options("exit", {"FAKE_CUPTI_VERSION=28"}));
  EXPECT_EQ(old.code, ErrorCode::kUnavailable);
  EXPECT_THAT(old.message, HasSubstr("another major version (28"));
  const Error next = ErrorOf(Options("exit", {"FAKE_CUPTI_VERSION=140000"}));
  EXPECT_THAT(next.message, HasSubstr("140000"));
  EXPECT_TRUE(RunWithActivity(Options("exit", {"FAKE_CUPTI_VERSION=130200"})).ok());
}

TEST(Activity, RefusedKindsAreTold) {
  const auto run = RunWithActivity(Options("exit", {"FAKE_CUPTI_REFUSE=52"}));  // JIT
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_THAT(run->profile.notes, Contains(HasSubstr("JIT: CUPTI_ERROR_OF_THE_FAKE")));
  const Error kernels = ErrorOf(Options("exit", {"FAKE_CUPTI_REFUSE=10"}));
  EXPECT_EQ(kernels.code, ErrorCode::kUnavailable);
  EXPECT_THAT(kernels.message, HasSubstr("does not trace kernels"));
}

TEST(Activity, ExportsNothingButItsEntry) {
  ProcessSpec spec;
  spec.argv = {"nm", "-D", "--defined-only", ActivityLibrary().string()};
  const auto listed = RunProcess(spec);
  if (!listed.ok()) {
    GTEST_SKIP() << "nm is not there";
  }
  const auto lines = Lines(Trim(listed->out));
  ASSERT_EQ(lines.size(), 1U) << listed->out;
  EXPECT_TRUE(lines[0].ends_with("InitializeInjection"));
}

}  // namespace
}  // namespace kernelpro
