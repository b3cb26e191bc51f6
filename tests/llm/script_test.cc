// SPDX-License-Identifier: Apache-2.0
// Faults do to the bytes what their names say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault.h"
#include "wire.h"

namespace kernelpro::fake {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Reply Stream() {
  Asked asked;
  asked.model = "m";
  asked.stream = true;
  Tokens tokens;
  tokens.prompt = 7;
  tokens.completion = 3;
  return WriteOpenAi(asked, {.text = "twelve bytes"}, tokens, "1");
}

Reply Whole() {
  Asked asked;
  asked.model = "m";
  return WriteAnthropic(asked, {.text = "twelve bytes"}, {}, "1");
}

std::string Bytes(const std::vector<Step>& steps) {
  std::string all;
  for (const Step& step : steps) {
    all += step.bytes;
  }
  return all;
}

std::string Played(const Reply& reply, FaultKind kind, std::uint64_t seed = 1) {
  return Bytes(Script(reply, Fault{.kind = kind, .huge_bytes = 1U << 20U}, seed));
}

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++times;
  }
  return times;
}

std::size_t LengthTold(const std::string& bytes) {
  const std::string name = "Content-Length: ";
  return std::stoul(bytes.substr(bytes.find(name) + name.size()));
}

std::size_t BodySize(const std::string& bytes) {
  return bytes.size() - bytes.find("\r\n\r\n") - 4;
}

TEST(Tokens, AreFourBytesAndNeverHalfACharacter) {
  EXPECT_THAT(Tokenize("abcdefghij"), ElementsAre("abcd", "efgh", "ij"));
  EXPECT_THAT(Tokenize("abc\xC3\xBC-xyz"), ElementsAre("abc\xC3\xBC", "-xyz"));
  EXPECT_THAT(Tokenize(""), ElementsAre());
}

TEST(Script, WithoutAFaultAllIsThereAndTheLengthIsRight) {
  const std::string stream = Played(Stream(), FaultKind::kNone);
  EXPECT_THAT(stream, HasSubstr("data: [DONE]\n\n"));
  EXPECT_TRUE(stream.ends_with("0\r\n\r\n"));
  const std::string whole = Played(Whole(), FaultKind::kNone);
  EXPECT_EQ(LengthTold(whole), BodySize(whole));
}

TEST(Script, SlowSendsTheSameBytes) {
  EXPECT_EQ(Played(Stream(), FaultKind::kSlow), Played(Stream(), FaultKind::kNone));
}

TEST(Script, CutsLeaveAPrefix) {
  const std::string all = Played(Stream(), FaultKind::kNone);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::string headers = Played(Stream(), FaultKind::kCutInHeaders, seed);
    EXPECT_TRUE(all.starts_with(headers));
    EXPECT_THAT(headers, Not(HasSubstr("\r\n\r\n")));
    const std::string event = Played(Stream(), FaultKind::kCutInEvent, seed);
    EXPECT_TRUE(event.starts_with(all.substr(0, all.find("\r\n\r\n"))));
    EXPECT_THAT(event, Not(HasSubstr("\"finish_reason\":\"stop\"")));
  }
  const std::string end = Played(Stream(), FaultKind::kCutBeforeEnd);
  EXPECT_TRUE(all.starts_with(end));
  EXPECT_THAT(end, HasSubstr("\"finish_reason\":\"stop\""));
  EXPECT_THAT(end, Not(HasSubstr("[DONE]")));
}

TEST(Script, WrongLengths) {
  const std::string more = Played(Whole(), FaultKind::kLengthTooLong);
  EXPECT_GT(LengthTold(more), BodySize(more));
  const std::string fewer = Played(Whole(), FaultKind::kLengthTooShort);
  EXPECT_LT(LengthTold(fewer), BodySize(fewer));
}

TEST(Script, DuplicatesWhatOpensAndEndsAStreamOnly) {
  const std::string twice = Played(Stream(), FaultKind::kDuplicatedEvents);
  EXPECT_EQ(Count(twice, "[DONE]"), 2U);
  EXPECT_EQ(Count(twice, "\"finish_reason\":\"stop\""), 2U);
  EXPECT_EQ(Count(twice, "\"twel\""), 1U);
}

TEST(Script, BadTextIsNoUtf8) {
  EXPECT_THAT(Played(Whole(), FaultKind::kInvalidUtf8), HasSubstr("\xC0\xAF"));
  EXPECT_THAT(Played(Stream(), FaultKind::kInvalidUtf8), HasSubstr("\xC0\xAF"));
}

TEST(Script, AHugeLineHasNoEnd) {
  const std::string bytes = Played(Stream(), FaultKind::kHugeLine);
  EXPECT_GT(bytes.size(), 1U << 20U);
  const std::string line = bytes.substr(bytes.find("\"pad\""));
  EXPECT_EQ(Count(line, "\n\n"), 0U);
}

TEST(Script, TheSeedDecides) {
  EXPECT_EQ(Played(Stream(), FaultKind::kGarbage, 5), Played(Stream(), FaultKind::kGarbage, 5));
  EXPECT_NE(Played(Stream(), FaultKind::kGarbage, 5), Played(Stream(), FaultKind::kGarbage, 6));
}

TEST(Faults, HaveNamesThatAreFound) {
  for (const FaultFacts& facts : AllFaults()) {
    EXPECT_EQ(FindFault(facts.name), facts.kind);
  }
  EXPECT_EQ(FindFault("no such fault"), std::nullopt);
}

TEST(HttpDates, AreWrittenAsInTheStandard) {
  EXPECT_EQ(HttpDate(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");  // RFC 9110, 5.6.7
}

}  // namespace
}  // namespace kernelpro::fake
