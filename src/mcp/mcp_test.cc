// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "mcp/server.h"
#include "mcp/test_peer.h"

namespace kernelpro::mcp {
namespace {

using ::testing::HasSubstr;

constexpr int kParse = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kNoMethod = -32601;
constexpr int kInvalidParams = -32602;
constexpr int kInternal = -32603;

class McpTest : public ::testing::Test {
 protected:
  Gate gate_;
  Peer peer_{TestOffer(gate_)};
};

std::string TextOf(const Json& answer) {
  return answer["result"]["content"][0]["text"].get<std::string>();
}

TEST_F(McpTest, TheHandshakeGivesTheClientsRevisionOrTheNewest) {
  for (const auto& [asked, got] :
       {std::pair{"2024-11-05", "2024-11-05"}, std::pair{"2025-03-26", "2025-03-26"},
        std::pair{"2025-06-18", "2025-06-18"}, std::pair{"2025-11-25", "2025-11-25"},
        std::pair{"1999-01-01", "2025-11-25"}, std::pair{"2026-07-28", "2025-11-25"}}) {
    Peer peer(TestOffer(gate_));
    const Json answer = peer.Ask(1, "initialize", {{"protocolVersion", asked}});
    EXPECT_EQ(answer["result"]["protocolVersion"], got);
    EXPECT_EQ(answer["result"]["serverInfo"].contains("title"), std::string(got) >= "2025-06-18");
    EXPECT_EQ(answer["result"]["instructions"], "Read this.");
    EXPECT_EQ(answer["result"]["capabilities"], Json::parse(R"({"tools":{},"resources":{}})"));
  }
}

TEST_F(McpTest, BeforeTheHandshakeOnlyPingIsAnswered) {
  EXPECT_TRUE(peer_.InStep());
  EXPECT_EQ(CodeOf(peer_.Ask(1, "tools/list")), kInvalidRequest);
  EXPECT_EQ(CodeOf(peer_.Ask(2, "resources/read", {{"uri", "kp:one"}})), kInvalidRequest);
  peer_.Send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});  // too early
  EXPECT_EQ(CodeOf(peer_.Ask(3, "tools/list")), kInvalidRequest);
  EXPECT_EQ(CodeOf(peer_.Ask(4, "initialize", Json::object())), kInvalidParams);
  EXPECT_EQ(CodeOf(peer_.Ask(5, "initialize", {{"protocolVersion", "2025-06-18"}})), 0);
  EXPECT_EQ(CodeOf(peer_.Ask(6, "tools/list")), kInvalidRequest) << "initialized is missing";
  EXPECT_TRUE(peer_.InStep());
  peer_.Send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
  EXPECT_EQ(CodeOf(peer_.Ask(7, "tools/list")), 0);
  EXPECT_EQ(CodeOf(peer_.Ask(8, "initialize", {{"protocolVersion", "2025-06-18"}})),
            kInvalidRequest);
}

TEST_F(McpTest, ToolsAreListedAsTheRevisionHasThem) {
  peer_.Begin("2025-11-25");
  Json tool = peer_.Ask(1, "tools/list")["result"]["tools"][1];
  EXPECT_EQ(tool["name"], "sum");
  EXPECT_EQ(tool["title"], "Title of sum");
  EXPECT_EQ(tool["inputSchema"]["required"], Json::array({"a"}));
  EXPECT_EQ(tool["outputSchema"]["required"], Json::array({"sum"}));
  EXPECT_EQ(tool["annotations"]["readOnlyHint"], true);
  Peer old(TestOffer(gate_));
  old.Begin("2024-11-05");
  tool = old.Ask(1, "tools/list")["result"]["tools"][1];
  EXPECT_TRUE(tool.contains("inputSchema"));
  EXPECT_FALSE(tool.contains("title") || tool.contains("outputSchema") ||
               tool.contains("annotations"));
}

TEST(Mcp, LongListsComeInPages) {
  Gate gate;
  Offer offer = TestOffer(gate);
  const Tool echo = offer.tools[0];
  for (int i = 0; i < 200; ++i) {
    offer.tools.push_back(echo);
    offer.tools.back().name = "echo" + std::to_string(i);
  }
  Peer peer(std::move(offer));
  peer.Begin();
  std::vector<std::string> names;
  Json params = Json::object();
  for (int page = 0; page < 3; ++page) {
    const Json result = peer.Ask(page, "tools/list", params)["result"];
    for (const Json& tool : result["tools"]) {
      names.push_back(tool["name"]);
    }
    EXPECT_EQ(result.contains("nextCursor"), page < 2);
    params["cursor"] = result.value("nextCursor", "");
  }
  EXPECT_EQ(names.size(), 208U);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 208U);
  for (const Json& cursor : {Json("x"), Json("-100"), Json("150"), Json(7), Json("0")}) {
    EXPECT_EQ(CodeOf(peer.Ask(9, "tools/list", {{"cursor", cursor}})), kInvalidParams) << cursor;
  }
  EXPECT_EQ(peer.Ask(9, "tools/list", {{"cursor", "900"}})["result"]["tools"].size(), 0U);
}

TEST_F(McpTest, AToolAnswersWithTextAndStructure) {
  peer_.Begin();
  peer_.Send(CallOf(1, "sum", {{"a", 2}, {"b", {3, 4}}}));
  const Json answer = peer_.Receive();
  EXPECT_EQ(answer["id"], 1);
  EXPECT_EQ(TextOf(answer), "the sum");
  EXPECT_EQ(answer["result"]["structuredContent"], Json::parse(R"({"sum":9})"));
  EXPECT_EQ(answer["result"]["isError"], false);
  peer_.Send(CallOf("1", "echo", {{"text", "x"}}));
  EXPECT_EQ(peer_.Receive(), Json::parse(R"({"jsonrpc":"2.0","id":"1","result":
      {"content":[{"type":"text","text":"x"}],"isError":false}})"));
}

TEST_F(McpTest, AnOldClientGetsTheStructureAsText) {
  peer_.Begin("2025-03-26");
  peer_.Send(CallOf(1, "sum", {{"a", 2}}));
  const Json result = peer_.Receive()["result"];
  EXPECT_FALSE(result.contains("structuredContent"));
  ASSERT_EQ(result["content"].size(), 2U);
  EXPECT_EQ(result["content"][1]["text"], R"({"sum":2})");
}

TEST_F(McpTest, ArgumentsAreHeldAgainstTheSchemaAndTheModelReadsWhatIsWrong) {
  peer_.Begin();
  const std::pair<Json, std::string> cases[] = {
      {{{"a", "2"}}, "arguments.a"},
      {{{"a", 1.5}}, "arguments.a"},
      {Json::object(), "'a'"},
      {{{"a", 1}, {"b", {1, -1}}}, "arguments.b[1]"},
      {{{"a", 1}, {"b", {1, 2, 3, 4}}}, "arguments.b"},
  };
  for (const auto& [arguments, said] : cases) {
    peer_.Send(CallOf(1, "sum", arguments));
    const Json answer = peer_.Receive();
    EXPECT_EQ(answer["result"]["isError"], true) << arguments;
    EXPECT_THAT(TextOf(answer), HasSubstr(said));
  }
  peer_.Send(CallOf(1, "echo", {{"text", "x"}, {"more", 1}}));
  EXPECT_THAT(TextOf(peer_.Receive()), HasSubstr("more"));
}

TEST_F(McpTest, WrongCallsAreProtocolErrors) {
  peer_.Begin();
  EXPECT_EQ(CodeOf(peer_.Ask(1, "tools/call", {{"name", "nope"}})), kInvalidParams);
  EXPECT_EQ(CodeOf(peer_.Ask(2, "tools/call", {{"name", 5}})), kInvalidParams);
  EXPECT_EQ(CodeOf(peer_.Ask(3, "tools/call")), kInvalidParams);
  for (const Json& arguments : {Json::array(), Json("x"), Json(nullptr)}) {
    EXPECT_EQ(CodeOf(peer_.Ask(4, "tools/call", {{"name", "echo"}, {"arguments", arguments}})),
              kInvalidParams);
  }
  EXPECT_EQ(
      CodeOf(peer_.Ask(5, "tools/call", {{"name", "fail"}, {"_meta", {{"progressToken", 1.5}}}})),
      kInvalidParams);
  EXPECT_EQ(CodeOf(peer_.Ask(6, "tools/call", Json::array({1}))), kInvalidParams);
  EXPECT_TRUE(peer_.InStep());
}

TEST_F(McpTest, AFailureOfAToolIsAResult) {
  peer_.Begin();
  peer_.Send(CallOf(1, "fail"));
  const Json failed = peer_.Receive();
  EXPECT_EQ(failed["result"]["isError"], true);
  EXPECT_EQ(TextOf(failed), "no GPU here");
  peer_.Send(CallOf(2, "bad_news"));
  const Json bad_news = peer_.Receive();
  EXPECT_EQ(bad_news["result"]["isError"], true);
  EXPECT_EQ(TextOf(bad_news), "it is wrong");
}

TEST_F(McpTest, AToolThatBreaksItsPromiseIsAnInternalError) {
  peer_.Begin();
  peer_.Send(CallOf(1, "liar"));
  const Json liar = peer_.Receive();
  EXPECT_EQ(CodeOf(liar), kInternal);
  EXPECT_THAT(liar["error"]["message"], HasSubstr("result.sum"));
  peer_.Send(CallOf(2, "thrower"));
  EXPECT_EQ(CodeOf(peer_.Receive()), kInternal);
}

TEST_F(McpTest, ForeignBytesInATextDoNotBreakTheLine) {
  peer_.Begin();
  peer_.Send(CallOf(1, "raw"));
  EXPECT_EQ(TextOf(peer_.Receive()), "a\nb\xef\xbf\xbd");
  EXPECT_TRUE(peer_.InStep());
}

TEST_F(McpTest, ResourcesAreListedAndRead) {
  peer_.Begin();
  const Json listed = peer_.Ask(1, "resources/list")["result"]["resources"];
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0], Json::parse(R"({"uri":"kp:one","name":"one","title":"One",
      "description":"The first.","mimeType":"text/plain"})"));
  const Json templates = peer_.Ask(2, "resources/templates/list")["result"]["resourceTemplates"];
  ASSERT_EQ(templates.size(), 1U);
  EXPECT_EQ(templates[0]["uriTemplate"], "kp:runs/{name}");
  for (const auto& [uri, mime] :
       {std::pair{"kp:two", "application/json"}, std::pair{"kp:runs/7", "text/markdown"}}) {
    const Json read = peer_.Ask(3, "resources/read", {{"uri", uri}});
    EXPECT_EQ(
        read["result"]["contents"],
        Json::array(
            {{{"uri", uri}, {"mimeType", mime}, {"text", std::string("content of ") + uri}}}));
  }
}

TEST_F(McpTest, AResourceThatIsNotThereIsNamed) {
  peer_.Begin();
  const Json unknown = peer_.Ask(1, "resources/read", {{"uri", "kp:none"}});
  EXPECT_EQ(CodeOf(unknown), -32002);
  EXPECT_EQ(unknown["error"]["data"]["uri"], "kp:none");
  EXPECT_EQ(CodeOf(peer_.Ask(2, "resources/read", {{"uri", "kp:broken"}})), kInternal);
  EXPECT_EQ(CodeOf(peer_.Ask(3, "resources/read", {{"uri", 3}})), kInvalidParams);
}

TEST_F(McpTest, WhatIsNotOfferedIsNoMethod) {
  peer_.Begin();
  for (const char* method : {"prompts/list", "completion/complete", "logging/setLevel",
                             "resources/subscribe", "tools/", "", "notifications/initialized"}) {
    EXPECT_EQ(CodeOf(peer_.Ask(1, method)), kNoMethod) << method;
  }
}

TEST(Mcp, AnEmptyOfferHasNeitherToolsNorResources) {
  Offer offer;
  offer.info = {"bare", "", "1", ""};
  Peer peer(std::move(offer));
  const Json begun = peer.Ask(0, "initialize", {{"protocolVersion", "2025-06-18"}})["result"];
  EXPECT_EQ(begun["capabilities"], Json::object());
  EXPECT_FALSE(begun.contains("instructions"));
  peer.Send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
  EXPECT_EQ(CodeOf(peer.Ask(1, "tools/list")), kNoMethod);
  EXPECT_EQ(CodeOf(peer.Ask(2, "tools/call", {{"name", "x"}})), kNoMethod);
  EXPECT_EQ(CodeOf(peer.Ask(3, "resources/list")), kNoMethod);
}

TEST_F(McpTest, AStatelessClientNeedsNoHandshake) {
  const Json found = peer_.AskStateless(1, "server/discover")["result"];
  EXPECT_EQ(found["supportedVersions"][0], "2026-07-28");
  EXPECT_EQ(found["supportedVersions"].size(), 5U);
  EXPECT_EQ(found["resultType"], "complete");
  EXPECT_EQ(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test");
  const Json tools = peer_.AskStateless(2, "tools/list")["result"];
  EXPECT_EQ(tools["tools"].size(), 8U);
  EXPECT_EQ(tools["ttlMs"], 0);
  EXPECT_EQ(tools["cacheScope"], "private");
  const Json called =
      peer_.AskStateless(3, "tools/call", {{"name", "sum"}, {"arguments", {{"a", 5}}}})["result"];
  EXPECT_EQ(called["structuredContent"]["sum"], 5);
  EXPECT_EQ(called["resultType"], "complete");
  EXPECT_EQ(CodeOf(peer_.AskStateless(4, "resources/read", {{"uri", "kp:none"}})), kInvalidParams);
  EXPECT_EQ(CodeOf(peer_.AskStateless(5, "ping")), kNoMethod);
  EXPECT_EQ(CodeOf(peer_.Ask(6, "tools/list")), kInvalidRequest) << "no state was left behind";
}

TEST_F(McpTest, AStatelessRequestStatesWhatItMust) {
  const std::string key = "io.modelcontextprotocol/protocolVersion";
  const Json future = peer_.Ask(1, "tools/list", {{"_meta", {{key, "2030-01-01"}}}});
  EXPECT_EQ(CodeOf(future), -32022);
  EXPECT_EQ(future["error"]["data"],
            Json::parse(R"({"supported":["2026-07-28"],"requested":"2030-01-01"})"));
  EXPECT_EQ(CodeOf(peer_.Ask(2, "tools/list", {{"_meta", {{key, "2026-07-28"}}}})), kInvalidParams)
      << "the client's capabilities are missing";
  EXPECT_EQ(CodeOf(peer_.Ask(3, "tools/list", {{"_meta", {{key, 5}}}})), kInvalidParams);
  EXPECT_EQ(CodeOf(peer_.Ask(4, "server/discover")), kInvalidParams);
}

TEST(Mcp, AWrongOfferIsRefusedBeforeAnythingIsRead) {
  Gate gate;
  const auto refused = [&](const std::function<void(Offer&)>& spoil) {
    Offer offer = TestOffer(gate);
    spoil(offer);
    const Status status = Serve(offer, -1, -1, {});
    return status.ok() ? std::string("served") : status.error().message;
  };
  EXPECT_THAT(refused([](Offer& o) { o.tools[0].name = o.tools[1].name; }), HasSubstr("name"));
  EXPECT_THAT(refused([](Offer& o) { o.tools[0].name = "two words"; }), HasSubstr("name"));
  EXPECT_THAT(refused([](Offer& o) { o.tools[0].call = nullptr; }), HasSubstr("function"));
  EXPECT_THAT(refused([](Offer& o) { o.tools[0].input_schema = "{"; }), HasSubstr("input schema"));
  EXPECT_THAT(refused([](Offer& o) { o.tools[0].input_schema = R"({"type":"string"})"; }),
              HasSubstr("object"));
  EXPECT_THAT(
      refused([](Offer& o) { o.tools[1].output_schema = R"({"type":"object","required":1})"; }),
      HasSubstr("output schema"));
  EXPECT_THAT(refused([](Offer& o) {
                o.tools[0].input_schema =
                    R"({"type":"object","properties":{"a":{"type":"string","pattern":"^a*$"}}})";
              }),
              HasSubstr("\"pattern\" is not obeyed"));
}

}  // namespace
}  // namespace kernelpro::mcp
