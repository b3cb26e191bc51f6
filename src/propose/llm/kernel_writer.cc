// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/kernel_writer.h"

#include <fmt/format.h>

#include "propose/llm/code_extraction.h"

namespace kernelpro::agents {
namespace {

Attempt<WrittenKernel> Read(const llm::ChatResponse& response) {
  if (std::string why = WhyUnusable(response); !why.empty()) {
    return {.value = std::nullopt, .why = std::move(why)};
  }
  Extraction kernel = ExtractKernel(response.text);
  if (!kernel.ok()) {
    return {.value = std::nullopt, .why = std::move(kernel.why)};
  }
  return {.value = WrittenKernel{.source = std::move(kernel.source), .model = response.model},
          .why = {}};
}

}  // namespace

Result<Attempt<WrittenKernel>> WriteKernel(const Setting& setting, const Turn& turn,
                                           const llm::ChatRequest& request) {
  KP_ASSIGN_OR_RETURN(const llm::ChatResponse first, Ask(setting, turn, request));
  Attempt<WrittenKernel> attempt = Read(first);
  if (attempt.value) {
    return attempt;
  }
  llm::ChatRequest again = request;
  again.messages.back().text += setting.prompts.Render("retry.md", {{"problem", attempt.why}});
  KP_ASSIGN_OR_RETURN(const llm::ChatResponse second, Ask(setting, turn, again));
  Attempt<WrittenKernel> other = Read(second);
  other.why = other.value ? fmt::format("first answer: {}", attempt.why)
                          : fmt::format("{}; second answer: {}", attempt.why, other.why);
  return other;
}

}  // namespace kernelpro::agents
