// SPDX-License-Identifier: Apache-2.0
#include "profile/repetition.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

#include "profile/interval_set.h"
#include "profile/test_repetition.h"

namespace kernelpro {
namespace {

std::vector<std::uint32_t> Letters(std::string_view text) {
  return {text.begin(), text.end()};
}

std::optional<Repetition> Find(std::string_view text) {
  const std::vector<std::uint32_t> items = Letters(text);
  return FindRepetition(items, std::vector<double>(items.size(), 1), 3);
}

void ExpectRepetition(std::string_view text, std::size_t first, std::size_t length,
                      std::size_t repeats) {
  const auto found = Find(text);
  ASSERT_TRUE(found) << text;
  EXPECT_EQ(found->first, first) << text;
  EXPECT_EQ(found->length, length) << text;
  EXPECT_EQ(found->repeats, repeats) << text;
}

TEST(Repetition, ByHand) {
  EXPECT_FALSE(Find(""));
  EXPECT_FALSE(Find("a"));
  EXPECT_FALSE(Find("abab"));  // twice is not three times
  ExpectRepetition("aaa", 0, 1, 3);
  ExpectRepetition("xyabcabcabcz", 2, 3, 3);
  ExpectRepetition("abcabcabcab", 0, 3, 3);
  // Steps of five launches, of which four are the same.
  ExpectRepetition("aaaabaaaabaaaabaaaab", 0, 5, 4);
}

TEST(Repetition, WeightDecidesAndNotCount) {
  const std::vector<std::uint32_t> items = Letters("aaaaaaaabcbcbc");
  std::vector<double> weights(items.size(), 1);
  EXPECT_EQ(FindRepetition(items, weights, 3)->length, 1U);
  for (std::size_t i = 8; i < weights.size(); ++i) {
    weights[i] = 10;
  }
  EXPECT_EQ(FindRepetition(items, weights, 3)->length, 2U);
}

TEST(Repetition, AgreesWithTryingEverything) {
  std::mt19937 engine(20);  // NOLINT(cert-msc51-cpp): the same cases every time
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  for (int round = 0; round < 3000; ++round) {
    const std::size_t size = random() % 40;
    const std::uint32_t letters = 1 + random() % 3;
    std::vector<std::uint32_t> items;
    std::vector<double> weights;
    const std::size_t period = 1 + random() % 7;  // mostly periodic, with a few slips
    for (std::size_t i = 0; i < size; ++i) {
      items.push_back(i >= period && random() % 10 != 0 ? items[i - period] : random() % letters);
      weights.push_back(static_cast<double>(random() % 4));
    }
    const auto fast = FindRepetition(items, weights, 3);
    const auto slow = RepetitionByTrying(items, weights, 3);
    ASSERT_EQ(fast.has_value(), slow.has_value()) << round;
    if (fast) {
      EXPECT_EQ(std::tuple(fast->first, fast->length, fast->repeats),
                std::tuple(slow->first, slow->length, slow->repeats))
          << round;
    }
  }
}

TEST(IntervalSet, AgreesWithCountingTicks) {
  std::mt19937 random(21);  // NOLINT(cert-msc51-cpp)
  for (int round = 0; round < 500; ++round) {
    std::vector<bool> on_a(64);
    std::vector<bool> on_b(64);
    const auto fill = [&](std::vector<bool>* on) {
      std::vector<Interval> intervals;
      for (std::size_t i = random() % 8; i > 0; --i) {
        const std::int64_t begin = random() % 60;
        const std::int64_t end = begin - 2 + random() % 12;
        intervals.push_back({begin, std::min<std::int64_t>(end, 64)});
        for (std::int64_t t = begin; t < intervals.back().end; ++t) {
          (*on)[static_cast<std::size_t>(t)] = true;
        }
      }
      return Union(intervals);
    };
    const IntervalSet a = fill(&on_a);
    const IntervalSet b = fill(&on_b);
    int in_a = 0;
    int both = 0;
    int gap = 0;
    for (std::size_t t = 0; t < 64; ++t) {
      in_a += on_a[t] ? 1 : 0;
      both += on_a[t] && on_b[t] ? 1 : 0;
      gap += t >= 5 && t < 50 && !on_a[t] ? 1 : 0;
    }
    EXPECT_EQ(TotalNs(a), in_a);
    EXPECT_EQ(TotalNs(Intersection(a, b)), both);
    EXPECT_EQ(TotalNs(Gaps(a, {5, 50})), gap);
  }
}

}  // namespace
}  // namespace kernelpro
