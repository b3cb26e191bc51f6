// SPDX-License-Identifier: Apache-2.0
#include "profile/profile_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace kernelpro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Profiles with every field filled, values at the ends of their ranges included.
class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  Profile Make() {
    Profile p;
    p.device = Text();
    p.source = Text();
    Fill(p.kernels, [&] { return Kernel(); });
    p.task = Metrics();
    p.system = Metrics();
    Fill(p.timeline, [&] { return Event(); });
    Fill(p.notes, [&] { return Text(); });
    return p;
  }

 private:
  template <class T, class F>
  void Fill(std::vector<T>& out, F make) {
    for (std::uint64_t n = random_() % 4; n > 0; --n) {
      out.push_back(make());
    }
  }

  std::string Text() {
    static constexpr std::string_view kPieces[] = {
        "sm__x.sum", "f<a, b>",          "\"", "\\", "\n\t",     "\x01",
        "\xc3\xa9",  "\xf0\x9f\x98\x80", "%",  "",   "</script>"};
    std::string text;
    for (std::uint64_t n = random_() % 4; n > 0; --n) {
      text += kPieces[random_() % std::size(kPieces)];
    }
    if (random_() % 8 == 0) {
      text.push_back('\0');
    }
    return text;
  }

  double Number() {
    static constexpr double kOdd[] = {0,
                                      -0.0,
                                      0.1,
                                      1e300,
                                      -1e-300,
                                      std::numeric_limits<double>::max(),
                                      std::numeric_limits<double>::denorm_min(),
                                      9007199254740993.0,
                                      18446744073709551615.0};
    if (random_() % 2 == 0) {
      return kOdd[random_() % std::size(kOdd)];
    }
    return static_cast<double>(static_cast<std::int64_t>(random_())) * 1e-7;
  }

  std::uint32_t Word() { return static_cast<std::uint32_t>(random_()) >> (random_() % 33 % 32); }

  std::uint64_t Wide() { return random_() >> (random_() % 64); }

  Provenance Origin() { return static_cast<Provenance>(random_() % 3); }

  std::map<std::string, Metric> Metrics() {
    std::map<std::string, Metric> metrics;
    for (std::uint64_t n = random_() % 5; n > 0; --n) {
      metrics[Text()] = {Number(), Text(), Origin()};
    }
    return metrics;
  }

  HotSpot Spot() {
    HotSpot spot{Wide(), Text(), Text(), Word(), Number(), {},
                 Text(), Wide(), Text(), Word(), Word()};
    spot.stalls[Text()] = Number();
    spot.stalls[Text()] = Number();
    return spot;
  }

  TimelineEvent Event() {
    TimelineEvent e;
    e.kind = static_cast<TimelineEvent::Kind>(random_() % 9);
    e.name = Text();
    e.start_ns = static_cast<std::int64_t>(random_());
    e.end_ns = static_cast<std::int64_t>(random_());
    if (random_() % 2 == 0) {
      e.stream = Word();
      e.correlation = Wide();
      e.bytes = Wide();
      e.pageable = random_() % 2 == 0;
      e.graph = random_() % 2 == 0;
      e.grid[random_() % 3] = Word();
      e.block[random_() % 3] = Word();
    }
    return e;
  }

  KernelProfile Kernel() {
    KernelProfile k;
    k.name = Text();
    k.mangled = Text();
    k.grid[random_() % 3] = Word();
    k.block[random_() % 3] = Word();
    k.time_us = Number();
    k.time_provenance = Origin();
    k.time_share = Number();
    k.metrics = Metrics();
    Fill(k.lines, [&] { return LineMetrics{Text(), Word(), Metrics()}; });
    k.opcodes = {{Text(), Wide()}, {Text(), Wide()}};
    k.texts = {{Text(), Text()}, {Text(), Text()}};
    Fill(k.hot_spots, [&] { return Spot(); });
    Fill(k.notes, [&] { return CompilerNote{Text(), Text(), Text(), Text(), Word()}; });
    if (random_() % 2 == 0) {
      k.hot_loop = HotLoop{Wide(), Wide(), Text(), Word()};
    }
    Fill(k.missing, [&] { return Text(); });
    return k;
  }

  std::mt19937_64 random_;
};

// Comparison takes the structs apart whole: a new field does not compile here until it is compared,
// and then fails until it is written and read.

bool Same(double a, double b) {
  return a == b && std::signbit(a) == std::signbit(b);
}

bool Same(const std::uint32_t (&a)[3], const std::uint32_t (&b)[3]) {
  return std::ranges::equal(a, b);
}

template <class T>
  requires std::equality_comparable<T>
bool Same(const T& a, const T& b) {
  return a == b;
}

bool Same(const Metric& a, const Metric& b) {
  const auto& [a1, a2, a3] = a;
  const auto& [b1, b2, b3] = b;
  return Same(a1, b1) && a2 == b2 && a3 == b3;
}

template <class T>
bool Same(const std::map<std::string, T>& a, const std::map<std::string, T>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && Same(x.second, y.second);
  });
}

bool Same(const LineMetrics& a, const LineMetrics& b) {
  const auto& [a1, a2, a3] = a;
  const auto& [b1, b2, b3] = b;
  return a1 == b1 && a2 == b2 && Same(a3, b3);
}

bool Same(const CompilerNote& a, const CompilerNote& b) {
  const auto& [a1, a2, a3, a4, a5] = a;
  const auto& [b1, b2, b3, b4, b5] = b;
  return a1 == b1 && a2 == b2 && a3 == b3 && a4 == b4 && a5 == b5;
}

bool Same(const std::optional<HotLoop>& a, const std::optional<HotLoop>& b) {
  if (!a || !b) {
    return !a && !b;
  }
  const auto& [a1, a2, a3, a4] = *a;
  const auto& [b1, b2, b3, b4] = *b;
  return a1 == b1 && a2 == b2 && a3 == b3 && a4 == b4;
}

bool Same(const HotSpot& a, const HotSpot& b) {
  const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11] = a;
  const auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11] = b;
  return a1 == b1 && a2 == b2 && a3 == b3 && a4 == b4 && Same(a5, b5) && Same(a6, b6) && a7 == b7 &&
         a8 == b8 && a9 == b9 && a10 == b10 && a11 == b11;
}

bool Same(const TimelineEvent& a, const TimelineEvent& b) {
  const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11] = a;
  const auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11] = b;
  return a1 == b1 && a2 == b2 && a3 == b3 && a4 == b4 && a5 == b5 && a6 == b6 && a7 == b7 &&
         a8 == b8 && a9 == b9 && Same(a10, b10) && Same(a11, b11);
}

bool Same(const KernelProfile& a, const KernelProfile& b);

template <class T>
bool SameAll(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(a, b, [](const T& x, const T& y) { return Same(x, y); });
}

bool Same(const KernelProfile& a, const KernelProfile& b) {
  const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15] = a;
  const auto& [b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15] = b;
  return a1 == b1 && a2 == b2 && Same(a3, b3) && Same(a4, b4) && Same(a5, b5) && a6 == b6 &&
         Same(a7, b7) && Same(a8, b8) && SameAll(a9, b9) && a10 == b10 && a11 == b11 &&
         SameAll(a12, b12) && SameAll(a13, b13) && Same(a14, b14) && a15 == b15;
}

bool Same(const Profile& a, const Profile& b) {
  const auto& [a1, a2, a3, a4, a5, a6, a7] = a;
  const auto& [b1, b2, b3, b4, b5, b6, b7] = b;
  return a1 == b1 && a2 == b2 && SameAll(a3, b3) && Same(a4, b4) && Same(a5, b5) &&
         SameAll(a6, b6) && a7 == b7;
}

TEST(ProfileJson, AnyProfileComesBackAsItWas) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Profile profile = Maker(seed).Make();
    const std::string text = ProfileJson(profile);
    const auto back = ParseProfileJson(text, "p.json");
    ASSERT_TRUE(back.ok()) << seed << ": " << back.error().message << "\n" << text;
    ASSERT_TRUE(Same(profile, *back)) << seed << ": " << text << "\n" << ProfileJson(*back);
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

/// The same again through another JSON writer: nothing rests on how we space or escape.
TEST(ProfileJson, SurvivesAnotherProgramsFormatting) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Profile profile = Maker(seed).Make();
    const auto indented = nlohmann::json::parse(ProfileJson(profile)).dump(2, ' ', true);
    const auto back = ParseProfileJson(indented, "p.json");
    ASSERT_TRUE(back.ok()) << back.error().message;
    ASSERT_TRUE(Same(profile, *back)) << seed;
  }
}

TEST(ProfileJson, WhatJsonCannotHoldIsMissing) {
  Profile profile;
  KernelProfile& kernel = profile.kernels.emplace_back();
  kernel.metrics["a.sum"] = {std::numeric_limits<double>::infinity(), "inst",
                             Provenance::kMeasured};
  kernel.metrics["b.sum"] = {2, "inst", Provenance::kMeasured};
  kernel.time_us = std::numeric_limits<double>::quiet_NaN();
  kernel.name = "bad \xff byte";
  profile.system["nvml.power"] = {std::numeric_limits<double>::quiet_NaN(), "W",
                                  Provenance::kMeasured};
  const auto back = ParseProfileJson(ProfileJson(profile), "p.json");
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->kernels[0].metrics.size(), 1U);
  EXPECT_THAT(back->kernels[0].missing, ElementsAre("a.sum"));
  EXPECT_EQ(back->kernels[0].time_us, 0);
  EXPECT_EQ(back->kernels[0].name, "bad \xEF\xBF\xBD byte");
  EXPECT_TRUE(back->system.empty());
}

TEST(ProfileJson, AShortProfileOfAnotherAuthor) {
  const auto profile = ParseProfileJson(R"({"kernels": [{"name": "f", "unknown": [1],
      "metrics": {"gpu__time_duration.sum": {"value": 1e3, "unit": "ns", "provenance": "measured"},
                  "dram__bytes.sum": {"value": null, "unit": "byte", "provenance": "measured"}}}]})",
                                        "p.json");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->kernels[0].Value("gpu__time_duration.sum"), 1000);
  EXPECT_EQ(profile->kernels[0].block[0], 1U);
  EXPECT_THAT(profile->kernels[0].missing, ElementsAre("dram__bytes.sum"));
}

TEST(ProfileJson, ErrorsSayWhere) {
  const auto error = [](std::string_view text) {
    const auto profile = ParseProfileJson(text, "p.json");
    EXPECT_FALSE(profile.ok()) << text;
    return profile.ok() ? std::string() : profile.error().message;
  };
  EXPECT_THAT(error("{\"kernels\": [\n{]}"), HasSubstr("p.json:2"));
  EXPECT_THAT(error(""), HasSubstr("p.json:1"));
  EXPECT_THAT(error("{\"kernels\": \"\xff\"}"), HasSubstr("p.json"));
  EXPECT_THAT(error("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(error("{}"), HasSubstr("kernels"));
  EXPECT_THAT(error(R"({"kernels": [{}, {"metrics": {"a.sum": {"value": 1, "unit": ""}}}]})"),
              HasSubstr("kernels[1].metrics.a.sum: expected"));
  EXPECT_THAT(error(R"({"kernels": [{"grid": [1, -1, 1]}]})"), HasSubstr("kernels[0].grid"));
  EXPECT_THAT(error(R"({"kernels": [{"block": [1, 4294967296, 1]}]})"), HasSubstr("2^32"));
  EXPECT_THAT(error(R"({"kernels": [{"time_us": 5}]})"), HasSubstr("provenance"));
  EXPECT_THAT(error(R"({"kernels": [{"time_us": 1e999, "provenance": "counted"}]})"),
              HasSubstr("p.json"));
  EXPECT_THAT(
      error(R"({"kernels": [], "timeline": [{"kind": "nap", "start_ns": 0, "end_ns": 1}]})"),
      HasSubstr("timeline[0].kind"));
  EXPECT_THAT(
      error(R"({"kernels": [], "timeline": [{"kind": "api", "start_ns": 1.5, "end_ns": 1}]})"),
      HasSubstr("start_ns"));
  EXPECT_THAT(error(R"({"kernelpro_profile": 2, "kernels": []})"), HasSubstr("newer"));
}

std::set<std::string> KeysOf(const nlohmann::json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.insert(key);
  }
  return keys;
}

TEST(ProfileJson, TheExampleOfTheDocumentationHasEveryKey) {
  const auto page =
      ReadFile(std::filesystem::path(KP_SOURCE_DIR) / "docs" / "profile_format.md").value();
  const std::size_t begin = page.find("```json") + 7;
  const std::string example = page.substr(begin, page.find("```", begin) - begin);
  const auto profile = ParseProfileJson(example, "example");
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_DOUBLE_EQ(profile->kernels.at(0).time_us, 412.6);
  EXPECT_EQ(profile->timeline.at(0).end_ns, 413600);
  const auto ours = nlohmann::json::parse(ProfileJson(*profile));
  const auto theirs = nlohmann::json::parse(example);
  EXPECT_EQ(KeysOf(ours), KeysOf(theirs));
  EXPECT_EQ(KeysOf(ours["kernels"][0]), KeysOf(theirs["kernels"][0]));
}

TEST(ProfileJson, DeepNestingIsSafe) {
  EXPECT_FALSE(ParseProfileJson(std::string(200'000, '['), "p.json").ok());
  const std::string nested = std::string(50'000, '[') + std::string(50'000, ']');
  EXPECT_TRUE(ParseProfileJson("{\"kernels\": [], \"x\": " + nested + "}", "p.json").ok());
}

TEST(ProfileJson, KeysOfTheCommandLine) {
  Profile profile;
  profile.kernels.emplace_back().metrics["a"] = {1.5, "%", Provenance::kModelled};
  const auto json = nlohmann::json::parse(ProfileJson(profile));
  for (const char* key : {"device", "source", "kernels", "task"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  for (const char* key :
       {"name", "grid", "block", "time_us", "provenance", "metrics", "missing", "lines"}) {
    EXPECT_TRUE(json["kernels"][0].contains(key)) << key;
  }
  EXPECT_EQ(json["kernels"][0]["metrics"]["a"]["value"], 1.5);
  EXPECT_EQ(json["kernels"], nlohmann::json::parse(KernelsJson(profile)));
  EXPECT_EQ(MetricsJson(profile.kernels[0].metrics),
            R"({"a":{"value":1.5,"unit":"%","provenance":"modelled"}})");
}

}  // namespace
}  // namespace kernelpro
