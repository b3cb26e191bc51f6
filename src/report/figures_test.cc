// SPDX-License-Identifier: Apache-2.0
#include "report/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace kernelpro::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kRegisters = "launch__registers_per_thread";
constexpr const char* kBlocks = "launch__grid_size";
constexpr const char* kDram = "dram__bytes.sum.pct_of_peak_sustained_elapsed";
constexpr const char* kTensor = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kRead = "dram__bytes_read.sum";

KernelProfile Kernel(double time_us, const std::map<std::string, double>& metrics) {
  KernelProfile kernel;
  kernel.time_us = time_us;
  for (const auto& [name, value] : metrics) {
    kernel.metrics[name].value = value;
  }
  return kernel;
}

Profile Of(std::vector<KernelProfile> kernels) {
  Profile profile;
  profile.kernels = std::move(kernels);
  return profile;
}

TEST(Figures, WasIsSaidOfWhatChangedOnly) {
  const Profile now = Of({Kernel(1, {{kRegisters, 40}, {kBlocks, 128}, {kDram, 51.26}})});
  const Profile before = Of({Kernel(1, {{kRegisters, 32}, {kBlocks, 128}, {kDram, 51.3}})});
  const std::string text = FiguresText(now, &before);
  EXPECT_EQ(text,
            "figures\n"
            "  launch              blocks 128, registers a thread 40 (was 32)\n"
            "  busy                DRAM 51.3 %\n")
      << "what reads alike did not change";
  EXPECT_THAT(FiguresText(now, nullptr), AllOf(HasSubstr("thread 40"), Not(HasSubstr("was"))));
  EXPECT_THAT(FiguresText(now, &now), Not(HasSubstr("was")));
}

TEST(Figures, AZeroIsShownWhenItWasNone) {
  const Profile now = Of({Kernel(1, {{kTensor, 0}, {kRegisters, 8}})});
  const Profile before = Of({Kernel(1, {{kTensor, 30}, {kRegisters, 8}})});
  EXPECT_THAT(FiguresText(now, &before), HasSubstr("tensor 0 (was 30) %"));
  EXPECT_THAT(FiguresText(now, &now), Not(HasSubstr("tensor")));
  EXPECT_THAT(FiguresText(before, &now), HasSubstr("tensor 30 (was 0) %"));
}

TEST(Figures, AreThoseOfTheKernelThatTakesMostTime) {
  const Profile now = Of({Kernel(1, {{kRegisters, 10}}), Kernel(5, {{kRegisters, 20}}),
                          Kernel(2, {{kRegisters, 30}})});
  const Profile before = Of({Kernel(9, {{kRegisters, 25}}), Kernel(5, {{kRegisters, 20}})});
  EXPECT_EQ(FiguresText(now, &before),
            "figures\n  launch              registers a thread 20 (was 25)\n");
}

TEST(Figures, WhatWasNotCollectedIsLeftOut) {
  EXPECT_EQ(FiguresText({}, nullptr), "");
  EXPECT_EQ(FiguresText(Of({Kernel(1, {})}), nullptr), "");
  const Profile before = Of({Kernel(1, {{kRegisters, 32}, {kBlocks, 4}})});
  EXPECT_EQ(FiguresText(Of({Kernel(1, {})}), &before), "");
  const Profile empty;
  EXPECT_THAT(FiguresText(before, &empty), AllOf(HasSubstr("blocks 4,"), Not(HasSubstr("was"))));
}

TEST(Figures, LargeOnesAreShort) {
  const auto shown = [](double value) {
    return FiguresText(Of({Kernel(1, {{kRead, value}})}), nullptr);
  };
  EXPECT_THAT(shown(12.345), HasSubstr("DRAM read 12.3 B"));
  EXPECT_THAT(shown(999.7), HasSubstr("DRAM read 1000 B"));
  EXPECT_THAT(shown(1234.5), HasSubstr("DRAM read 1234 B"));
  EXPECT_THAT(shown(9999), HasSubstr("DRAM read 9999 B"));
  EXPECT_THAT(shown(10000), HasSubstr("DRAM read 10k B"));
  EXPECT_THAT(shown(999400), HasSubstr("DRAM read 999k B"));
  EXPECT_THAT(shown(999600), HasSubstr("DRAM read 1M B"));
  EXPECT_THAT(shown(123456789), HasSubstr("DRAM read 123M B"));
  EXPECT_THAT(shown(999.9e6), HasSubstr("DRAM read 1G B"));
  EXPECT_THAT(shown(4.5e9), HasSubstr("DRAM read 4.5G B"));
}

}  // namespace
}  // namespace kernelpro::report
