// SPDX-License-Identifier: Apache-2.0
// The logs here are written after the format that NVIDIA documents; a stand-in for the tool shows
// what is made of the ways it can end.
#include "evaluate/sanitizers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/rng.h"
#include "device/protocol/once.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kClean = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n";

constexpr const char* kWrite = R"(========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at Scale(const float *, float *, long)+0x130 in /tmp/build/candidate.cu:9
=========     by thread (1,0,0) in block (4,0,0)
=========     Access to 0x7f241b0001e0 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f241b000000 of size 480 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: kernelpro_run [0x8a81] in candidate.so
=========
========= ERROR SUMMARY: 31 errors
========= ERROR SUMMARY: 26 errors were not printed. Use --print-limit option to adjust the number of printed errors
)";

constexpr const char* kRace = R"(========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at Sum(int *, int *)+0x90 in candidate.cu:41
=========     and Read access at Sum(int *, int *)+0x100 in candidate.cu:51 [508 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
)";

constexpr const char* kUninitialised = R"(========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at Sum(int *)+0x70 in candidate.cu:41
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
=========
========= ERROR SUMMARY: 1 error
)";

constexpr const char* kBarrier = R"(========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at [clone Sum(int *, int *)] Outline()+0x11f0 in helper.cuh:42
=========     by thread (32,0,0) in block (0,0,0)
=========         Device Frame: Sum(int *, int *)+0xe40 in candidate.cu:60
=========
========= ERROR SUMMARY: 32 errors
)";

TEST(SanitizerLog, CleanIsComplete) {
  const SanitizerLog log = ParseSanitizerLog(kClean);
  EXPECT_TRUE(log.complete);
  EXPECT_EQ(log.errors, 0U);
  EXPECT_EQ(DescribeFinding(log), "");
  const SanitizerLog races = ParseSanitizerLog(
      "========= RACECHECK SUMMARY: 3 hazards displayed (0 errors, 3 warnings)\n");
  EXPECT_TRUE(races.complete);
  EXPECT_EQ(races.errors, 0U);
  EXPECT_EQ(races.warnings, 3U);
}

TEST(SanitizerLog, EveryToolsFindingHasKernelAndSource) {
  const SanitizerLog write = ParseSanitizerLog(kWrite);
  EXPECT_EQ(write.errors, 31U);  // Not the 26 that were not printed.
  EXPECT_EQ(DescribeFinding(write),
            "Invalid __global__ write of size 4 bytes in Scale(const float *, float *, long) "
            "(candidate.cu:9)");
  EXPECT_FALSE(write.misaligned);
  const SanitizerLog race = ParseSanitizerLog(kRace);
  EXPECT_EQ(race.errors, 1U);
  EXPECT_EQ(DescribeFinding(race),
            "Race reported between Write access in Sum(int *, int *) (candidate.cu:41)");
  EXPECT_EQ(DescribeFinding(ParseSanitizerLog(kUninitialised)),
            "Uninitialized __global__ memory read of size 4 bytes in Sum(int *) (candidate.cu:41)");
  const SanitizerLog barrier = ParseSanitizerLog(kBarrier);
  EXPECT_EQ(barrier.errors, 32U);
  EXPECT_EQ(DescribeFinding(barrier),
            "Barrier error detected. Divergent thread(s) in block in Sum(int *, int *) "
            "(candidate.cu:60)");
}

TEST(SanitizerLog, OtherFormsOfTheSame) {
  const SanitizerLog old = ParseSanitizerLog(
      "========= Invalid __shared__ read of size 16 bytes\n"
      "=========     at 0x120 in /a/candidate.cu:17:ns::Kernel(float*)\n"
      "=========     Address 0x7f00 is misaligned\n"
      "========= ERROR SUMMARY: 1 error\n");
  EXPECT_EQ(DescribeFinding(old),
            "Invalid __shared__ read of size 16 bytes in ns::Kernel(float*) (candidate.cu:17)");
  EXPECT_TRUE(old.misaligned);
  const SanitizerLog bare = ParseSanitizerLog(
      "========= Invalid __global__ read of size 4 bytes\n=========     at Kernel(int)+0x60\n");
  EXPECT_EQ(DescribeFinding(bare), "Invalid __global__ read of size 4 bytes in Kernel(int)");
  const SanitizerLog host = ParseSanitizerLog(
      "========= Host API memory access error at host access to 0x130 of size 256 bytes\n"
      "=========     Uninitialized access at 0x134 on access by cudaMemcpy source.\n"
      "========= ERROR SUMMARY: 1 error\n");
  EXPECT_EQ(host.errors, 1U);
  EXPECT_THAT(host.kind, HasSubstr("Host API"));
  const SanitizerLog hazard = ParseSanitizerLog(
      "========= Warning: (Warp Level Programming) Potential RAW hazard detected at __shared__\n"
      "========= Error: Potential WAW hazard detected at __shared__ 0x0 in block (0,0,0) :\n"
      "=========     Write Thread (0,0,0) at Sum(int *)+0x90 in candidate.cu:4\n");
  EXPECT_EQ(hazard.errors, 1U);
  EXPECT_THAT(hazard.kind, HasSubstr("WAW"));
}

TEST(SanitizerLog, AToolThatWasKilledHasFoundWhatItPrinted) {
  const std::string text =
      std::string(kBarrier).substr(0, std::string(kBarrier).find("========= ERR"));
  const SanitizerLog log = ParseSanitizerLog(text);
  EXPECT_FALSE(log.complete);
  EXPECT_EQ(log.errors, 1U);
}

TEST(SanitizerLog, ItsOwnTroubleIsNoFinding) {
  const SanitizerLog log = ParseSanitizerLog(
      "========= COMPUTE-SANITIZER\n"
      "========= Error: Target application terminated before first instrumented API call\n");
  EXPECT_EQ(log.errors, 0U);
  EXPECT_FALSE(log.complete);
  EXPECT_THAT(log.trouble, HasSubstr("terminated before"));
}

TEST(SanitizerLog, WhatTheCandidatePrintsIsNotRead) {
  const SanitizerLog log =
      ParseSanitizerLog("ERROR SUMMARY: 0 errors\n= ERROR SUMMARY: 7 errors\n");
  EXPECT_FALSE(log.complete);
  EXPECT_EQ(log.errors, 0U);
}

TEST(SanitizerLog, ABannerDrawnWithTheSameSignIsNotRead) {
  const SanitizerLog log = ParseSanitizerLog(
      "========= COMPUTE-SANITIZER\n"
      "========================================\n"
      "=========ERROR SUMMARY: 7 errors\n"
      "=========Invalid argument\n"
      "========= Invalid __global__ read of size 4 bytes\n"
      "========================================\n"
      "=========     at Kernel(int)+0x60 in k.cu:3\n"
      "========= ERROR SUMMARY: 1 error\n");
  EXPECT_TRUE(log.complete);
  EXPECT_EQ(log.errors, 1U);
  EXPECT_EQ(DescribeFinding(log),
            "Invalid __global__ read of size 4 bytes in Kernel(int) (k.cu:3)");
}

TEST(SanitizerLog, FieldSampleWithABanner) {
  const char* folder = std::getenv("KERNELPRO_FIELD_PROFILES");  // NOLINT(concurrency-mt-unsafe)
  if (folder == nullptr || !std::filesystem::exists(folder)) {
    GTEST_SKIP() << "skipped: KERNELPRO_FIELD_PROFILES names no folder of field samples";
  }
  const auto text = ReadFile(std::filesystem::path(folder) / "37_compute_sanitizer_clean.txt");
  ASSERT_TRUE(text.ok()) << text.error().message;
  const SanitizerLog log = ParseSanitizerLog(*text);
  EXPECT_TRUE(log.complete);
  EXPECT_EQ(log.errors, 0U);
  EXPECT_EQ(log.trouble, "");
}

TEST(SanitizerLog, AnyTextIsTaken) {
  for (const char* text :
       {"", "=========", "========= ", "========= ERROR SUMMARY:", "========= ERROR SUMMARY: x",
        "========= ERROR SUMMARY: 99999999999999999999999999 errors", "=========     at ",
        "========= RACECHECK SUMMARY: 1 hazard displayed (", "========= RACECHECK SUMMARY: 1 , (",
        "========= Error:", "========= Invalid \n=========     at  in \n=========     at 0x in :",
        "========= Race reported between x access at ", "=========     Device Frame:"}) {
    (void)ParseSanitizerLog(text);
  }
  // Every beginning of a real text, and every real text with bytes changed.
  Rng rng(7);
  for (const std::string whole : {kWrite, kRace, kBarrier}) {
    for (std::size_t n = 0; n < whole.size(); ++n) {
      EXPECT_LE(ParseSanitizerLog(whole.substr(0, n)).errors, 57U);
    }
    for (int i = 0; i < 300; ++i) {
      std::string changed = whole;
      for (int k = 0; k < 5; ++k) {
        changed[rng.Below(changed.size())] = static_cast<char>(rng.Below(256));
      }
      const SanitizerLog log = ParseSanitizerLog(changed);
      EXPECT_LE(DescribeFinding(log).size(), 1000U);
    }
  }
  const SanitizerLog nasty = ParseSanitizerLog(
      "========= Invalid \x1b[2J\xff write\n=========     at K\x07()+0x1 in a\x1b.cu:3\n");
  EXPECT_THAT(DescribeFinding(nasty), Not(HasSubstr("\x1b")));
}

TEST(Once, WhatIsWrittenIsRead) {
  const std::vector<std::byte> contents(24, std::byte{7});
  protocol::OnceCall call;
  call.image.resize(32);
  call.tensors = {{.offset = 8, .bytes = 24, .output = false, .contents = contents},
                  {.offset = 24, .bytes = 100, .output = true}};
  protocol::ByteWriter out;
  protocol::EncodeOnceStart(2, out);
  protocol::EncodeOnceCall(call, out);
  protocol::EncodeOnceCall(call, out);
  const auto read = protocol::DecodeOnce(out.bytes());
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2U);
  const auto& tensors = (*read)[1].tensors;
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].offset, 8U);
  EXPECT_EQ(std::vector(tensors[0].contents.begin(), tensors[0].contents.end()), contents);
  EXPECT_TRUE(tensors[1].output);
  EXPECT_EQ(tensors[1].bytes, 100U);
  for (std::size_t n = 0; n < out.bytes().size(); ++n) {
    EXPECT_FALSE(protocol::DecodeOnce(std::span(out.bytes()).first(n))) << n;
  }
}

TEST(Once, APointerOutsideTheImageIsRefused) {
  for (const std::uint32_t offset : {24U, 25U, 32U, 0xffffffffU}) {
    protocol::OnceCall call;
    call.image.resize(32);
    call.tensors = {{.offset = offset, .bytes = 4, .output = true}};
    protocol::ByteWriter out;
    protocol::EncodeOnceStart(1, out);
    protocol::EncodeOnceCall(call, out);
    EXPECT_EQ(protocol::DecodeOnce(out.bytes()).has_value(), offset == 24) << offset;
  }
}

ProcessResult Ended(int code, const std::string& out) {
  ProcessResult ended;
  ended.exit_code = code;
  ended.out = out;
  return ended;
}

SanitizerRun Judge(const std::string& tool, const std::string& log, const ProcessResult& ended) {
  return JudgeSanitizerRun(tool, ParseSanitizerLog(log), ended, {});
}

const std::string kDone = std::string(protocol::kOnceDone) + "\n";

TEST(Sanitizers, CleanNeedsExitCodeCountAndEveryCall) {
  EXPECT_TRUE(Judge("memcheck", kClean, Ended(0, kDone)).ran);
  EXPECT_FALSE(Judge("memcheck", kClean, Ended(99, kDone)).ran);
  EXPECT_FALSE(Judge("memcheck", kClean, Ended(0, "")).ran);  // exit(0) within a call
  EXPECT_FALSE(Judge("memcheck", "", Ended(0, kDone)).ran);
  ProcessResult late = Ended(0, "");
  late.end = ProcessResult::End::kTimedOut;
  EXPECT_FALSE(Judge("memcheck", "", late).ran);
  const SanitizerRun hung = Judge("synccheck", kBarrier, late);
  EXPECT_TRUE(hung.ran);
  EXPECT_EQ(hung.errors, 32U);
}

TEST(Sanitizers, FindingsBecomeVerdicts) {
  const std::vector<std::tuple<std::string, std::string, Verdict>> cases = {
      {"memcheck", kWrite, Verdict::kOutOfBounds},
      {"memcheck",
       "========= Invalid __global__ read of size 4 bytes\n"
       "=========     Address 0x7f02 is misaligned\n========= ERROR SUMMARY: 1 error\n",
       Verdict::kRuntimeError},
      {"racecheck", kRace, Verdict::kRace},
      {"initcheck", kUninitialised, Verdict::kNondeterministic},
      {"synccheck", kBarrier, Verdict::kRuntimeError}};
  for (const auto& [tool, text, verdict] : cases) {
    SanitizerReport report;
    report.workloads = 1;
    report.runs = {Judge("memcheck", kClean, Ended(0, kDone)), Judge(tool, text, Ended(99, kDone))};
    EXPECT_FALSE(report.Clean());
    const auto condemned = JudgeSanitizers(report);
    ASSERT_TRUE(condemned) << tool;
    EXPECT_EQ(Name(condemned->verdict), Name(verdict)) << tool;
    EXPECT_THAT(condemned->reason, HasSubstr(tool));
    EXPECT_THAT(Describe(report), HasSubstr(tool + " FOUND"));
  }
  SanitizerReport clean;
  clean.workloads = 2;
  clean.runs = {Judge("memcheck", kClean, Ended(0, kDone))};
  EXPECT_TRUE(clean.Clean());
  EXPECT_FALSE(JudgeSanitizers(clean));
  EXPECT_EQ(Describe(clean), "memcheck clean (2 workloads)");
  // A tool that did not run is said, and condemns nobody.
  clean.runs.push_back(Judge("racecheck", "", Ended(1, "")));
  EXPECT_FALSE(clean.Clean());
  EXPECT_FALSE(JudgeSanitizers(clean));
  EXPECT_THAT(Describe(clean), HasSubstr("racecheck did not run: "));
}

constexpr const char* kTask = R"(name = "scale"
axes = ["n"]
flops = "n"
[tensors.x]
dtype = "f32"
role = "input"
shape = ["n"]
[tensors.out]
dtype = "f32"
role = "output"
shape = ["n"]
[[workloads]]
name = "timed"
kind = "timed"
axes = {n = 1000}
[[workloads]]
name = "small"
kind = "checked"
axes = {n = 1000}
[[workloads]]
name = "large"
kind = "checked"
axes = {n = 16777216}
)";

/// compute-sanitizer's stand-in: finds races, leaves a pipe for a log, is clean otherwise.
constexpr const char* kStandIn = R"sh(#!/bin/sh
tool="$2"
while [ "$1" != --log-file ]; do shift; done
log="$2"
while [ "$1" != --once ]; do shift; done
test -r "$2" && test "$(head -c 8 "$3")" = KPONCE01 || exit 3
if [ "$tool" = racecheck ]; then
  echo "========= Error: Race reported between Write access at Sum(int *)+0x90 in a.cu:41" > "$log"
  echo "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)" >> "$log"
  exit 99
fi
if [ "$tool" = synccheck ]; then
  mkfifo "$log"   # What reads it must not wait for a writer.
  exit 0
fi
test ! -e "$TMPDIR/left" || exit 5   # Each tool has a fresh folder.
touch "$TMPDIR/left"
echo "========= ERROR SUMMARY: 0 errors" > "$log"
echo "kernelpro-runner: all calls returned"
)sh";

TEST(Sanitizers, RunsEveryToolInAFolderOfItsOwn) {
  auto folder = TemporaryFolder::Create("kp-sanitizers");
  ASSERT_TRUE(folder.ok());
  auto task = ParseTask(kTask, "task.toml");
  ASSERT_TRUE(task.ok()) << task.error().message;
  const fs::path toolkit = folder->path() / "toolkit";
  const fs::path tool = toolkit / "bin" / "compute-sanitizer";
  ASSERT_TRUE(WriteFileAtomically(tool, kStandIn).ok());
  fs::permissions(tool, fs::perms::owner_all);
  ASSERT_TRUE(WriteFileAtomically(folder->path() / "candidate.so", "library").ok());
  EXPECT_EQ(FindComputeSanitizer(toolkit), tool);

  SanitizerRequest request;
  request.toolkit = toolkit;
  request.tool = tool;
  request.library = folder->path() / "candidate.so";
  request.recipe = {.runner = "/bin/true", .runtime = "/usr/lib/libcudart.so", .gpu_uuid = "GPU-1"};
  const auto report = RunSanitizers(*task, request, {});
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->runs.size(), 4U);
  EXPECT_EQ(report->workloads, 1U);
  EXPECT_EQ(report->left_out, 1U);
  const auto& runs = report->runs;
  EXPECT_TRUE(runs[0].ran && runs[0].errors == 0) << runs[0].first_message;
  EXPECT_TRUE(runs[1].ran && runs[1].errors == 1) << runs[1].first_message;
  EXPECT_TRUE(runs[2].ran && runs[2].errors == 0) << runs[2].first_message;
  EXPECT_FALSE(runs[3].ran);
  EXPECT_FALSE(report->confinement.empty());
  EXPECT_EQ(
      Describe(*report),
      "memcheck, initcheck clean; racecheck FOUND 1 error: Race reported between Write access "
      "in Sum(int *) (a.cu:41); synccheck did not run: it wrote no count of errors (1 "
      "workload, 1 too large)");
}

TEST(Sanitizers, ATaskOfLargeWorkloadsIsLeftOut) {
  auto task = ParseTask(kTask, "task.toml");
  ASSERT_TRUE(task.ok());
  std::erase_if(task->workloads, [](const Workload& w) { return w.name == "small"; });
  const auto report = RunSanitizers(*task, {}, {});
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->Clean());
  EXPECT_THAT(Describe(*report), HasSubstr("nothing was run"));
}

}  // namespace
}  // namespace kernelpro
