// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/agent.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "propose/llm/fences.h"
#include "propose/llm/neutralise.h"

namespace kernelpro::agents {

llm::ChatRequest MakeRequest(const Setting& setting, const Turn& turn, std::string_view purpose,
                             std::string prompt, double temperature) {
  llm::ChatRequest request;
  request.purpose = purpose;
  request.system = turn.system;
  llm::Message message;
  message.text = std::move(prompt);
  request.messages.push_back(std::move(message));
  if (setting.options.temperatures) {
    request.temperature = temperature;
  }
  request.max_tokens = setting.options.max_tokens;
  request.effort = setting.options.effort;
  return request;
}

Result<llm::ChatResponse> Ask(const Setting& setting, const Turn& turn,
                              const llm::ChatRequest& request) {
  if (turn.stop.stop_requested()) {
    return Fail(ErrorCode::kCancelled, fmt::format("{}: stopped", request.purpose));
  }
  Result<llm::ChatResponse> response = setting.client.Ask(request, turn.stop);
  if (!response) {
    return std::move(response).error().Wrap(request.purpose);
  }
  return response;
}

std::string WhyUnusable(const llm::ChatResponse& response) {
  std::string_view fallback;
  switch (response.problem) {
    case llm::Problem::kNone:
      return Trim(response.text).empty() && response.calls.empty() ? "the answer is empty" : "";
    case llm::Problem::kTruncated:
      fallback = "the answer was cut off";
      break;
    case llm::Problem::kRefused:
      fallback = "the model refused to answer";
      break;
    case llm::Problem::kEmpty:
      fallback = "the answer is empty";
      break;
    case llm::Problem::kSchema:
      fallback = "the answer does not have the form that was asked for";
      break;
  }
  std::string why = NeutraliseLine(response.problem_text, 400);
  while (why.ends_with('.')) {
    why.pop_back();
  }
  return why.empty() ? std::string(fallback) : why;
}

std::string JsonText(std::string_view answer) {
  const std::string_view text = Trim(answer);
  if (text.starts_with('{')) {
    return std::string(text);
  }
  const FencedText fenced = ReadFences(text);
  if (fenced.blocks.size() == 1 && fenced.blocks[0].closed) {
    return std::string(Trim(fenced.blocks[0].text));
  }
  return {};
}

}  // namespace kernelpro::agents
