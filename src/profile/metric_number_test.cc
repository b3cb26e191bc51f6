// SPDX-License-Identifier: Apache-2.0
#include "profile/metric_number.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace kernelpro {
namespace {

using Kind = NumberStyle::Kind;

Kind StyleOf(std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  NumberStyle style;
  for (const auto& [value, unit] : values) {
    style.Observe(value, unit);
  }
  return style.kind();
}

TEST(MetricNumber, WhatIsNotFiniteIsNoNumber) {
  for (const char* text : {"-nan", "-inf", "1e999", "-1e999"}) {
    EXPECT_FALSE(ParseMetricNumber(text, NumberStyle::Kind::kPoint).has_value()) << text;
  }
  EXPECT_EQ(ParseMetricNumber("-1e3", NumberStyle::Kind::kPoint), -1000);
}

TEST(NumberStyle, LearnsTheConventionOfAFile) {
  EXPECT_EQ(StyleOf({{"12", ""}, {"814048", "ns"}}), Kind::kPoint);
  EXPECT_EQ(StyleOf({{"10,195,552", "ns"}}), Kind::kPoint);
  EXPECT_EQ(StyleOf({{"117.344", "ns"}, {"88.90", "%"}}), Kind::kPoint);
  EXPECT_EQ(StyleOf({{"10.195.552", "ns"}}), Kind::kInverted);
  EXPECT_EQ(StyleOf({{"117.344", "ns"}, {"88,90", "%"}}), Kind::kInverted);
  EXPECT_EQ(StyleOf({{"1.234,5", "ns"}}), Kind::kInverted);
  EXPECT_EQ(StyleOf({{"117.344", "ns"}}), Kind::kAmbiguous);
  EXPECT_EQ(StyleOf({{"117,344", "ns"}}), Kind::kAmbiguous);
  EXPECT_EQ(StyleOf({{"88.90", "%"}, {"12,5", "%"}}), Kind::kMixed);
  EXPECT_EQ(StyleOf({{"CachePreferNone", ""}, {"(256, 1, 1)", ""}}), Kind::kPoint);
}

TEST(ParseMetricNumber, BothConventions) {
  EXPECT_EQ(ParseMetricNumber("10,195,552", Kind::kPoint), 10195552.0);
  EXPECT_EQ(ParseMetricNumber("1.234,5", Kind::kInverted), 1234.5);
  EXPECT_EQ(ParseMetricNumber("88.90", Kind::kPoint), 88.9);
  EXPECT_EQ(ParseMetricNumber("-3", Kind::kPoint), -3.0);
  EXPECT_EQ(ParseMetricNumber("1e9", Kind::kPoint), 1e9);
  EXPECT_FALSE(ParseMetricNumber("CachePreferNone", Kind::kPoint).has_value());
  EXPECT_FALSE(ParseMetricNumber("(1, 2, 3)", Kind::kPoint).has_value());
  EXPECT_FALSE(ParseMetricNumber("", Kind::kPoint).has_value());
  EXPECT_FALSE(ParseMetricNumber("1.2.3", Kind::kPoint).has_value());
  EXPECT_EQ(ParseMetricNumber("1,234.5", Kind::kPoint), 1234.5);
  EXPECT_EQ(ParseMetricNumber("12,34,567", Kind::kPoint), 1234567.0);
}

TEST(ParseMetricNumber, ListsVersionsAndInfinitiesAreNoNumbers) {
  for (const std::string_view text :
       {"1,2,3", "1,2,345", "1.234,5", "-inf", "1e999", "-nan(ind)"}) {
    EXPECT_FALSE(ParseMetricNumber(text, Kind::kPoint).has_value()) << text;
  }
  EXPECT_FALSE(ParseMetricNumber(std::string(500, '1'), Kind::kPoint).has_value());
}

/// The short way to a value (one division) gives the same bits as strtod.
TEST(ParseMetricNumber, IsCorrectlyRounded) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string text = std::to_string(random() >> (random() % 60));
    if (i % 3 != 0 && text.size() > 1) {
      text.insert(1 + random() % (text.size() - 1), 1, '.');
    }
    NumberStyle style;
    EXPECT_EQ(style.Read(text, "", Kind::kPoint), std::strtod(text.c_str(), nullptr)) << text;
  }
}

TEST(NumberStyle, ReadingTeachesAsObservingDoes) {
  NumberStyle style;
  EXPECT_EQ(style.Read("12", "", Kind::kPoint), 12.0);
  EXPECT_EQ(style.kind(), Kind::kPoint);
  EXPECT_FALSE(style.Read("", "", Kind::kPoint).has_value());
  (void)style.Read("10.195.552", "ns", Kind::kPoint);
  EXPECT_EQ(style.kind(), Kind::kInverted);
  EXPECT_EQ(StyleOf({{"1,2,3", ""}, {"10.195.552", "ns"}}), Kind::kInverted);
}

TEST(MissingValue, IsNeverANumber) {
  for (const std::string_view text :
       {"", " ", "n/a", "(!) n/a", "(!) nan", "nan", "NaN", "-inf", "-nan(ind)"}) {
    EXPECT_TRUE(IsMissingValue(text)) << text;
  }
  EXPECT_FALSE(IsMissingValue("0"));
  EXPECT_FALSE(IsMissingValue("all"));
}

TEST(InBaseUnit, ScalesKnownUnitsAndKeepsOthers) {
  EXPECT_DOUBLE_EQ(InBaseUnit(30.86, "ms").value, 30.86e6);
  EXPECT_EQ(InBaseUnit(1, "msecond").unit, "ns");
  EXPECT_DOUBLE_EQ(InBaseUnit(488.17, "Gbyte/s").value, 488.17e9);
  EXPECT_DOUBLE_EQ(InBaseUnit(1.59, "cycle/nsecond").value, 1.59e9);
  const Metric odd = InBaseUnit(4, "furlong");
  EXPECT_EQ(odd.value, 4);
  EXPECT_EQ(odd.unit, "furlong");
}

}  // namespace
}  // namespace kernelpro
