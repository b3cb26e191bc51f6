// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "emulator/model/model.h"
#include "emulator/model/spec_data.h"
#include "emulator/simt/engine.h"

namespace kernelpro::model {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::string H200Text() {
  for (const SpecText& file : EmbeddedSpecs()) {
    if (file.name == "h200") {
      return std::string(file.text);
    }
  }
  return {};
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string ErrorOf(std::string_view text) {
  const Result<GpuSpec> spec = ParseSpec(text, "test");
  EXPECT_FALSE(spec.ok());
  return spec.ok() ? std::string() : spec.error().message;
}

TEST(Spec, EveryEmbeddedSpecLoadsUnderItsFileName) {
  EXPECT_THAT(SpecNames(), UnorderedElementsAre("h200", "h100", "a100", "l4", "rtx4090"));
  for (const std::string& name : SpecNames()) {
    const Result<GpuSpec> spec = LoadSpec(name);
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    EXPECT_EQ(spec->name, name);
    for (const SpecNumber& number : spec->numbers) {
      EXPECT_FALSE(number.source.empty()) << name << " " << number.key;
    }
  }
}

TEST(Spec, H200InSiUnits) {
  const Result<GpuSpec> spec = LoadSpec("h200");
  ASSERT_TRUE(spec.ok());
  EXPECT_TRUE(spec->calibrated);
  EXPECT_EQ(spec->compute_capability, 90U);
  EXPECT_DOUBLE_EQ(spec->clock_hz, 1.98e9);
  EXPECT_EQ(spec->l2_bytes, 52428800U);
  EXPECT_EQ(spec->shared_per_cta_bytes, 232448U);  // 227 KiB
  EXPECT_DOUBLE_EQ(spec->dram_bytes_per_s, 4.445e12);
  EXPECT_DOUBLE_EQ(spec->latency_alu, 4.3);
}

TEST(Spec, OnlyTheH200CallsItselfCalibrated) {
  for (const std::string& name : SpecNames()) {
    const Result<GpuSpec> spec = LoadSpec(name);
    ASSERT_TRUE(spec.ok());
    EXPECT_EQ(spec->calibrated, name == "h200");
    EXPECT_EQ(std::ranges::any_of(spec->numbers, &SpecNumber::calibrated), name == "h200") << name;
  }
}

TEST(Spec, NumbersNobodyLookedUpSaySo) {
  const Result<GpuSpec> spec = LoadSpec("l4");
  ASSERT_TRUE(spec.ok());
  const auto found = std::ranges::find(spec->numbers, "l2_gb_s", &SpecNumber::key);
  ASSERT_NE(found, spec->numbers.end());
  EXPECT_TRUE(found->verify);
}

TEST(Spec, UnknownNameListsTheKnownOnes) {
  const Result<GpuSpec> spec = LoadSpec("h300");
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(spec.error().message, HasSubstr("h300"));
  EXPECT_THAT(spec.error().message, HasSubstr("rtx4090"));
}

TEST(Spec, ErrorsNameTheKey) {
  const std::string good = H200Text();
  ASSERT_TRUE(ParseSpec(good, "h200").ok());
  EXPECT_THAT(ErrorOf(Replaced(good, "sm_count =", "sm_cuont =")), HasSubstr("sm_cuont"));
  EXPECT_THAT(ErrorOf(Replaced(good, "sm_count = {", "# {")), HasSubstr("sm_count"));
  EXPECT_THAT(ErrorOf(Replaced(good, "value = 132", "value = -132")), HasSubstr("sm_count"));
  EXPECT_THAT(ErrorOf(Replaced(good, "value = 132", "value = nan")), HasSubstr("sm_count"));
  EXPECT_THAT(ErrorOf(Replaced(good, "value = 132, calibrated = true", "value = 132")),
              HasSubstr("sm_count"));
}

TEST(Spec, MalformedFilesAreErrors) {
  for (const std::string_view text :
       {"", "[)", "[,", "\xcc\xb1 = 1", "name = ", "[numbers", "\x01"}) {
    EXPECT_FALSE(ParseSpec(text, "bad").ok()) << text;
  }
}

TEST(Spec, EngineSpecCarriesTheGpuOver) {
  const Result<GpuSpec> spec = LoadSpec("rtx4090");
  ASSERT_TRUE(spec.ok());
  const simt::EngineSpec engine = ToEngineSpec(*spec);
  EXPECT_EQ(engine.sm_count, 128U);
  EXPECT_EQ(engine.max_threads_per_sm, 1536U);
  EXPECT_EQ(engine.l1_bytes, 128U * 1024);
  EXPECT_EQ(engine.l2_bytes, 72ULL << 20U);
  EXPECT_EQ(engine.clock_mhz, 2520U);
}

}  // namespace
}  // namespace kernelpro::model
