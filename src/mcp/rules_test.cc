// SPDX-License-Identifier: Apache-2.0
// JSON-RPC's rules, streams, and calls that overlap.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mcp/server.h"
#include "mcp/test_peer.h"

namespace kernelpro::mcp {
namespace {

using ::testing::HasSubstr;

constexpr int kParse = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kInvalidParams = -32602;

class RulesTest : public ::testing::Test {
 protected:
  /// Sends bytes and takes the one message that they must bring.
  Json Reply(std::string_view bytes) {
    peer_.SendRaw(bytes);
    return peer_.Receive();
  }

  Gate gate_;
  Peer peer_{TestOffer(gate_)};
};

Json WithToken(Json call, const Json& token) {
  call["params"]["_meta"]["progressToken"] = token;
  return call;
}

Json Cancel(const Json& id) {
  return {{"jsonrpc", "2.0"},
          {"method", "notifications/cancelled"},
          {"params", {{"requestId", id}, {"reason", "test"}}}};
}

TEST_F(RulesTest, WhatIsNoJsonIsAParseErrorWithoutId) {
  for (const std::string& line :
       {std::string("{"), std::string("hello"), std::string("{\"a\":1}}"), std::string("\xff\xfe"),
        std::string(R"({"jsonrpc":"2.0","id":1,"method":"ping)") + "\xc3\x28\"}",
        std::string("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\0ng\"}", 39),
        std::string(R"({"jsonrpc":"2.0","id":1e999,"method":"ping"})"), std::string(1, '\0')}) {
    const Json answer = Reply(line + "\n");
    EXPECT_EQ(CodeOf(answer), kParse) << line;
    EXPECT_TRUE(answer["id"].is_null());
    EXPECT_TRUE(peer_.InStep());
  }
}

TEST_F(RulesTest, WhatIsNoRequestIsInvalid) {
  const std::pair<const char*, const char*> cases[] = {
      {"1", "null"},
      {"\"x\"", "null"},
      {"null", "null"},
      {"{}", "null"},
      {R"({"id":1,"method":"ping"})", "1"},
      {R"({"jsonrpc":"1.0","id":"a","method":"ping"})", "\"a\""},
      {R"({"jsonrpc":2.0,"id":1,"method":"ping"})", "1"},
      {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", "null"},
      {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", "null"},
      {R"({"jsonrpc":"2.0","id":[1],"method":"ping"})", "null"},
      {R"({"jsonrpc":"2.0","id":true,"method":"ping"})", "null"},
      {R"({"jsonrpc":"2.0","id":3,"method":5})", "3"},
      {R"({"jsonrpc":"2.0","id":4})", "4"},
      {R"({"jsonrpc":"2.0","id":5,"method":"ping","params":"x"})", "5"},
      {R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", "null"},
      {"[]", "null"},
  };
  for (const auto& [line, id] : cases) {
    const Json answer = Reply(std::string(line) + "\n");
    EXPECT_EQ(CodeOf(answer), kInvalidRequest) << line;
    EXPECT_EQ(answer["id"], Json::parse(id)) << line;
  }
  EXPECT_TRUE(peer_.InStep());
}

TEST_F(RulesTest, IdsComeBackAsTheyWere) {
  for (const char* id : {"0", "-7", "9007199254740993", "18446744073709551615", "\"\"", "\"a\\n\"",
                         "\"\xc3\xa4\""}) {
    const Json answer =
        Reply(std::string(R"({"jsonrpc":"2.0","method":"ping","id":)") + id + "}\n");
    EXPECT_EQ(answer["id"], Json::parse(id));
    EXPECT_EQ(answer["result"], Json::object());
  }
}

TEST_F(RulesTest, NotificationsResponsesAndBlankLinesAreNeverAnswered) {
  peer_.Begin();
  for (const char* line :
       {R"({"jsonrpc":"2.0","method":"tools/list"})", R"({"jsonrpc":"2.0","method":"no/such"})",
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]})",
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}})",
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}})",
        R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})",
        R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}})",
        R"({"jsonrpc":"2.0","id":1,"result":{}})",
        R"({"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}})", "", "  \t", "\r"}) {
    peer_.SendRaw(std::string(line) + "\n");
    EXPECT_TRUE(peer_.InStep()) << line;
  }
  peer_.SendRaw("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n");
  EXPECT_EQ(peer_.Receive()["id"], 1) << "CR LF ends a line too";
}

TEST_F(RulesTest, BatchesAreForTheirRevisionOnly) {
  const std::string batch = R"([{"jsonrpc":"2.0","id":1,"method":"ping"},
      {"jsonrpc":"2.0","method":"notifications/x"},7,
      {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"t"}}},
      {"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}])";
  std::string line;
  for (const char c : batch) {
    line += c == '\n' ? ' ' : c;
  }
  peer_.Begin("2025-03-26");
  const Json answers = Reply(line + "\n");
  ASSERT_TRUE(answers.is_array());
  ASSERT_EQ(answers.size(), 4U) << answers.dump();
  std::set<std::string> seen;
  for (const Json& answer : answers) {
    seen.insert(answer["id"].dump() + " " + std::to_string(CodeOf(answer)));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"1 0", "2 0", "3 -32600", "null -32600"}));
  EXPECT_EQ(CodeOf(Reply("[]\n")), kInvalidRequest);
  std::string many = "[1";
  for (int i = 0; i < 1000; ++i) {
    many += ",1";
  }
  EXPECT_EQ(CodeOf(Reply(many + "]\n")), kInvalidRequest) << "one message for a batch of 1001";
  peer_.SendRaw("[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]\n");
  EXPECT_TRUE(peer_.InStep()) << "a batch of notifications has no answer";
  Peer later(TestOffer(gate_));
  later.Begin("2025-06-18");
  later.SendRaw(line + "\n");
  EXPECT_EQ(CodeOf(later.Receive()), kInvalidRequest);
  EXPECT_TRUE(later.InStep());
}

TEST_F(RulesTest, ABatchAnswersOnceItsCallsAreDoneWithoutTheCancelled) {
  peer_.Begin("2025-03-26");
  peer_.Send(
      Json::array({CallOf(1, "wait"), CallOf(2, "echo", {{"text", "t"}}), CallOf(3, "wait")}));
  gate_.AwaitArrivals(1);
  peer_.Send(Cancel(3));
  EXPECT_TRUE(peer_.InStep()) << "nothing is answered before the batch is done";
  gate_.Open();
  const Json answers = peer_.Receive();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0]["id"], 1);
  EXPECT_EQ(answers[1]["id"], 2);
}

TEST_F(RulesTest, ProgressGrowsAndCarriesTheToken) {
  peer_.Begin();
  gate_.Open();
  peer_.Send(WithToken(CallOf(1, "wait"), "tok"));
  EXPECT_EQ(peer_.Receive()["params"],
            Json::parse(R"({"progressToken":"tok","progress":1.0,"total":4.0,"message":"came"})"));
  EXPECT_EQ(peer_.Receive()["params"], Json::parse(R"({"progressToken":"tok","progress":3.0})"));
  EXPECT_EQ(peer_.Receive()["id"], 1);
  peer_.Send(CallOf(2, "wait"));
  EXPECT_EQ(peer_.Receive()["id"], 2) << "no token, no progress";
  Peer old(TestOffer(gate_));
  old.Begin("2024-11-05");
  old.Send(WithToken(CallOf(1, "wait"), 7));
  EXPECT_EQ(old.Receive()["params"],
            Json::parse(R"({"progressToken":7,"progress":1.0,"total":4.0})"));
}

TEST_F(RulesTest, ARunningCallIsStoppedAndNotAnswered) {
  peer_.Begin();
  peer_.Send(WithToken(CallOf(1, "wait"), 1));
  EXPECT_EQ(peer_.Receive()["params"]["progress"], 1);
  EXPECT_EQ(peer_.Receive()["params"]["progress"], 3);
  gate_.AwaitArrivals(1);
  EXPECT_TRUE(peer_.InStep()) << "pings are answered meanwhile";
  EXPECT_EQ(peer_.Ask("list", "tools/list")["result"]["tools"].size(), 8U);
  peer_.Send(Cancel("1"));  // another id
  peer_.Send(Cancel(1));
  peer_.Send(CallOf(2, "echo", {{"text", "next"}}));
  EXPECT_EQ(peer_.Receive()["id"], 2) << "neither an answer nor progress of the cancelled call";
  peer_.Send(CallOf(1, "echo", {{"text", "again"}}));
  EXPECT_EQ(peer_.Receive()["id"], 1) << "its id is free again";
}

TEST_F(RulesTest, AWaitingCallIsDropped) {
  peer_.Begin();
  peer_.Send(CallOf(1, "wait"));
  peer_.Send(CallOf(2, "wait"));
  peer_.Send(CallOf(3, "echo", {{"text", "3"}}));
  gate_.AwaitArrivals(1);
  peer_.Send(Cancel(2));
  EXPECT_TRUE(peer_.InStep());
  gate_.Open();
  EXPECT_EQ(peer_.Receive()["id"], 1);
  EXPECT_EQ(peer_.Receive()["id"], 3);
  EXPECT_TRUE(peer_.InStep());
}

TEST_F(RulesTest, AnIdInFlightCannotBeUsedAgain) {
  peer_.Begin();
  peer_.Send(CallOf(1, "wait"));
  gate_.AwaitArrivals(1);
  peer_.Send({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}});
  const Json refused = peer_.Receive();
  EXPECT_EQ(CodeOf(refused), kInvalidRequest);
  EXPECT_TRUE(refused["id"].is_null()) << "it would pass for the call's own answer";
  peer_.Send({{"jsonrpc", "2.0"}, {"id", "1"}, {"method", "ping"}});
  EXPECT_EQ(peer_.Receive()["id"], "1") << "a string is another id";
  gate_.Open();
  EXPECT_EQ(peer_.Receive()["id"], 1);
}

TEST_F(RulesTest, AFullQueueRefuses) {
  peer_.Begin();
  peer_.Send(CallOf(-1, "wait"));
  gate_.AwaitArrivals(1);
  for (int i = 0; i < 1025; ++i) {
    peer_.Send(CallOf(i, "echo", {{"text", "x"}}));
  }
  const Json refused = peer_.Receive();
  EXPECT_EQ(refused["id"], 1024);
  EXPECT_THAT(refused["error"]["message"], HasSubstr("too many"));
  gate_.Open();
  EXPECT_EQ(peer_.Receive()["id"], -1);
  for (int i = 0; i < 1024; ++i) {
    ASSERT_EQ(peer_.Receive()["id"], i);
  }
}

TEST_F(RulesTest, MessagesHaveALargestSize) {
  const std::string head = R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":")";
  const std::size_t limit = 16U << 20U;
  const std::string longest = head + std::string(limit - head.size() - 3, 'x') + "\"}}";
  ASSERT_EQ(longest.size(), limit);
  EXPECT_EQ(Reply(longest + "\n")["result"], Json::object());
  EXPECT_EQ(CodeOf(Reply(longest + " \n")), kInvalidRequest);
  EXPECT_TRUE(peer_.InStep());
  peer_.SendRaw(longest + " ");
  EXPECT_EQ(CodeOf(peer_.Receive()), kInvalidRequest) << "told before the line ends";
  peer_.SendRaw("more\n");
  EXPECT_TRUE(peer_.InStep()) << "the rest of the line was skipped";
}

TEST_F(RulesTest, DepthAndMembersAreBounded) {
  const auto nested = [](std::size_t depth) {
    return R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":)" +
           std::string(depth - 2, '[') + std::string(depth - 2, ']') + "}}\n";
  };
  EXPECT_EQ(Reply(nested(100))["result"], Json::object());
  EXPECT_EQ(CodeOf(Reply(nested(101))), kInvalidRequest);
  EXPECT_EQ(CodeOf(Reply(nested(1000000))), kInvalidRequest);
  EXPECT_EQ(CodeOf(Reply(std::string(1000000, '[') + "\n")), kInvalidRequest);
  EXPECT_EQ(Reply(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\"[[[)" +
                  std::string(200, '[') + "\"}}\n")["result"],
            Json::object())
      << "brackets in a text are no nesting";
  const auto members = [](int count) {
    Json params = Json::object();
    for (int i = 0; i < count; ++i) {
      params.push_back({std::to_string(i), 1});
    }
    return Json{{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}, {"params", params}}.dump() +
           "\n";
  };
  EXPECT_EQ(Reply(members(1000))["result"], Json::object());
  EXPECT_EQ(CodeOf(Reply(members(1001))), kInvalidRequest);
}

TEST_F(RulesTest, ServeReturnsAtTheEndOfItsInputAndDropsWhatRuns) {
  peer_.Begin();
  peer_.Send(CallOf(1, "wait"));
  peer_.Send(CallOf(2, "echo", {{"text", "x"}}));
  gate_.AwaitArrivals(1);
  peer_.SendRaw(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");  // cut off
  peer_.EndInput();
  EXPECT_TRUE(peer_.Join().ok());
  EXPECT_EQ(peer_.Rest(), "");
}

TEST_F(RulesTest, ServeReturnsWhenStopped) {
  peer_.Begin();
  peer_.Send(CallOf(1, "wait"));
  gate_.AwaitArrivals(1);
  peer_.RequestStop();
  EXPECT_TRUE(peer_.Join().ok());
  EXPECT_EQ(peer_.Rest(), "");
}

TEST_F(RulesTest, AClientThatWentAwayIsAnErrorAndNoSignal) {
  peer_.Begin();
  peer_.Send(CallOf(1, "wait"));
  gate_.AwaitArrivals(1);
  peer_.CloseOutput();
  peer_.Send({{"jsonrpc", "2.0"}, {"id", 2}, {"method", "ping"}});
  const Status status = peer_.Join();  // the running tool is stopped, too
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
}

TEST_F(RulesTest, ServeCanBeStoppedWhileTheClientDoesNotRead) {
  peer_.Begin();
  const std::string text(90000, 'x');  // more than a pipe holds
  peer_.Send(CallOf(1, "echo", {{"text", text}}));
  peer_.Send(CallOf(2, "echo", {{"text", text}}));
  peer_.RequestStop();
  EXPECT_TRUE(peer_.Join().ok());
}

TEST_F(RulesTest, AnyBytesLeaveTheStreamInStep) {
  peer_.Begin();
  rc::check([&](const std::vector<std::string>& lines) {
    for (std::string line : lines) {
      std::erase(line, '\n');
      peer_.SendRaw(line + "\n");
    }
    peer_.SendRaw("{\"jsonrpc\":\"2.0\",\"id\":\"sync\",\"method\":\"ping\"}\n");
    for (;;) {  // answers to garbage may come first, each of them a message
      const Json answer = peer_.Receive();
      RC_ASSERT(answer.is_object());
      if (answer["id"] == "sync") {
        break;
      }
      RC_ASSERT(CodeOf(answer) != 0);
      RC_ASSERT(answer["id"].is_null());
    }
  });
}

rc::Gen<Json> AnyJson(int depth) {
  const auto word = rc::gen::element<std::string>(
      "jsonrpc", "2.0", "id", "method", "params", "ping", "tools/call", "tools/list", "name",
      "arguments", "echo", "sum", "_meta", "progressToken", "cursor", "uri", "kp:one", "text",
      "notifications/cancelled", "requestId", "resources/read", "initialize", "a");
  auto leaf = rc::gen::oneOf(rc::gen::map(word, [](const std::string& s) { return Json(s); }),
                             rc::gen::map(rc::gen::arbitrary<int>(), [](int i) { return Json(i); }),
                             rc::gen::element(Json(nullptr), Json(true), Json(1.5), Json("")));
  if (depth == 0) {
    return leaf;
  }
  const auto inner = rc::gen::container<std::vector<Json>>(AnyJson(depth - 1));
  return rc::gen::oneOf(leaf,
                        rc::gen::map(inner, [](const std::vector<Json>& v) { return Json(v); }),
                        rc::gen::map(rc::gen::container<std::vector<std::pair<std::string, Json>>>(
                                         rc::gen::pair(word, AnyJson(depth - 1))),
                                     [](const std::vector<std::pair<std::string, Json>>& members) {
                                       Json object{{"jsonrpc", "2.0"}};
                                       for (const auto& [key, value] : members) {
                                         object[key] = value;
                                       }
                                       return object;
                                     }));
}

TEST_F(RulesTest, AnyJsonLeavesTheStreamInStep) {
  peer_.Begin("2025-03-26");
  gate_.Open();
  rc::check([&] {
    const Json message = *AnyJson(2);
    peer_.Send(message);
    peer_.SendRaw("{\"jsonrpc\":\"2.0\",\"id\":\"sync\",\"method\":\"ping\"}\n");
    Json answer;
    do {
      answer = peer_.Receive();
      RC_ASSERT(answer.is_structured());
    } while (answer.is_array() || answer["id"] != "sync");
  });
}

}  // namespace
}  // namespace kernelpro::mcp
