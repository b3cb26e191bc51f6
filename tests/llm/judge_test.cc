// SPDX-License-Identifier: Apache-2.0
// The judge of the faults' test must find what it looks for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault_judge.h"

namespace kernelpro::fake {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr llm::Price kPrice{2, 0.5, 3, 10};
const std::string kSecret = "sk-0123456789abcdef";

LedgerEntry Entry(bool delivered = true) {
  LedgerEntry entry;
  entry.tokens.prompt = 100;
  entry.tokens.cached = 40;
  entry.tokens.completion = 10;
  entry.delivered = delivered;
  return entry;
}

// 60 * 2 + 40 * 0.5 + 10 * 10 millionths of a dollar.
constexpr double kEntryDollars = 240e-6;

Ended Answered(const std::string& text) {
  Ended ended;
  ended.response.emplace();
  ended.response->text = text;
  ended.response->usage.input = 100;
  ended.response->usage.cache_read = 40;
  ended.response->usage.output = 10;
  ended.response->cost = kEntryDollars;
  return ended;
}

Ended Error(ErrorCode code, const std::string& message = "the server is in trouble") {
  Ended ended;
  ended.code = code;
  ended.message = message;
  return ended;
}

std::vector<std::string> Judged(FaultKind kind, bool always, const Ended& ended,
                                const std::vector<LedgerEntry>& bill) {
  return Violations({.kind = kind, .always = always, .text = "question"}, ended, bill, kPrice,
                    kSecret);
}

TEST(FaultJudge, ABillIsAddedUpByKindOfToken) {
  EXPECT_NEAR(Bill({Entry(), Entry()}, kPrice), 2 * kEntryDollars, 1e-15);
}

TEST(FaultJudge, ARightAnswerPasses) {
  EXPECT_THAT(Judged(FaultKind::kNone, false, Answered("question"), {Entry()}), IsEmpty());
}

TEST(FaultJudge, AnotherTextIsFound) {
  EXPECT_THAT(Judged(FaultKind::kNone, false, Answered("questionquestion"), {Entry()}),
              ElementsAre(HasSubstr("another text")));
}

TEST(FaultJudge, MoneyThatWasNotAccountedIsFound) {
  Ended ended = Answered("question");
  ended.response->attempts = 2;
  EXPECT_THAT(Judged(FaultKind::kCutInEvent, false, ended, {Entry(false), Entry()}),
              ElementsAre(HasSubstr("accounted for")));
  ended.response->cost *= 2;
  EXPECT_THAT(Judged(FaultKind::kCutInEvent, false, ended, {Entry(false), Entry()}), IsEmpty());
}

TEST(FaultJudge, MoneyThatWasAccountedTwiceIsFound) {
  Ended ended = Answered("question");
  ended.response->cost *= 2;
  EXPECT_THAT(Judged(FaultKind::kNone, false, ended, {Entry()}),
              ElementsAre(HasSubstr("more accounted")));
}

TEST(FaultJudge, AskingAgainAfterAWholeAnswerIsFound) {
  Ended ended = Answered("question");
  ended.response->attempts = 2;
  ended.response->cost *= 2;
  EXPECT_THAT(Judged(FaultKind::kCutInEvent, false, ended, {Entry(), Entry()}),
              ElementsAre(HasSubstr("asked again")));
}

TEST(FaultJudge, GivingUpAtOnceIsFound) {
  EXPECT_THAT(Judged(FaultKind::kServerError, false, Error(ErrorCode::kUnavailable), {}),
              ElementsAre(HasSubstr("not tried again")));
  EXPECT_THAT(Judged(FaultKind::kServerError, true, Error(ErrorCode::kUnavailable), {}), IsEmpty());
}

TEST(FaultJudge, AWrongCodeIsFound) {
  EXPECT_THAT(Judged(FaultKind::kHtml200, true, Error(ErrorCode::kInternal), {}),
              ElementsAre(HasSubstr("error code")));
  EXPECT_THAT(Judged(FaultKind::kHtml200, true, Error(ErrorCode::kParse), {}), IsEmpty());
}

TEST(FaultJudge, AnAnswerOutOfNothingIsFound) {
  EXPECT_THAT(Judged(FaultKind::kHtml200, true, Answered("question"), {Entry()}),
              ElementsAre(HasSubstr("none can be had")));
}

TEST(FaultJudge, APartOfTheKeyIsFound) {
  EXPECT_THAT(
      Judged(FaultKind::kHtml200, true, Error(ErrorCode::kParse, "key ...3456789abcdef"), {}),
      ElementsAre(HasSubstr("the key is in")));
}

TEST(FaultJudge, ATruncatedAnswerThatIsNotCalledSoIsFound) {
  EXPECT_THAT(Judged(FaultKind::kTruncated, true, Answered("ques"), {Entry()}),
              ElementsAre(HasSubstr("problem ''")));
}

}  // namespace
}  // namespace kernelpro::fake
