// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "profile/metric_names.h"
#include "profile/ncu_failure.h"
#include "profile/nvidia_tool.h"

namespace kernelpro {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

NcuRequest Request(const std::string& mode) {
  NcuRequest request;
  request.ncu = std::filesystem::path(KP_SOURCE_DIR) / "tests/data/ncu/fake_ncu.sh";
  request.argv = {"/bin/true"};
  request.metrics = {std::string(metric::kDuration), std::string(metric::kDramPct),
                     "made__up_nothing.sum"};
  request.environment = {{"PATH=/usr/bin:/bin", "FAKE_NCU=" + mode}};
  request.limit = std::chrono::seconds(60);
  return request;
}

Error ErrorOf(const NcuRequest& request) {
  const Result<NcuRun> run = RunNcu(request, {});
  EXPECT_FALSE(run.ok());
  return run.ok() ? Error{} : run.error();
}

/// Whether the process of this number is gone, or a zombie, within a while.
bool Ends(pid_t pid) {
  for (int i = 0; i < 500; ++i) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    if (!(stat >> number >> name >> state) || state == "Z") {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(RunNcu, ReadsCountersAsMeasured) {
  const Result<NcuRun> run = RunNcu(Request("ok"), {});
  ASSERT_TRUE(run.ok()) << run.error().message;
  ASSERT_EQ(run->profile.kernels.size(), 1U);
  const KernelProfile& kernel = run->profile.kernels[0];
  EXPECT_EQ(kernel.name, "ns::scale<(int)4>");
  EXPECT_DOUBLE_EQ(kernel.time_us, 100);
  EXPECT_EQ(kernel.Value(metric::kDramPct), 85.5);
  EXPECT_EQ(kernel.metrics.at(std::string(metric::kDramPct)).provenance, Provenance::kMeasured);
  EXPECT_THAT(kernel.missing, ElementsAre("made__up_nothing.sum"));
  EXPECT_TRUE(run->profile.notes.empty());
  EXPECT_THAT(run->raw_csv, HasSubstr("\"ID\","));
  EXPECT_TRUE(run->source_csv.empty());
}

TEST(RunNcu, ReadsSamplesFromTheReport) {
  NcuRequest request = Request("ok");
  request.source_page = true;
  const Result<NcuRun> run = RunNcu(request, {});
  ASSERT_TRUE(run.ok()) << run.error().message;
  const KernelProfile& kernel = run->profile.kernels.at(0);
  EXPECT_EQ(kernel.Value(metric::kDramPct), 85.5);
  ASSERT_EQ(kernel.hot_spots.size(), 2U);
  EXPECT_EQ(kernel.hot_spots[0].instruction, "FFMA R5, R2, R7, R4");
  EXPECT_EQ(kernel.hot_spots[0].address, 0x10U);
  EXPECT_EQ(kernel.hot_spots[0].stalls.at("long_scoreboard"), 450);
}

TEST(RunNcu, CountersStayWhenTheSourcePageIsNoTable) {
  NcuRequest request = Request("bad_source");
  request.source_page = true;
  const Result<NcuRun> run = RunNcu(request, {});
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->profile.kernels.at(0).Value(metric::kDramPct), 85.5);
  EXPECT_THAT(run->profile.notes, Contains(HasSubstr("No instruction was sampled")));
}

TEST(RunNcu, CommandLeavesClocksAloneAndNamesWhatIsAsked) {
  NcuRequest request = Request("ok");
  request.kernel = "scale";
  request.launch_skip = 3;
  request.profile_from_start = false;
  request.replay = NcuRequest::Replay::kApplication;
  const std::vector<std::string> command = NcuCommand(request, "/l", "/r");
  EXPECT_THAT(command, IsSupersetOf({"--clock-control", "--cache-control", "none", "--launch-skip",
                                     "3", "--profile-from-start", "off", "application",
                                     "--print-units", "base", "--print-fp"}));
  EXPECT_EQ(command.back(), "/bin/true");
  EXPECT_THAT(command, Not(Contains("--set")));
  const auto name = std::ranges::find(command, "--kernel-name");
  ASSERT_NE(name, command.end());
  EXPECT_EQ(*(name + 1), "scale");
}

std::string FilterFor(const std::string& kernel, std::string* base) {
  NcuRequest request = Request("ok");
  request.kernel = kernel;
  const std::vector<std::string> command = NcuCommand(request, "/l", "/r");
  const auto based = std::ranges::find(command, "--kernel-name-base");
  *base = based == command.end() ? "" : *(based + 1);
  const auto name = std::ranges::find(command, "--kernel-name");
  return name == command.end() ? "" : *(name + 1);
}

TEST(RunNcu, KernelNamesAreMeantAsTheyStand) {
  std::string base;
  EXPECT_EQ(FilterFor("", &base), "");
  EXPECT_EQ(FilterFor("_Z5scalePf", &base), "_Z5scalePf");
  EXPECT_EQ(base, "mangled");
  EXPECT_EQ(FilterFor("regex:sc.*", &base), "regex:sc.*");
  EXPECT_EQ(base, "");
  const std::string filter = FilterFor("ns::f<4>", &base);
  EXPECT_EQ(base, "demangled");
  EXPECT_TRUE(filter.starts_with("regex:"));
  EXPECT_TRUE(FilterFor("--export", &base).starts_with("regex:"));
}

TEST(RunNcu, PermissionDeniedNamesTheThreeFixes) {
  for (const bool source_page : {false, true}) {
    NcuRequest request = Request("permission");
    request.source_page = source_page;
    const Error error = ErrorOf(request);
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_THAT(error.message,
                AllOf(HasSubstr("ERR_NVGPUCTRPERM"), HasSubstr("SYS_ADMIN"),
                      HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"), HasSubstr("provider")));
  }
}

TEST(RunNcu, SaysWhatElseWentWrong) {
  NcuRequest request = Request("no_kernel");
  request.kernel = "scael";
  Error error = ErrorOf(request);
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, AllOf(HasSubstr("\"scael\""), HasSubstr("copy, ns::scale")));

  request = Request("app_error");
  request.argv = {"/bin/false"};
  error = ErrorOf(request);
  EXPECT_EQ(error.code, ErrorCode::kToolFailed);
  EXPECT_THAT(error.message, HasSubstr("returned an error code (1)"));

  error = ErrorOf(Request("driver"));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("nvidia-smi"));

  error = ErrorOf(Request("not_loaded"));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("Failed to initialize the profiler: LibraryNotLoaded"));

  EXPECT_EQ(ErrorOf(Request("garbage")).code, ErrorCode::kParse);
  EXPECT_EQ(ErrorOf(Request("silent")).code, ErrorCode::kNotFound);

  request = Request("ok");
  request.ncu = "/nowhere/ncu";
  EXPECT_EQ(ErrorOf(request).code, ErrorCode::kNotFound);
  request = Request("ok");
  request.argv = {"--import"};
  EXPECT_EQ(ErrorOf(request).code, ErrorCode::kInvalidArgument);
}

TEST(RunNcu, MetricsThatNcuDoesNotKnowAreMissingAndTheOthersAreThere) {
  const Result<NcuRun> run = RunNcu(Request("old_chip"), {});
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->profile.kernels.at(0).Value(metric::kDramPct), 85.5);
  EXPECT_THAT(run->profile.kernels.at(0).missing, ElementsAre("made__up_nothing.sum"));
  // Nothing is left to ask for.
  NcuRequest request = Request("old_chip");
  request.metrics = {"made__up_nothing.sum"};
  EXPECT_EQ(ErrorOf(request).code, ErrorCode::kToolFailed);
}

TEST(RunNcu, AFailureAfterTheKernelIsANote) {
  NcuRequest request = Request("ok");
  request.argv = {"/bin/false"};
  const Result<NcuRun> run = RunNcu(request, {});
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_THAT(run->profile.notes, Contains(HasSubstr("exited with 1")));
}

TEST(RunNcu, TheProgramCannotPassOffATableOfItsOwn) {
  NcuRequest request = Request("no_kernel");
  request.argv = {"/bin/echo", "\"ID\",\"Kernel Name\",\"x.sum\"\n\"0\",\"k\",\"1\""};
  EXPECT_EQ(ErrorOf(request).code, ErrorCode::kNotFound);
  request = Request("ok");
  request.argv = {"/bin/echo", "\"ID\",\"Kernel Name\",\"x.sum\"\n\"0\",\"forged\",\"1\""};
  const Result<NcuRun> run = RunNcu(request, {});
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->profile.kernels.at(0).name, "ns::scale<(int)4>");
}

TEST(RunNcu, TimeLimitAndStopLeaveNoProcess) {
  const Result<TemporaryFolder> folder = TemporaryFolder::Create("kp-ncu-test");
  ASSERT_TRUE(folder.ok());
  for (const bool by_stop : {false, true}) {
    const std::filesystem::path pid_file = folder->path() / (by_stop ? "stop" : "limit");
    NcuRequest request = Request("hang");
    request.environment->push_back("FAKE_NCU_PID=" + pid_file.string());
    std::stop_source source;
    std::jthread stopper;
    if (by_stop) {
      stopper = std::jthread([&] {
        while (!std::filesystem::exists(pid_file) || std::filesystem::file_size(pid_file) == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        source.request_stop();
      });
    } else {
      request.limit = std::chrono::seconds(2);
    }
    const Result<NcuRun> run = RunNcu(request, source.get_token());
    ASSERT_FALSE(run.ok());
    EXPECT_EQ(run.error().code, by_stop ? ErrorCode::kCancelled : ErrorCode::kTimeout);
    std::ifstream in(pid_file);
    pid_t pid = 0;
    ASSERT_TRUE(in >> pid);
    EXPECT_TRUE(Ends(pid));
  }
}

TEST(NvidiaTool, SaysWhereItLooked) {
  const NvidiaTool tool = FindNvidiaTool("no-such-tool", "/somewhere/cuda");
  EXPECT_FALSE(tool.found());
  EXPECT_THAT(NotFoundMessage("no-such-tool", tool),
              AllOf(HasSubstr("/somewhere/cuda/bin"), HasSubstr("$PATH")));
  const Result<std::string> version = NvidiaToolVersion(Request("ok").ncu);
  ASSERT_TRUE(version.ok()) << version.error().message;
  EXPECT_EQ(*version, "2025.3.1.0");
  EXPECT_FALSE(NvidiaToolVersion("/bin/false").ok());
}

TEST(NcuFailure, ListsTheKernelsThatWereSeen) {
  EXPECT_THAT(KernelsSeen("==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. a\n"
                          " 2. b<c>\nThe end\n3. not one"),
              ElementsAre("a", "b<c>"));
  EXPECT_TRUE(KernelsSeen("1. a").empty());
}

}  // namespace
}  // namespace kernelpro
