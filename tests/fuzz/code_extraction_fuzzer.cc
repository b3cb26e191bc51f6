// SPDX-License-Identifier: Apache-2.0
// Any bytes as a model's answer: a whole kernel or a reason, never a crash; and as text of a
// stranger: no mark of a chat template survives.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/text.h"
#include "propose/llm/code_extraction.h"
#include "propose/llm/lexical.h"
#include "propose/llm/neutralise.h"

namespace {

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void CheckExtraction(std::string_view answer) {
  const auto found = kernelpro::agents::ExtractKernel(answer);
  Require(found.ok() == !found.source.empty());
  if (found.ok()) {
    const auto lexed = kernelpro::agents::Lex(found.source);
    Require(lexed.code.size() == found.source.size());
    Require(kernelpro::agents::Defines(lexed.code, "kernelpro_run"));
    Require(found.source.back() == '\n');
  } else {
    Require(kernelpro::Printable(found.why, std::string::npos) == found.why);
  }
}

void CheckNeutral(std::string_view text) {
  const std::string out = kernelpro::agents::Neutralise(text, 1U << 20U);
  Require(kernelpro::agents::Neutralise(out, 1U << 22U) == out);
  Require(kernelpro::Printable(out, std::string::npos) == out);
  for (const char* mark : {"``", "~~", "<|", "[INST]", "<data-", "</data-", "\nHuman:", "\r"}) {
    Require(out.find(mark) == std::string::npos);
  }
  const std::string cut = kernelpro::agents::Neutralise(text, 64);
  Require(kernelpro::Printable(cut, std::string::npos) == cut);
  Require(cut.size() <= 64 * 3 + 64);
  Require(kernelpro::agents::NeutraliseLine(text, 64).find('\n') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckExtraction(text);
  CheckNeutral(text);
  return 0;
}
