// SPDX-License-Identifier: Apache-2.0
// Any bytes as a server's answer, streamed and whole, on both wires: an Error or an answer whose
// figures agree, the same however the bytes are cut, never a crash. The first byte says where to
// cut.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "llm/chat.h"
#include "llm/fault.h"
#include "llm/retry.h"
#include "llm/sse.h"
#include "llm/wire.h"

namespace {

namespace llm = kernelpro::llm;

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void CheckReading(const llm::Reading& reading) {
  const llm::ChatResponse& response = reading.response;
  Require((response.problem == llm::Problem::kNone) == response.problem_text.empty());
  Require(response.usage.reasoning <= response.usage.output);
  Require(response.usage.cache_read + response.usage.cache_write <= response.usage.input);
  const auto back = llm::ParseResponseJson(llm::ResponseJson(response));
  Require(back.ok() && back->text == response.text && back->calls.size() == response.calls.size());
}

std::unique_ptr<llm::AnswerReader> Reader(bool openai) {
  return openai ? llm::OpenAiReader() : llm::AnthropicReader("answer");
}

std::string Streamed(bool openai, std::string_view text, std::size_t piece) {
  const auto reader = Reader(openai);
  llm::SseParser parser(4096);
  bool ok = true;
  for (std::size_t at = 0; ok && at < text.size(); at += piece) {
    ok = parser
             .Feed(text.substr(at, piece),
                   [&](const llm::SseEvent& event) { return reader->Event(event); })
             .ok();
  }
  const llm::Reading reading = reader->Finish();
  CheckReading(reading);
  return llm::ResponseJson(reading.response) + (ok ? "+" : "-") + (reading.complete ? "+" : "-");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = data[0] % 16 + 1;
  for (const bool openai : {true, false}) {
    Require(Streamed(openai, text, piece) == Streamed(openai, text, text.size() + 1));
    const auto reader = Reader(openai);
    if (reader->Whole(text).ok()) {
      CheckReading(reader->Finish());
    }
  }
  const llm::Endpoint endpoint{llm::Wire::kOpenAi, "https://x/v1", "m"};
  for (const int status : {302, 400, 404, 429, 503}) {
    const llm::HttpHead head{status, {{"Retry-After", std::string(text.substr(0, 40))}}};
    Require(!llm::StatusFault(endpoint, true, head, text).error.message.empty());
    const auto wait = llm::ServerWait(head, 0);
    Require(!wait || wait->count() >= 0);
  }
  (void)llm::ParseResponseJson(text);
  return 0;
}
