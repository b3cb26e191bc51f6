// SPDX-License-Identifier: Apache-2.0
// wire_probe: asks one question through the chat clients and prints one line of JSON:
// {"text", "calls", "problem", "model", "attempts", "usage"} or {"error", "message"} (exit code 1).
// The key comes from the environment, as everywhere.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

#include "llm/client.h"

namespace {

using Json = nlohmann::ordered_json;
using kernelpro::ErrorCode;

struct Asked {
  std::string model, base_url, schema_file, prompt;
  bool stream = true;
  bool tools = false;
  std::uint32_t max_tokens = 400;
  std::uint32_t cancel_ms = 0;
};

std::string CodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kParse:
      return "parse";
    case ErrorCode::kBudget:
      return "cap";
    default:
      return "other";
  }
}

void Print(const Json& line) {
  std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

int Failed(const kernelpro::Error& error) {
  Print({{"error", CodeName(error.code)}, {"message", error.message}});
  return 1;
}

kernelpro::llm::ChatRequest Request(const Asked& asked) {
  kernelpro::llm::ChatRequest request;
  request.system = "Answer briefly.";
  request.messages.push_back({.text = asked.prompt});
  request.max_tokens = asked.max_tokens;
  if (!asked.schema_file.empty()) {
    std::ifstream file(asked.schema_file);
    request.schema.assign(std::istreambuf_iterator<char>(file), {});
    request.schema_name = "answer";
  }
  if (asked.tools) {
    request.tools.push_back(
        {"get_weather", "The weather of a city",
         R"({"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false})"});
  }
  return request;
}

int Ask(const Asked& asked) {
  kernelpro::llm::ClientOptions options;
  auto endpoint = kernelpro::llm::ParseEndpoint(asked.model, asked.base_url);
  if (!endpoint) {
    return Failed(endpoint.error());
  }
  options.endpoint = *endpoint;
  auto key = kernelpro::llm::FindKey(*endpoint, {});
  if (!key) {
    return Failed(key.error());
  }
  options.key = *key;
  options.stream = asked.stream;
  options.idle_timeout = std::chrono::seconds(30);
  options.total_timeout = std::chrono::seconds(60);
  options.backoff_base = std::chrono::milliseconds(50);
  const kernelpro::SystemClock clock;
  kernelpro::llm::Budget budget({}, clock);
  auto client = kernelpro::llm::OpenClient(std::move(options), budget, clock);
  if (!client) {
    return Failed(client.error());
  }
  std::stop_source stop;
  std::jthread canceller;
  if (asked.cancel_ms != 0) {
    canceller = std::jthread([&stop, wait = std::chrono::milliseconds(asked.cancel_ms)] {
      std::this_thread::sleep_for(wait);
      stop.request_stop();
    });
  }
  const auto response = (*client)->Ask(Request(asked), stop.get_token());
  if (!response) {
    return Failed(response.error());
  }
  Json calls = Json::array();
  for (const kernelpro::llm::ToolCall& call : response->calls) {
    calls.push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  }
  Print({{"text", response->text},
         {"calls", calls},
         {"problem", Name(response->problem)},
         {"problem_text", response->problem_text},
         {"model", response->model},
         {"attempts", response->attempts},
         {"usage",
          {{"input", response->usage.input},
           {"cache_read", response->usage.cache_read},
           {"output", response->usage.output},
           {"estimated", response->usage.estimated}}}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Asked asked;
  CLI::App app("Asks one question through KernelPro's chat clients");
  app.add_option("--model", asked.model, "openai:NAME or anthropic:NAME")->required();
  app.add_option("--base-url", asked.base_url, "where the server is");
  app.add_flag("--stream,!--no-stream", asked.stream, "as a stream (default) or in one piece");
  app.add_option("--schema", asked.schema_file, "JSON Schema that the answer must meet");
  app.add_flag("--tools", asked.tools, "offer a tool get_weather(city)");
  app.add_option("--max-tokens", asked.max_tokens, "of the answer");
  app.add_option("--cancel-after", asked.cancel_ms, "milliseconds until the question is cancelled");
  app.add_option("prompt", asked.prompt, "the question")->required();
  CLI11_PARSE(app, argc, argv);
  return Ask(asked);
}
