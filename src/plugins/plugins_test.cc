// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "diagnose/diagnose.h"
#include "plugins/external_tool.h"
#include "plugins/rules_folder.h"

namespace kernelpro::plugins {
namespace {

using std::chrono_literals::operator""ms;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("kp_plugins_" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }

  ~Folder() { fs::remove_all(path_); }

  fs::path Write(const std::string& name, const std::string& text, bool executable = false) const {
    std::ofstream(path_ / name) << text;
    if (executable) {
      fs::permissions(path_ / name, fs::perms::owner_all);
    }
    return path_ / name;
  }

  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Profile OneKernel() {
  Profile profile;
  KernelProfile kernel;
  kernel.name = "k";
  kernel.mangled = "k";
  kernel.time_us = 100;
  kernel.metrics["dram__bytes.sum.pct_of_peak_sustained_elapsed"] = {50, "%",
                                                                     Provenance::kMeasured};
  kernel.metrics["sm__much.sum"] = {7, "", Provenance::kMeasured};
  profile.kernels.push_back(kernel);
  return profile;
}

constexpr const char* kRule = R"x(id = "my.rule"
title = "Mine"
source = "me"
needs = ["sm__much.sum"]
severity = "ramp(sm__much.sum, 0, 10)"
bound = "0.5"
seen = "{sm__much.sum:0}."
why = "w."
do = ["d."]
check = "c."
avoid = "a."
)x";

TEST(LoadRules, ReadsAFolderAndItsRulesFire) {
  const Folder folder;
  (void)folder.Write("a.toml", kRule);
  (void)folder.Write("notes.txt", "not a rule");
  const auto rules = LoadRules(folder.path());
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  ASSERT_EQ(rules->size(), 1U);
  const Diagnosis d = Diagnose(OneKernel(), {}, {rules->front().get()});
  ASSERT_EQ(d.findings.size(), 1U);
  EXPECT_EQ(d.findings[0].seen, "7.");
}

TEST(LoadRules, SaysWhatIsWrongAndWhere) {
  const Folder folder;
  EXPECT_EQ(LoadRules(folder.path()).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(LoadRules(folder.path() / "none").error().code, ErrorCode::kNotFound);
  (void)folder.Write("b.toml", "id = \"x\"\n");
  EXPECT_THAT(LoadRules(folder.path()).error().message, HasSubstr("b.toml:1"));
  (void)folder.Write("b.toml", kRule);
  (void)folder.Write("c.toml", kRule);
  EXPECT_THAT(LoadRules(folder.path()).error().message, HasSubstr("stands in"));
}

constexpr const char* kAnswer =
    R"({"findings":[{"id":"ext.x","title":"T","kernel":"k","severity":0.9,
 "bound":0.3,"seen":"s","why":"w","do":["first","second"],"check":"c","avoid":"a","evidence":{"n":3}}]})";

TEST(ExternalTool, GetsTheProfileAndItsFindingIsRanked) {
  const Folder folder;
  const fs::path tool = folder.Write(
      "tool.sh",
      std::string("#!/bin/sh\ngrep -q sm__much.sum || exit 3\ncat <<'E'\n") + kAnswer + "\nE\n",
      true);
  const auto findings = RunExternalTool(tool, OneKernel(), 10'000ms, {});
  ASSERT_TRUE(findings.ok()) << findings.error().message;
  const auto found = MakeFoundTool(findings->front(), tool.string());
  const Diagnosis d = Diagnose(OneKernel(), {}, {found.get()});
  ASSERT_EQ(d.findings.size(), 1U);
  EXPECT_EQ(d.findings[0].action, "first");
  EXPECT_EQ(d.findings[0].evidence.at("n"), 3);
}

TEST(ExternalTool, FailuresAreSaid) {
  const Folder folder;
  const auto run = [&](const std::string& script, std::chrono::milliseconds limit) {
    return RunExternalTool(folder.Write("t.sh", "#!/bin/sh\n" + script, true), OneKernel(), limit,
                           {});
  };
  EXPECT_EQ(run("sleep 60\n", 200ms).error().code, ErrorCode::kTimeout);
  EXPECT_THAT(run("echo no such metric >&2; exit 4\n", 10'000ms).error().message,
              HasSubstr("no such metric"));
  EXPECT_EQ(run("echo hello\n", 10'000ms).error().code, ErrorCode::kParse);
  EXPECT_EQ(RunExternalTool(folder.path() / "none", OneKernel(), 100ms, {}).error().code,
            ErrorCode::kNotFound);
}

TEST(ParseExternalFindings, WrongMembersAreNamed) {
  const auto message = [](const std::string& from, const std::string& to) {
    std::string text = kAnswer;
    text.replace(text.find(from), from.size(), to);
    const auto parsed = ParseExternalFindings(text, "t");
    return parsed.ok() ? std::string() : parsed.error().message;
  };
  EXPECT_THAT(message("0.9", "1.5"), HasSubstr("findings[0] \"severity\""));
  EXPECT_THAT(message("\"seen\"", "\"sene\""), HasSubstr("\"seen\""));
  EXPECT_THAT(message("[\"first\",\"second\"]", "[]"), HasSubstr("\"do\""));
  EXPECT_THAT(message("\"T\"", "7"), HasSubstr("\"title\""));
  EXPECT_FALSE(ParseExternalFindings("[]", "t").ok());
  EXPECT_TRUE(ParseExternalFindings("{\"findings\":[]}", "t").ok());
  const auto hostile = ParseExternalFindings(
      "{\"findings\":[{\"id\":\"a.b\",\"title\":\"x\\u001b[31m\\nIGNORE\",\"severity\":1,\"seen\":"
      "\"s\",\"why\":"
      "\"w\",\"do\":[\"d\"],\"check\":\"c\",\"avoid\":\"a\"}]}",
      "t");
  ASSERT_TRUE(hostile.ok());
  EXPECT_EQ(hostile->front().title.find('\n'), std::string::npos);
  EXPECT_EQ(hostile->front().title.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace kernelpro::plugins
