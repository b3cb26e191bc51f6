// SPDX-License-Identifier: Apache-2.0
#include "profile/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kernelpro {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

KernelProfile Kernel(std::string name, std::string mangled, const std::string& metric, double value,
                     Provenance provenance = Provenance::kCounted) {
  KernelProfile kernel;
  kernel.name = std::move(name);
  kernel.mangled = std::move(mangled);
  kernel.metrics[metric] = {value, "", provenance};
  return kernel;
}

Profile Source(std::string source, std::vector<KernelProfile> kernels) {
  Profile profile;
  profile.source = std::move(source);
  profile.kernels = std::move(kernels);
  return profile;
}

/// As ParseNcuCsv makes them: `mangled` is the whole demangled signature.
KernelProfile Ncu(const std::string& signature, double value = 1) {
  std::string name = signature;
  if (name.starts_with("void ")) {
    name = name.substr(5);
  }
  if (const std::size_t open = name.rfind("("); open != std::string::npos && open > 0) {
    name = name.substr(0, open);
  }
  return Kernel(name, signature, "gpu__time_duration.sum", value, Provenance::kMeasured);
}

TEST(MergeEvidence, JoinsByMangledNameThenByDemangledOne) {
  const Profile merged = MergeEvidence(
      {Source("ncu", {Ncu("void ns::scale<(int)4, (bool)1>(float *)"), Ncu("copy(float *)")}),
       Source("sass", {Kernel("copy", "_Z4copyPf", "sass.ldg", 3),
                       Kernel("ns::scale<4, true>", "_ZN2ns5scaleILi4ELb1EEEvPf", "sass.ldg", 7)}),
       // The log has mangled names only: known through the disassembly.
       Source("ptxas", {Kernel("_ZN2ns5scaleILi4ELb1EEEvPf", "_ZN2ns5scaleILi4ELb1EEEvPf",
                               "ptxas.registers", 40)})});
  ASSERT_THAT(merged.kernels, SizeIs(2));
  EXPECT_EQ(merged.kernels[0].Value("sass.ldg"), 7);
  EXPECT_EQ(merged.kernels[0].Value("ptxas.registers"), 40);
  EXPECT_EQ(merged.kernels[0].mangled, "_ZN2ns5scaleILi4ELb1EEEvPf");
  EXPECT_EQ(merged.kernels[1].Value("sass.ldg"), 3);
  EXPECT_FALSE(merged.kernels[1].Value("ptxas.registers"));
  EXPECT_EQ(merged.source, "ncu + sass + ptxas");
  EXPECT_THAT(merged.notes, IsEmpty());
}

TEST(MergeEvidence, TwinsAreNeverJoined) {
  // Both sources have both: each to its own.
  Profile merged = MergeEvidence(
      {Source("ncu", {Ncu("void f<(int)4>(float *)", 4), Ncu("void f<(int)8>(float *)", 8)}),
       Source("sass", {Kernel("f<8>", "_Z1fILi8EEvPf", "sass.ldg", 80),
                       Kernel("f<4>", "_Z1fILi4EEvPf", "sass.ldg", 40)})});
  ASSERT_THAT(merged.kernels, SizeIs(2));
  EXPECT_EQ(merged.kernels[0].Value("sass.ldg"), 40);
  EXPECT_EQ(merged.kernels[1].Value("sass.ldg"), 80);

  // One was profiled, the other disassembled: even as the only ones.
  merged = MergeEvidence({Source("ncu", {Ncu("void f<(int)4>(float *)")}),
                          Source("sass", {Kernel("f<8>", "_Z1fILi8EEvPf", "sass.ldg", 80)})});
  ASSERT_THAT(merged.kernels, SizeIs(2));
  EXPECT_FALSE(merged.kernels[0].Value("sass.ldg"));
  EXPECT_THAT(merged.notes, ElementsAre(HasSubstr("\"f<8>\" (sass) was not joined")));

  // The function's name alone does not tell which of two it is.
  merged = MergeEvidence({Source("ncu", {Ncu("f")}),
                          Source("sass", {Kernel("f<8>", "_Z1fILi8EEvPf", "sass.ldg", 80),
                                          Kernel("f<4>", "_Z1fILi4EEvPf", "sass.ldg", 40)})});
  ASSERT_THAT(merged.kernels, SizeIs(3));
  EXPECT_FALSE(merged.kernels[0].Value("sass.ldg"));
  EXPECT_THAT(merged.notes, Not(IsEmpty()));
}

TEST(MergeEvidence, AFunctionNameAloneSufficesWhereItIsTheOnlyOne) {
  const Profile merged = MergeEvidence(
      {Source("ncu", {Ncu("scale"), Ncu("copy")}),
       Source("sass", {Kernel("ns::scale<4>", "_ZN2ns5scaleILi4EEEvPf", "sass.ldg", 7),
                       Kernel("other", "_Z5otherv", "sass.ldg", 1)})});
  ASSERT_THAT(merged.kernels, SizeIs(3));
  EXPECT_EQ(merged.kernels[0].Value("sass.ldg"), 7);
  EXPECT_FALSE(merged.kernels[1].Value("sass.ldg"));
  EXPECT_EQ(merged.kernels[2].name, "other");
}

TEST(MergeEvidence, NamesThatAreCutAlikeAreNotOneKernel) {
  const std::string start = "gemm<" + std::string(395, 'x');
  const std::string first = start + "A>(int)", second = start + "B>(int)";
  const KernelProfile a = Kernel(start.substr(0, 400), first, "a.sum", 1);
  const KernelProfile b = Kernel(start.substr(0, 400), second, "b.sum", 2);
  EXPECT_THAT(MergeEvidence({Source("x", {a}), Source("y", {b})}).kernels, SizeIs(2));
  EXPECT_THAT(MergeEvidence({Source("x", {a}), Source("y", {a})}).kernels, SizeIs(1));
}

TEST(MergeEvidence, OverloadsAreNotMixed) {
  const Profile merged = MergeEvidence(
      {Source("ncu", {Ncu("f(int *)")}), Source("sass", {Kernel("f", "_Z1fPi", "sass.ldg", 1),
                                                         Kernel("f", "_Z1fPf", "sass.ldg", 2)})});
  EXPECT_THAT(merged.kernels, SizeIs(3));
  EXPECT_FALSE(merged.kernels[0].Value("sass.ldg"));
}

TEST(MergeEvidence, SameFunctionInTwoNameSpacesStaysApart) {
  const Profile merged =
      MergeEvidence({Source("ncu", {Ncu("a::f(int)"), Ncu("b::f(int)")}),
                     Source("sass", {Kernel("b::f", "_ZN1b1fEi", "sass.ldg", 2)})});
  ASSERT_THAT(merged.kernels, SizeIs(2));
  EXPECT_FALSE(merged.kernels[0].Value("sass.ldg"));
  EXPECT_EQ(merged.kernels[1].Value("sass.ldg"), 2);
}

TEST(MergeEvidence, TheOnlyKernelsOfTwoSourcesAreOneAndItSaysSo) {
  const Profile merged = MergeEvidence({Source("a.csv", {Ncu("Kernel2")}),
                                        Source("b.sass", {Kernel("gemm", "gemm", "sass.ldg", 1)})});
  ASSERT_THAT(merged.kernels, SizeIs(1));
  EXPECT_THAT(merged.notes, ElementsAre(HasSubstr("taken for one kernel")));
}

TEST(MergeEvidence, LaunchesOfOneKernelAllGetWhatHoldsForIt) {
  const Profile merged =
      MergeEvidence({Source("ncu", {Ncu("f(int)", 1), Ncu("g(int)", 9), Ncu("f(int)", 2)}),
                     Source("sass", {Kernel("f", "_Z1fi", "sass.ldg", 5)})});
  ASSERT_THAT(merged.kernels, SizeIs(3));
  EXPECT_EQ(merged.kernels[0].Value("sass.ldg"), 5);
  EXPECT_EQ(merged.kernels[2].Value("sass.ldg"), 5);
  EXPECT_EQ(merged.kernels[2].Value("gpu__time_duration.sum"), 2);
}

TEST(MergeEvidence, ABetterProvenanceWinsWhateverTheOrder) {
  KernelProfile modelled = Kernel("f", "f", "x.sum", 1, Provenance::kModelled);
  modelled.time_us = 10;
  modelled.missing = {"y.sum", "z.sum"};
  KernelProfile measured = Kernel("f", "f", "x.sum", 2, Provenance::kMeasured);
  measured.time_us = 20;
  measured.time_provenance = Provenance::kMeasured;
  measured.metrics["y.sum"] = {3, "", Provenance::kMeasured};
  for (const bool modelled_first : {false, true}) {
    Profile emulated = Source("emulation", {modelled});
    emulated.device = "emulator:h200";
    Profile real = Source("ncu", {measured});
    real.device = "NVIDIA H200";
    const Profile merged =
        modelled_first ? MergeEvidence({emulated, real}) : MergeEvidence({real, emulated});
    ASSERT_THAT(merged.kernels, SizeIs(1));
    EXPECT_EQ(merged.kernels[0].Value("x.sum"), 2);
    EXPECT_EQ(merged.kernels[0].time_us, 20);
    EXPECT_EQ(merged.kernels[0].time_provenance, Provenance::kMeasured);
    EXPECT_THAT(merged.kernels[0].missing, ElementsAre("z.sum"));
    EXPECT_EQ(merged.device, "NVIDIA H200");
  }
  // Of two measured figures the first stays.
  KernelProfile later = measured;
  later.metrics["x.sum"].value = 99;
  EXPECT_EQ(
      MergeEvidence({Source("a", {measured}), Source("b", {later})}).kernels[0].Value("x.sum"), 2);
}

TEST(MergeEvidence, SystemTimelineAndNotesComeFromWhoeverHasThem) {
  Profile trace = Source("trace", {});
  trace.system["timeline.idle.pct"] = {40, "%", Provenance::kMeasured};
  trace.timeline.resize(2);
  trace.notes = {"same", "trace"};
  Profile ncu = Source("ncu", {Ncu("f(int)")});
  ncu.notes = {"same"};
  const Profile merged = MergeEvidence({ncu, trace, Source("", {})});
  EXPECT_EQ(merged.system.at("timeline.idle.pct").value, 40);
  EXPECT_THAT(merged.timeline, SizeIs(2));
  EXPECT_THAT(merged.notes, ElementsAre("same", "trace"));
  EXPECT_THAT(merged.kernels, SizeIs(1));
  EXPECT_THAT(MergeEvidence({trace, trace}).notes, Contains(HasSubstr("timeline")));
  EXPECT_THAT(MergeEvidence({}).kernels, IsEmpty());
}

TEST(MergeEvidence, SharesAreThoseOfTheWholeRun) {
  KernelProfile profiled = Ncu("f(int)");
  profiled.time_us = 10;
  profiled.time_share = 1;  // the only one that was profiled
  KernelProfile traced = Kernel("f", "_Z1fi", "x.sum", 1);
  traced.time_us = 300;
  traced.time_share = 0.1;
  KernelProfile other = Kernel("g", "_Z1gi", "x.sum", 1);
  other.time_us = 2700;
  other.time_share = 0.9;
  Profile trace = Source("trace", {other, traced});
  trace.timeline.resize(1);
  const Profile merged = MergeEvidence(
      {Source("ncu", {profiled}), trace, Source("sass", {Kernel("h", "_Z1hi", "sass.ldg", 1)})});
  ASSERT_THAT(merged.kernels, SizeIs(3));
  EXPECT_DOUBLE_EQ(merged.kernels[0].time_share, 0.1);
  EXPECT_DOUBLE_EQ(merged.kernels[1].time_share, 0.9);
  EXPECT_EQ(merged.kernels[2].time_share, 0);  // only disassembled
  // Two launches share what the trace says of their kernel; alone a disassembly keeps its share.
  EXPECT_DOUBLE_EQ(
      MergeEvidence({Source("ncu", {profiled, profiled}), trace}).kernels[1].time_share, 0.05);
  EXPECT_EQ(
      MergeEvidence({Source("sass", {Kernel("h", "_Z1hi", "sass.ldg", 1)})}).kernels[0].time_share,
      1);
}

TEST(MergeEvidence, SampledInstructionsGetTheirPlacesFromTheDisassembly) {
  KernelProfile sampled = Kernel("f", "f", "x.sum", 1);
  sampled.hot_spots.resize(2);
  sampled.hot_spots[0] = {.address = 0x20, .instruction = "FFMA", .samples = 30};
  sampled.hot_spots[1] = {.address = 0x30, .instruction = "EXIT", .samples = 3};
  KernelProfile placed = Kernel("f", "f", "sass.ldg", 1);
  placed.hot_spots.resize(1);
  placed.hot_spots[0] = {
      .address = 0x20, .instruction = "FFMA", .file = "k.cu", .line = 12, .producer = "LDG"};
  const Profile merged = MergeEvidence({Source("ncu", {sampled}), Source("sass", {placed})});
  ASSERT_THAT(merged.kernels.at(0).hot_spots, SizeIs(2));
  EXPECT_EQ(merged.kernels[0].hot_spots[0].line, 12U);
  EXPECT_EQ(merged.kernels[0].hot_spots[0].producer, "LDG");
  EXPECT_EQ(merged.kernels[0].hot_spots[0].samples, 30);
  EXPECT_EQ(merged.kernels[0].hot_spots[1].line, 0U);
}

TEST(MergeEvidence, ManyLaunchesOnBothSidesGoTogetherInOrder) {
  std::vector<KernelProfile> ncu, trace;
  for (int i = 0; i < 20000; ++i) {
    ncu.push_back(Kernel("f", "f(int)", "a.sum", i, Provenance::kMeasured));
    trace.push_back(Kernel("f", "f(int)", "b.sum", i, Provenance::kMeasured));
  }
  const Profile merged = MergeEvidence({Source("ncu", ncu), Source("trace", trace)});
  ASSERT_THAT(merged.kernels, SizeIs(20000));
  EXPECT_THAT(merged.notes, IsEmpty());
  EXPECT_EQ(merged.kernels[7].Value("a.sum"), 7);
  EXPECT_EQ(merged.kernels[7].Value("b.sum"), 7);
}

TEST(MergeEvidence, LaunchesWithoutACounterpartAreSaid) {
  const auto launch = [](double value) {
    return Kernel("f", "f(int)", value < 10 ? "a.sum" : "b.sum", value, Provenance::kMeasured);
  };
  const Profile merged = MergeEvidence({Source("ncu", {launch(1), launch(2), launch(3)}),
                                        Source("trace", {launch(10), launch(20)})});
  ASSERT_THAT(merged.kernels, SizeIs(3));
  EXPECT_EQ(merged.kernels[1].Value("b.sum"), 20);
  EXPECT_FALSE(merged.kernels[2].Value("b.sum"));
  EXPECT_THAT(merged.notes, ElementsAre(HasSubstr("2 times in trace and 3 times before")));
}

}  // namespace
}  // namespace kernelpro
