// SPDX-License-Identifier: Apache-2.0
#include "mcp/test_peer.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace kernelpro::mcp {
namespace {

constexpr int kPatienceMs = 100000;

Tool MakeTool(std::string name, std::string input, std::string output,
              std::function<Result<ToolResult>(const Json&)> run) {
  Tool tool;
  tool.name = std::move(name);
  tool.title = "Title of " + tool.name;
  tool.description = "For tests.";
  tool.input_schema = std::move(input);
  tool.output_schema = std::move(output);
  tool.read_only = true;
  tool.call = [run = std::move(run)](const Json& arguments, ProgressSink&, const std::stop_token&) {
    return run(arguments);
  };
  return tool;
}

Tool WaitTool(Gate& gate) {
  Tool tool = MakeTool("wait", R"({"type":"object"})", "", {});
  tool.call = [&gate](const Json&, ProgressSink& progress,
                      const std::stop_token& stop) -> Result<ToolResult> {
    progress.Report(1, 4, "came");
    progress.Report(1, 4, "does not grow");
    progress.Report(3, 0, "");
    if (!gate.Pass(stop)) {
      progress.Report(4, 4, "after the cancellation");
      return Fail(ErrorCode::kCancelled, "stopped");
    }
    return ToolResult{.text = "passed"};
  };
  return tool;
}

std::vector<Tool> TestTools(Gate& gate) {
  const std::string any = R"({"type":"object"})";
  const std::string sum_output =
      R"({"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]})";
  std::vector<Tool> tools;
  tools.push_back(MakeTool(
      "echo", R"({"type":"object","properties":{"text":{"type":"string","maxLength":100000}},
                 "required":["text"],"additionalProperties":false})",
      "", [](const Json& arguments) -> Result<ToolResult> {
        return ToolResult{.text = arguments["text"].get<std::string>()};
      }));
  tools.push_back(
      MakeTool("sum", R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array",
                 "items":{"type":"integer","minimum":0},"maxItems":3}},"required":["a"]})",
               sum_output, [](const Json& arguments) -> Result<ToolResult> {
                 auto sum = arguments["a"].get<long long>();
                 for (const Json& one : arguments.value("b", Json::array())) {
                   sum += one.get<long long>();
                 }
                 return ToolResult{.text = "the sum", .structured = Json{{"sum", sum}}.dump()};
               }));
  tools.push_back(WaitTool(gate));
  tools.push_back(MakeTool("fail", any, "", [](const Json&) -> Result<ToolResult> {
    return Fail(ErrorCode::kUnavailable, "no GPU here");
  }));
  tools.push_back(MakeTool("bad_news", any, sum_output, [](const Json&) -> Result<ToolResult> {
    return ToolResult{.text = "it is wrong", .failed = true};
  }));
  tools.push_back(MakeTool("liar", any, sum_output, [](const Json&) -> Result<ToolResult> {
    return ToolResult{.text = "here", .structured = R"({"sum":"many"})"};
  }));
  tools.push_back(MakeTool("thrower", any, "", [](const Json&) -> Result<ToolResult> {
    throw std::runtime_error("thrown");
  }));
  tools.push_back(MakeTool("raw", any, "", [](const Json&) -> Result<ToolResult> {
    return ToolResult{.text = "a\nb\xff"};
  }));
  return tools;
}

}  // namespace

bool Gate::Pass(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  ++arrivals_;
  changed_.notify_all();
  return changed_.wait(lock, stop, [&] { return open_; });
}

void Gate::Open() {
  const std::scoped_lock lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

void Gate::AwaitArrivals(int count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return arrivals_ >= count; });
}

Offer TestOffer(Gate& gate) {
  Offer offer;
  offer.info = {"test", "Test", "1.2.3", "Read this."};
  offer.tools = TestTools(gate);
  offer.list = []() -> Result<std::vector<Resource>> {
    return std::vector<Resource>{{"kp:one", "one", "One", "The first.", "text/plain"},
                                 {"kp:two", "two", "Two", "", "application/json"}};
  };
  offer.templates = {{"kp:runs/{name}", "run", "Run", "A run.", "text/markdown"}};
  offer.read = [](const std::string& uri) -> Result<std::string> {
    if (uri == "kp:broken") {
      return Fail(ErrorCode::kIo, "the disk is gone");
    }
    if (uri == "kp:one" || uri == "kp:two" || uri.starts_with("kp:runs/")) {
      return "content of " + uri;
    }
    return Fail(ErrorCode::kNotFound, "no");
  };
  return offer;
}

Peer::Peer(Offer offer) : offer_(std::move(offer)) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe(in.data()) != 0 || ::pipe(out.data()) != 0) {
    ADD_FAILURE() << "pipe";
    return;
  }
  server_in_ = in[0];
  to_server_ = in[1];
  from_server_ = out[0];
  server_out_ = out[1];
  thread_ = std::thread([this] {
    status_ = Serve(offer_, server_in_, server_out_, stop_.get_token());
    ::close(server_out_);
    ::close(server_in_);
  });
}

Peer::~Peer() {
  EndInput();
  stop_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
  CloseOutput();
}

void Peer::SendRaw(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::write(to_server_, bytes.data(), bytes.size());
    ASSERT_GT(count, 0);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::optional<std::string> Peer::ReadLine() {
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd event{from_server_, POLLIN, 0};
    std::array<char, 65536> chunk{};
    const int ready = ::poll(&event, 1, kPatienceMs);
    const ssize_t count = ready > 0 ? ::read(from_server_, chunk.data(), chunk.size()) : 0;
    if (count <= 0) {
      return std::nullopt;
    }
    buffer_.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

Json Peer::Receive() {
  const std::optional<std::string> line = ReadLine();
  Json message = line ? Json::parse(*line, nullptr, false) : Json();
  EXPECT_TRUE(line.has_value()) << "no message came";
  EXPECT_FALSE(message.is_discarded()) << *line;
  return message.is_discarded() ? Json() : message;
}

Json Peer::Ask(const Json& id, std::string_view method, const Json& params) {
  Json request{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}};
  if (!params.is_null()) {
    request["params"] = params;
  }
  Send(request);
  Json answer = Receive();
  EXPECT_EQ(answer.value("id", Json()), id) << answer.dump();
  return answer;
}

Json Peer::AskStateless(const Json& id, std::string_view method, Json params) {
  params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28";
  params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = Json::object();
  return Ask(id, method, params);
}

void Peer::Begin(std::string_view revision) {
  const Json answer = Ask("begin", "initialize",
                          {{"protocolVersion", revision},
                           {"capabilities", Json::object()},
                           {"clientInfo", {{"name", "test"}, {"version", "0"}}}});
  EXPECT_EQ(answer["result"]["protocolVersion"], revision);
  Send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
}

bool Peer::InStep() {
  const std::string id = "ping " + std::to_string(++pings_);
  const Json answer = Ask(id, "ping");
  return answer == Json({{"jsonrpc", "2.0"}, {"id", id}, {"result", Json::object()}});
}

void Peer::EndInput() {
  if (to_server_ >= 0) {
    ::close(std::exchange(to_server_, -1));
  }
}

void Peer::CloseOutput() {
  if (from_server_ >= 0) {
    ::close(std::exchange(from_server_, -1));
  }
}

Status Peer::Join() {
  thread_.join();
  return status_;
}

std::string Peer::Rest() {
  std::string rest;
  while (const std::optional<std::string> line = ReadLine()) {
    rest += *line + "\n";
  }
  return rest + buffer_;
}

Json CallOf(const Json& id, std::string_view tool, const Json& arguments) {
  return {{"jsonrpc", "2.0"},
          {"id", id},
          {"method", "tools/call"},
          {"params", {{"name", tool}, {"arguments", arguments}}}};
}

int CodeOf(const Json& message) {
  return message.contains("error") ? message["error"].value("code", 0) : 0;
}

}  // namespace kernelpro::mcp
