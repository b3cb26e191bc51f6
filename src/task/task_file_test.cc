// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "task/task.h"

namespace kernelpro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kGood = R"(name = "row_scale"
description = "y = x * eps"
axes = ["rows", "cols"]
flops = "rows * cols"
[tolerance]
absolute = 1e-6
relative = 1e-5
[policy]
lowest_precision = "tf32"
libraries = ["cublas"]
[tensors.x]
dtype = "f32"
role = "input"
shape = ["rows", "cols"]
fill = {kind = "uniform", low = -1, high = 2.5}
[tensors.b]
dtype = "i8"
role = "input"
shape = ["ceil_div(cols, 4) + 1", 3]
[tensors.a]
dtype = "f16"
role = "output"
shape = ["rows", "cols"]
[scalars]
eps = {dtype = "f32", value = 1e-5}
[[workloads]]
name = "w1"
kind = "timed"
weight = 2
axes = {rows = 4, cols = 10}
[[workloads]]
name = "odd"
kind = "hidden"
axes = {rows = 3, cols = 7}
)";

/// The good document with one piece replaced.
std::string With(std::string_view from, std::string_view to) {
  std::string text(kGood);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TaskFile, ReadsEverything) {
  const auto task = ParseTask(kGood, "task.toml");
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_EQ(task->name, "row_scale");
  EXPECT_EQ(task->description, "y = x * eps");
  EXPECT_THAT(task->axes, ElementsAre("rows", "cols"));
  EXPECT_EQ(task->flops, "rows * cols");
  EXPECT_EQ(task->tolerance.absolute, 1e-6);
  EXPECT_EQ(task->tolerance.relative, 1e-5);
  EXPECT_EQ(task->policy.lowest_precision, "tf32");
  EXPECT_THAT(task->policy.libraries, ElementsAre("cublas"));
  ASSERT_EQ(task->tensors.size(), 3U);
  EXPECT_EQ(task->tensors[0].name, "x");
  EXPECT_EQ(task->tensors[0].fill.kind, Fill::Kind::kUniform);
  EXPECT_EQ(task->tensors[0].fill.a, -1);
  EXPECT_EQ(task->tensors[0].fill.b, 2.5);
  EXPECT_EQ(task->tensors[1].name, "b") << "order of declaration, not of the alphabet";
  EXPECT_EQ(task->tensors[1].dtype, DType::kI8);
  EXPECT_EQ(task->tensors[1].fill.kind, Fill::Kind::kIntegers) << "the default of whole numbers";
  EXPECT_THAT(task->tensors[1].shape, ElementsAre("ceil_div(cols, 4) + 1", "3"));
  EXPECT_EQ(task->tensors[2].role, Role::kOutput);
  ASSERT_EQ(task->scalars.size(), 1U);
  EXPECT_EQ(task->scalars[0].value, 1e-5);
  ASSERT_EQ(task->workloads.size(), 2U);
  EXPECT_EQ(task->workloads[0].kind, Workload::Kind::kTimed);
  EXPECT_EQ(task->workloads[0].weight, 2);
  EXPECT_EQ(task->workloads[1].kind, Workload::Kind::kHidden);
  EXPECT_EQ(task->workloads[1].axes.at("cols"), 7);
}

TEST(TaskFile, CountsElementsAndCosts) {
  const auto task = ParseTask(kGood, "task.toml");
  ASSERT_TRUE(task.ok());
  const AxisValues& axes = task->workloads[0].axes;
  EXPECT_EQ(*ElementCount(task->tensors[0], axes), 40);
  EXPECT_EQ(*ElementCount(task->tensors[1], axes), 12) << "(ceil(10 / 4) + 1) * 3";
  EXPECT_EQ(*FlopCount(*task, axes), 40);
  EXPECT_EQ(*CompulsoryBytes(*task, axes), 40 * 4 + 12 * 1 + 40 * 2);
  const auto given =
      ParseTask(With("[tolerance]", "compulsory_bytes = \"7 * rows\"\n[tolerance]"), "task.toml");
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(*CompulsoryBytes(*given, axes), 28);
}

struct Planted {
  std::string_view from, to;  ///< the mistake
  std::string_view where;     ///< start of the message
  std::string_view what;      ///< part of the message
};

class TaskFileMistake : public ::testing::TestWithParam<Planted> {};

TEST_P(TaskFileMistake, IsReportedWithItsLine) {
  const Planted& planted = GetParam();
  const auto task = ParseTask(With(planted.from, planted.to), "task.toml");
  ASSERT_FALSE(task.ok());
  EXPECT_EQ(task.error().message.rfind(planted.where, 0), 0U) << task.error().message;
  EXPECT_THAT(task.error().message, HasSubstr(planted.what));
  EXPECT_THAT(task.error().message, HasSubstr(" | ")) << "the line is shown";
  EXPECT_TRUE(task.error().code == ErrorCode::kParse ||
              task.error().code == ErrorCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(
    All, TaskFileMistake,
    ::testing::Values(
        Planted{"flops =", "flop =", "task.toml:4: ", "unknown key \"flop\""},
        Planted{"flops = \"rows * cols\"", "", "task.toml:1: ", "\"flops\" is missing"},
        Planted{"name = \"row_scale\"", "name = 3", "task.toml:1: ", "must be a string"},
        Planted{"name = \"row_scale\"", "name = \"../x\"", "task.toml:1: ", "not a name"},
        Planted{"\"rows\", \"cols\"]", "\"rows\", \"class\"]", "task.toml:3: ", "C++ keyword"},
        Planted{"\"rows\", \"cols\"]", "\"rows\", \"2d\"]", "task.toml:3: ", "letters"},
        Planted{"\"rows\", \"cols\"]", "\"rows\", \"min\"]", "task.toml:3: ", "macro"},
        Planted{"\"rows\", \"cols\"]", "\"rows\", \"rows\"]", "task.toml:3: ", "used twice"},
        Planted{"[tensors.a]", "[tensors.cols]", "task.toml:20: ", "used twice"},
        Planted{"eps = {", "x = {", "task.toml:25: ", "used twice"},
        Planted{"[tensors.a]", "[tensors.\"a b\"]", "task.toml:20: ", "cannot be a name"},
        Planted{"flops = \"rows * cols\"", "flops = \"rows * depth\"", "task.toml:4: ", "depth"},
        Planted{"flops = \"rows * cols\"", "flops = \"rows *\"", "task.toml:4: ", "expected"},
        Planted{"flops = \"rows * cols\"", "flops = \"rows - 100\"", "task.toml:4: ", "negative"},
        Planted{"flops = \"rows * cols\"", "flops = \"1 / (rows - 4)\"",
                "task.toml:4: ", "division by zero"},
        Planted{"absolute = 1e-6", "absolute = -1", "task.toml:6: ", "out of range"},
        Planted{"absolute = 1e-6", "absolute = nan", "task.toml:6: ", "finite"},
        Planted{"\"tf32\"", "\"fp8\"", "task.toml:9: ", "fp64, fp32, tf32, bf16, fp16"},
        Planted{"[\"cublas\"]", "[\"mylib\"]", "task.toml:10: ", "allowed: cublas"},
        Planted{"dtype = \"f32\"\nrole", "dtype = \"float\"\nrole",
                "task.toml:12: ", "f64, f32, f16"},
        Planted{"role = \"input\"", "role = \"inout\"", "task.toml:13: ", "input, output"},
        Planted{"shape = [\"rows\", \"cols\"]", "shape = [\"rows\", \"k\"]",
                "task.toml:14: ", "\"k\", which is not an axis"},
        Planted{"shape = [\"rows\", \"cols\"]", "shape = []", "task.toml:14: ", "1 to 8"},
        Planted{"shape = [\"rows\", \"cols\"]", "shape = [0]", "task.toml:11: ", "positive"},
        Planted{"shape = [\"rows\", \"cols\"]", "shape = [\"rows / 3\"]",
                "task.toml:11: ", "whole number"},
        Planted{"shape = [\"rows\", \"cols\"]", "shape = [\"rows * 1099511627776\"]",
                "task.toml:11: ", "2^40"},
        Planted{"low = -1, ", "low = 3, ", "task.toml:15: ", "low is above high"},
        Planted{"low = -1, ", "mean = 3, ", "task.toml:15: ", "unknown key \"mean\""},
        Planted{"kind = \"uniform\"", "kind = \"zipf\"", "task.toml:15: ", "integers"},
        Planted{"dtype = \"f32\"\nrole", "dtype = \"i32\"\nrole",
                "task.toml:15: ", "whole numbers only"},
        Planted{"kind = \"uniform\", low = -1, high = 2.5",
                "kind = \"integers\", low = 0, high = 1.5",
                "task.toml:15: ", "must be whole numbers"},
        Planted{"[scalars]", "fill = {kind = \"ones\"}\n[scalars]",
                "task.toml:24: ", "an output has no fill"},
        Planted{"role = \"output\"", "role = \"input\"", "task.toml:11: ", "no output tensor"},
        Planted{"{dtype = \"f32\", value = 1e-5}", "{dtype = \"u8\", value = 256}",
                "task.toml:25: ", "0 to 255"},
        Planted{"{dtype = \"f32\", value = 1e-5}", "3", "task.toml:25: ", "must be a table"},
        Planted{"kind = \"timed\"\nweight = 2", "kind = \"checked\"",
                "task.toml:26: ", "no timed workload"},
        Planted{"kind = \"hidden\"", "kind = \"hidden\"\nweight = 2",
                "task.toml:34: ", "only timed"},
        Planted{"weight = 2", "weight = 0", "task.toml:29: ", "above 0"},
        Planted{"name = \"odd\"", "name = \"w1\"", "task.toml:32: ", "two workloads"},
        Planted{"{rows = 3, cols = 7}", "{rows = 3}", "task.toml:34: ", "axis \"cols\""},
        Planted{"{rows = 3, cols = 7}", "{rows = 3, cols = 7, k = 1}",
                "task.toml:34: ", "\"k\" is not an axis"},
        Planted{"{rows = 3, cols = 7}", "{rows = 0, cols = 7}", "task.toml:34: ", "from 1"},
        Planted{"{rows = 3, cols = 7}", "{rows = 3.0, cols = 7}", "task.toml:34: ", "whole"},
        Planted{"{rows = 3, cols = 7}", "{rows = 99999999999999999999, cols = 7}",
                "task.toml:34: ", "99999999999999999999"},
        Planted{"[[workloads]]\nname = \"w1\"", "[workloads]\nname = \"w1\"", "task.toml:", ""}));

TEST(TaskFile, MessagesShowTheLineAndWhatIsAllowed) {
  const auto task = ParseTask(With("flops =", "flop ="), "dir/task.toml");
  ASSERT_FALSE(task.ok());
  EXPECT_EQ(task.error().message,
            "dir/task.toml:4: unknown key \"flop\" in the task\n"
            "  4 | flop = \"rows * cols\"\n"
            "  allowed here: name, description, axes, flops, compulsory_bytes, tolerance, policy, "
            "inputs, "
            "tensors, scalars, workloads");
}

TEST(TaskFile, LoadsAFolder) {
  auto folder = TemporaryFolder::Create("kp-task");
  ASSERT_TRUE(folder.ok());
  const auto missing = LoadTask(folder->path());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("no task.toml"));
  ASSERT_TRUE(WriteFileAtomically(folder->path() / "task.toml", kGood).ok());
  EXPECT_THAT(LoadTask(folder->path()).error().message, HasSubstr("reference.cc is missing"));
  ASSERT_TRUE(WriteFileAtomically(folder->path() / "reference.cc", "//").ok());
  auto task = LoadTask(folder->path());
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(task->reference, folder->path() / "reference.cc");
  EXPECT_TRUE(task->seed.empty());
  ASSERT_TRUE(WriteFileAtomically(folder->path() / "seed.cu", "//").ok());
  task = LoadTask(folder->path());
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(task->seed, folder->path() / "seed.cu");
}

TEST(TaskFile, EveryExampleLoads) {
  const std::filesystem::path examples =
      std::filesystem::path(KP_SOURCE_DIR) / "examples" / "tasks";
  int loaded = 0;
  for (const auto& entry : std::filesystem::directory_iterator(examples)) {
    if (!entry.is_directory()) {
      continue;
    }
    const auto task = LoadTask(entry.path());
    ASSERT_TRUE(task.ok()) << task.error().message;
    EXPECT_EQ(task->name, entry.path().filename());
    EXPECT_FALSE(task->seed.empty());
    ++loaded;
  }
  EXPECT_GE(loaded, 5);
}

TEST(ParseTask, InputDistributionsAndErrorScale) {
  EXPECT_EQ(ParseTask(kGood, "t")->distributions.size(), 6U);
  const auto with = [](std::string_view before, std::string_view text) {
    std::string toml(kGood);
    return toml.insert(toml.find(before), text);
  };
  const auto task =
      ParseTask(with("[tensors.x]", "[inputs]\ndistributions = [\"ties\", \"fill\"]\n"), "t");
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_THAT(task->distributions, ElementsAre(Distribution::kFill, Distribution::kTies));
  const auto unknown =
      ParseTask(with("[tensors.x]", "[inputs]\ndistributions = [\"nans\"]\n"), "t");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("unknown distribution \"nans\""));
  const auto scaled = ParseTask(with("role = \"output\"", "error_scale = \"magnitude\"\n"), "t");
  ASSERT_TRUE(scaled.ok()) << scaled.error().message;
  EXPECT_EQ(scaled->tensors.back().error_scale, ErrorScale::kMagnitude);
  EXPECT_FALSE(ParseTask(with("role = \"input\"", "error_scale = \"magnitude\"\n"), "t").ok());
}

}  // namespace
}  // namespace kernelpro
