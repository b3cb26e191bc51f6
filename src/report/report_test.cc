// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "base/text.h"
#include "report/diff.h"
#include "report/format.h"
#include "report/json.h"
#include "report/progress.h"
#include "report/text.h"
#include "search/record.h"

namespace kernelpro::report {
namespace {

using ::testing::HasSubstr;

TEST(Diff, ShowsOneChangeWithContext) {
  EXPECT_EQ(UnifiedDiff("1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nfive\n6\n7\n8\n", "a", "b"),
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
  EXPECT_EQ(UnifiedDiff("same\n", "same\n", "a", "b"), "");
  EXPECT_EQ(UnifiedDiff("", "x\n", "a", "b"), "--- a\n+++ b\n@@ -1,0 +1,1 @@\n+x\n");
}

/// Applying the edits must give the new text: an independent reading of the format.
std::string Apply(const std::string& before, const std::string& diff) {
  const auto old_lines = Lines(before);
  std::string out;
  std::size_t at = 0;
  for (const std::string_view line : Lines(diff)) {
    if (line.starts_with("---") || line.starts_with("+++")) {
      continue;
    }
    if (line.starts_with("@@")) {
      long long begin = 0;
      EXPECT_TRUE(ParseInteger(line.substr(4, line.find(',') - 4), &begin));
      for (; at + 1 < static_cast<std::size_t>(begin); ++at) {
        out += std::string(old_lines[at]) + "\n";
      }
      continue;
    }
    if (line[0] != '+') {
      EXPECT_EQ(old_lines[at], line.substr(1));
      ++at;
    }
    if (line[0] != '-') {
      out += std::string(line.substr(1)) + "\n";
    }
  }
  for (; at < old_lines.size(); ++at) {
    out += std::string(old_lines[at]) + "\n";
  }
  return out;
}

TEST(Diff, AppliesToGiveTheNewText) {
  Rng rng(11);
  for (int trial = 0; trial < 300; ++trial) {
    std::string a;
    std::string b;
    for (int i = 0; i < 30; ++i) {
      const std::string line = std::string(1, static_cast<char>('a' + rng.Below(4))) + "\n";
      a += rng.Below(5) == 0 ? "" : line;
      b += rng.Below(5) == 0 ? "" : line;
    }
    EXPECT_EQ(Apply(a, UnifiedDiff(a, b, "a", "b")), b);
  }
}

TEST(Format, TimesHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(FormatTime(4.2), "4.20 us");
  EXPECT_EQ(FormatTime(104.4), "104 us");
  EXPECT_EQ(FormatTime(1274), "1.27 ms");
  EXPECT_EQ(FormatTime(999.9), "1.00 ms");
  EXPECT_EQ(FormatTime(0.05), "0.05 us");
  EXPECT_EQ(FormatTime(2.5e6), "2.50 s");
}

TEST(Progress, LineSaysWhereItStands) {
  search::Progress p;
  p.evaluated = 12;
  p.limit = 40;
  p.seed_us = 282;
  p.best_us = 104;
  p.verdicts = {{"ok", 11}, {"race", 1}};
  p.time_left = std::chrono::seconds(252);
  EXPECT_EQ(ProgressLine(p), "12/40 evaluated  best 104 us (2.71x)  11 ok, 1 race  4:12 left");
}

TEST(Text, FindingIsWhole) {
  Finding f;
  f.id = "mem.coalesce_ld";
  f.title = "Uncoalesced global loads";
  f.kernel = "Softmax";
  f.severity = 0.9;
  f.bound = 0.8;
  f.file = "candidate.cu";
  f.line = 12;
  f.seen = "4.0 of 32 bytes per sector are used (want >= 28).";
  f.action = "Let neighbouring lanes read neighbouring addresses.";
  const std::string text = FindingText(f);
  EXPECT_THAT(text, HasSubstr("[critical] Uncoalesced global loads at candidate.cu:12 in Softmax"));
  EXPECT_THAT(text, HasSubstr("80% of its time, 5.00x"));
  EXPECT_THAT(text, HasSubstr("4.0 of 32 bytes"));
}

TEST(Text, PathLeadsFromTheRoot) {
  std::vector<store::NodeRecord> nodes(4);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].id = static_cast<store::NodeId>(i + 1);
  }
  nodes[1].parent = 1;
  nodes[2].parent = 1;
  nodes[3].parent = 2;
  const auto path = PathTo(nodes, 4);
  ASSERT_EQ(path.size(), 3U);
  EXPECT_EQ(path[0].id, 1);
  EXPECT_EQ(path[2].id, 4);
}

TEST(Json, KeysOfTheContract) {
  search::SearchResult r;
  r.root.time_us = 200;
  r.root.provenance = r.best.provenance = "modelled";
  r.best.id = 5;
  r.best.time_us = 50;
  r.best.verdict = "ok";
  r.best.source = "code \xff";
  r.evaluated = 7;
  r.verdicts = {{"ok", 7}};
  const Json j = Json::parse(search::Dump(SearchJson(r, "t", {.id = "emulator:h200"})));
  EXPECT_EQ(j["task"], "t");
  EXPECT_EQ(j["device"], "emulator:h200");
  EXPECT_EQ(j["evaluations"], 7);
  EXPECT_EQ(j["verdicts"]["ok"], 7);
  EXPECT_EQ(j["seed"]["time_us"], 200.0);
  EXPECT_EQ(j["best"]["speedup"], 4.0);
  EXPECT_EQ(j["best"]["node"], 5);
}

TEST(Json, ATimeThatIsNotOneIsNull) {
  Evaluation e;
  e.verdict = Verdict::kWrongResult;
  e.checks.push_back(
      {"w", true, 1, {{.tensor = "y", .worst_ratio = std::numeric_limits<double>::infinity()}}});
  const Json j = Json::parse(search::Dump(search::EvaluationJson(e)));
  EXPECT_TRUE(j["time_us"].is_null());
  EXPECT_EQ(j["verdict"], "wrong_result");
  EXPECT_EQ(j["checks"][0]["workload"], "hidden") << "the name of a hidden workload stays hidden";
  EXPECT_TRUE(j["checks"][0]["outputs"][0]["worst_ratio"].is_null());
  EXPECT_TRUE(j["precision_class"].is_null()) << "not looked at";
  EXPECT_EQ(j["evidence"]["seeds"], 1);
  EXPECT_EQ(j["evidence"]["shapes"], 1);
}

}  // namespace
}  // namespace kernelpro::report
