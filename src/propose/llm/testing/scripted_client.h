// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "llm/chat.h"

namespace kernelpro::agents::testing {

/// Answers from a list and keeps what it was asked. A question beyond the list is an error, so that
/// a test sees it.
class ScriptedClient final : public llm::ChatClient {
 public:
  [[nodiscard]] std::string_view name() const override { return "scripted"; }

  [[nodiscard]] Result<llm::ChatResponse> Ask(const llm::ChatRequest& request,
                                              const std::stop_token& /*stop*/) override {
    requests.push_back(request);
    if (answers.empty()) {
      return Fail(ErrorCode::kInternal, "the script has no answer to " + request.purpose);
    }
    Result<llm::ChatResponse> answer = std::move(answers.front());
    answers.pop_front();
    return answer;
  }

  ScriptedClient& Say(std::string text, std::string model = "test-model-1") {
    llm::ChatResponse response;
    response.text = std::move(text);
    response.model = std::move(model);
    answers.emplace_back(std::move(response));
    return *this;
  }

  ScriptedClient& Call(std::vector<llm::ToolCall> calls) {
    llm::ChatResponse response;
    response.calls = std::move(calls);
    response.model = "test-model-1";
    answers.emplace_back(std::move(response));
    return *this;
  }

  ScriptedClient& Stumble(llm::Problem problem, std::string text) {
    llm::ChatResponse response;
    response.problem = problem;
    response.problem_text = std::move(text);
    response.model = "test-model-1";
    answers.emplace_back(std::move(response));
    return *this;
  }

  ScriptedClient& FailWith(Error error) {
    answers.emplace_back(std::move(error));
    return *this;
  }

  /// Questions of one agent.
  [[nodiscard]] std::vector<llm::ChatRequest> Of(std::string_view purpose) const {
    std::vector<llm::ChatRequest> found;
    for (const llm::ChatRequest& request : requests) {
      if (request.purpose == purpose) {
        found.push_back(request);
      }
    }
    return found;
  }

  [[nodiscard]] std::vector<std::string> Purposes() const {
    std::vector<std::string> purposes;
    for (const llm::ChatRequest& request : requests) {
      purposes.push_back(request.purpose);
    }
    return purposes;
  }

  std::deque<Result<llm::ChatResponse>> answers;
  std::vector<llm::ChatRequest> requests;
};

/// Everything that goes on the wire.
inline std::string Wire(const llm::ChatRequest& request) {
  std::string text = fmt::format("[system]\n{}\n", request.system);
  for (const llm::ToolSpec& tool : request.tools) {
    text += fmt::format("[tool {}] {} {}\n", tool.name, tool.description, tool.schema);
  }
  if (!request.schema.empty()) {
    text += fmt::format("[schema {}] {}\n", request.schema_name, request.schema);
  }
  text += request.temperature ? fmt::format("[temperature {}]\n", *request.temperature)
                              : std::string("[no temperature]\n");
  text += fmt::format("[max_tokens {}] [effort {}]\n", request.max_tokens, request.effort);
  for (const llm::Message& message : request.messages) {
    text += fmt::format("[{}{}]\n{}\n",
                        message.role == llm::Message::Role::kUser        ? "user"
                        : message.role == llm::Message::Role::kAssistant ? "assistant"
                                                                         : "tool",
                        message.failed ? ", failed" : "", message.text);
    for (const llm::ToolCall& call : message.calls) {
      text += fmt::format("[call {} {}]\n", call.name, call.arguments);
    }
  }
  return text;
}

}  // namespace kernelpro::agents::testing
