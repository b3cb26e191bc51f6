// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "diagnose/diagnose.h"
#include "diagnose/h200_data.h"
#include "diagnose/test_profiles.h"
#include "profile/metric_names.h"

namespace kernelpro {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProfileBuilder;

std::size_t Words(const std::string& text) {
  std::istringstream in(text);
  std::size_t count = 0;
  for (std::string word; in >> word;) {
    ++count;
  }
  return count;
}

std::size_t Count(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

std::string Text(const ProfileBuilder& builder) {
  return FeedbackText(builder.Diagnosis(), builder.Profile());
}

ProfileBuilder Scattered() {
  ProfileBuilder b;
  b.Set(metric::kLoadSectors, 32e6).Set(metric::kLoadBytesPerSector, 4);
  b.Set(metric::kLoadRequests, 1e6);
  b.Set(metric::kL1Wavefronts, 34e6).Set(metric::kDramPct, 20).Set(metric::kL1Pct, 50);
  b.Line(7, metric::kLoadSectors, 32e6).Line(7, metric::kLoadBytesPerSector, 4);
  b.Task("floor_us", 12).Task("compulsory_bytes", 50e6);
  return b;
}

TEST(FeedbackText, EqualsTheGoldenFile) {
  const std::string path =
      std::string(KP_SOURCE_DIR) + "/tests/data/diagnose/feedback_scattered.txt";
  if (std::getenv("KERNELPRO_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << Text(Scattered());
  }
  std::ifstream in(path);
  std::stringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(Text(Scattered()), expected.str()) << "see " << path;
}

TEST(FeedbackText, HasTheFormOfAFinding) {
  const std::string text = Text(Scattered());
  for (const char* part : {"PRIMARY [", "WHERE   k.cu:7", "SEEN    ", "WHY     ", "DO      ",
                           "CHECK   metric ", "AVOID   ", "FLOOR   12.0 us", "LIMIT   "}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_EQ(Count(text, "PRIMARY"), 1U);
  EXPECT_LE(Count(text, "ALSO "), 2U);
}

TEST(FeedbackText, MetricNamesOnlyInTheCheck) {
  std::istringstream in(Text(Scattered()));
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("CHECK")) {
      EXPECT_THAT(line, Not(HasSubstr("__"))) << line;
    }
  }
}

TEST(FeedbackText, LengthAndDeterminismOnEveryMeasuredKernel) {
  for (const testing::H200Kernel& kernel : testing::H200Kernels()) {
    const Diagnosis d = Diagnose(kernel.profile, testing::H200Hardware());
    const std::string text = FeedbackText(d, kernel.profile);
    EXPECT_LE(Words(text), 350U) << kernel.name;
    if (!d.findings.empty()) {
      EXPECT_GE(Words(text), 200U) << kernel.name << '\n' << text;
    }
    EXPECT_EQ(text,
              FeedbackText(Diagnose(kernel.profile, testing::H200Hardware()), kernel.profile));
    EXPECT_EQ(text.find("nan"), std::string::npos) << kernel.name;
    EXPECT_EQ(text.find("inf "), std::string::npos) << kernel.name;
  }
}

/// No finding advises what another one, or its own line, forbids.
TEST(FeedbackText, DoesNotContradictItself) {
  for (const testing::H200Kernel& kernel : testing::H200Kernels()) {
    const Diagnosis d = Diagnose(kernel.profile, testing::H200Hardware());
    bool roof = false;
    bool latency = false;
    for (const Finding& f : d.findings) {
      roof = roof || (f.id == "mem.dram_roof" && f.severity > 0.9);
      latency = latency || f.id.starts_with("occ.") || f.id.starts_with("lat.");
    }
    EXPECT_FALSE(roof && latency) << kernel.name;
  }
}

TEST(FeedbackText, WithoutAFindingAsksForOneExperiment) {
  const std::string healthy = Text(ProfileBuilder());
  EXPECT_THAT(healthy, HasSubstr("NEXT    "));
  EXPECT_THAT(healthy, HasSubstr("FINE    Keep: global loads are coalesced"));
  EXPECT_THAT(healthy, Not(HasSubstr("PRIMARY")));
  EXPECT_THAT(Text(ProfileBuilder().Time(0)), HasSubstr("Repeat the measurement"));
  EXPECT_EQ(FeedbackText({}, {}), "No kernel was profiled.\n");
}

TEST(FeedbackText, EndsUselessIterationsAtTheFloor) {
  EXPECT_THAT(Text(ProfileBuilder().Task("floor_us", 95)), HasSubstr("Stop, or change the"));
}

}  // namespace
}  // namespace kernelpro
