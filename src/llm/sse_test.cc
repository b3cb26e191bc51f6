// SPDX-License-Identifier: Apache-2.0
#include "llm/sse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro::llm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// "name|data" of each event; "error" at the end when the parser gave one.
std::vector<std::string> Events(const std::vector<std::string>& pieces, std::size_t limit = 1000) {
  SseParser parser(limit);
  std::vector<std::string> events;
  for (const std::string& piece : pieces) {
    const Status status = parser.Feed(piece, [&](const SseEvent& event) {
      events.push_back(event.name + "|" + event.data);
      return Ok();
    });
    if (!status.ok()) {
      events.emplace_back("error");
      break;
    }
  }
  return events;
}

std::vector<std::string> Bytes(std::string_view text) {
  std::vector<std::string> bytes;
  for (const char c : text) {
    bytes.emplace_back(1, c);
  }
  return bytes;
}

// The examples of the standard (HTML, 9.2.6 "Interpreting an event stream").
TEST(Sse, ExamplesOfTheStandard) {
  EXPECT_THAT(Events({"data: YHOO\ndata: +2\ndata: 10\n\n"}), ElementsAre("message|YHOO\n+2\n10"));
  EXPECT_THAT(Events({": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
                      "data:  third event\n\n"}),
              ElementsAre("message|first event", "message|second event", "message| third event"));
  // Two events: the first has no data and is dropped with its one empty data line; the second is a
  // newline; the last is not ended by a blank line.
  EXPECT_THAT(Events({"data\n\ndata\ndata\n\ndata:"}), ElementsAre("message|\n"));
  EXPECT_THAT(Events({"data:test\n\ndata: test\n\n"}), ElementsAre("message|test", "message|test"));
}

TEST(Sse, LineEndsOfAllKindsMixed) {
  EXPECT_THAT(Events({"data: a\r\n\r\ndata: b\r\rdata: c\n\n"}),
              ElementsAre("message|a", "message|b", "message|c"));
  EXPECT_THAT(Events({"data: a\r", "\n\r", "\n"}), ElementsAre("message|a"));
  EXPECT_THAT(Events({"event: ping\r\ndata: {}\r\n\r\n"}), ElementsAre("ping|{}"));
}

TEST(Sse, NameIsOfOneEventOnly) {
  EXPECT_THAT(Events({"event: a\ndata: 1\n\ndata: 2\n\nevent: b\n\ndata: 3\n\n"}),
              ElementsAre("a|1", "message|2", "message|3"));
}

TEST(Sse, ByteOrderMarkAtTheStartOnly) {
  EXPECT_THAT(Events(Bytes("\xef\xbb\xbf"
                           "data: a\n\n")),
              ElementsAre("message|a"));
  EXPECT_THAT(Events({"\xef\xbb", "data: a\n\n"}), IsEmpty());  // a field of another name
  EXPECT_THAT(Events({"data: a\n\n\xef\xbb\xbf"
                      "data: b\n\n"}),
              ElementsAre("message|a"));
}

TEST(Sse, TooLongIsAnErrorForGood) {
  const std::string line = "data: " + std::string(94, 'x');
  EXPECT_THAT(Events({line + "\n\n"}, 100), ElementsAre("message|" + std::string(94, 'x')));
  EXPECT_THAT(Events({line + "x\n\n"}, 100), ElementsAre("error"));
  EXPECT_THAT(Events({line + "\n" + line + "\n\n"}, 100), ElementsAre("error"));
  SseParser parser(10);
  const auto none = [](const SseEvent&) { return Ok(); };
  EXPECT_FALSE(parser.Feed("0123456789a", none).ok());
  EXPECT_FALSE(parser.Feed("\n\ndata: a\n\n", none).ok());
}

TEST(Sse, ErrorOfTheSinkEndsTheFeeding) {
  SseParser parser;
  int seen = 0;
  const Status status = parser.Feed("data: a\n\ndata: b\n\n", [&](const SseEvent&) -> Status {
    ++seen;
    return Fail(ErrorCode::kParse, "no");
  });
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(seen, 1);
}

TEST(Sse, AnyCutGivesTheSameEvents) {
  EXPECT_TRUE(rc::check("pieces of any size", [] {
    static constexpr char kAlphabet[] = "\r\n: adteavn\xef\xbb\xbf";
    auto word = rc::gen::oneOf(
        rc::gen::elementOf(std::vector<std::string>{"data:", "data: ", "event: ", "\n\n", "\r\n",
                                                    "\r", "\n", ":", "id: 7", "\xef\xbb\xbf", "x"}),
        rc::gen::container<std::string>(
            rc::gen::elementOf(std::string(kAlphabet, sizeof kAlphabet - 1))));
    std::string text;
    for (const std::string& part : *rc::gen::container<std::vector<std::string>>(word)) {
      text += part;
    }
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const auto size = *rc::gen::inRange<std::size_t>(1, 6);
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    const auto whole = Events({text}, 40);
    RC_ASSERT(Events(pieces, 40) == whole);
    RC_ASSERT(Events(Bytes(text), 40) == whole);
  }));
}

}  // namespace
}  // namespace kernelpro::llm
