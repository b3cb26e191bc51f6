// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fault.h"

namespace kernelpro::fake {

enum class Wire : std::uint8_t {
  kOpenAi,     ///< POST /v1/chat/completions
  kAnthropic,  ///< POST /v1/messages
};

/// An HTTP request. Names of headers are in lower case.
struct HttpRequest {
  std::string method, target, body;
  std::map<std::string, std::string> headers;

  [[nodiscard]] std::string Header(const std::string& name) const;
};

/// What of a prompt comes first is cached by providers: its parts in order.
struct PromptPart {
  std::string text;
  bool marked = false;  ///< kAnthropic: a cache_control mark ends the cached part here
};

/// A question as the server understood it.
struct Asked {
  Wire wire = Wire::kOpenAi;
  std::uint64_t index = 0;  ///< of the request since the server was started
  std::string model;
  std::string system;
  std::string last;  ///< text of the last message (a tool's result included)
  std::vector<std::string> tools;
  std::string forced_tool;  ///< the one that must be called; empty: the model's choice
  std::string schema;       ///< as JSON text; empty: free text
  std::uint64_t max_tokens = 0;
  bool stream = false;
  bool include_usage = true;  ///< kOpenAi: stream_options.include_usage
  std::vector<PromptPart> prompt;
  HttpRequest http;
};

struct AnswerCall {
  std::string name;
  std::string arguments;  ///< JSON text; may be malformed, as a model's
};

struct Answer {
  std::string text;
  std::vector<AnswerCall> calls;
  bool truncated = false;  ///< ended at max_tokens
  bool refused = false;
  std::uint64_t reasoning = 0;  ///< hidden tokens, paid for
  bool no_usage = false;
};

/// Tokens of one exchange. `prompt` counts cached parts too, whatever the wire.
struct Tokens {
  std::uint64_t prompt = 0, cached = 0, cache_written = 0, completion = 0, reasoning = 0;
};

/// The tokenizer: four bytes a token, never splitting a UTF-8 sequence.
[[nodiscard]] std::vector<std::string> Tokenize(std::string_view text);

/// What a provider says about a request that it refuses: status, type and message.
struct Refusal {
  int status = 400;
  std::string type, code, message;
};

/// The refusal as the provider writes it.
[[nodiscard]] Reply ErrorReply(Wire wire, const Refusal& refusal, const std::string& request_id);

/// The JSON object inside an error reply, and inside an error event of a stream.
[[nodiscard]] nlohmann::ordered_json ErrorObject(Wire wire, const Refusal& refusal,
                                                 const std::string& request_id);

/// Reads a request, or says what the provider would refuse (status 400 of `refusal`).
[[nodiscard]] bool ReadOpenAi(const HttpRequest& http, Asked& asked, Refusal& refusal);
[[nodiscard]] bool ReadAnthropic(const HttpRequest& http, Asked& asked, Refusal& refusal);

/// The answer as the provider writes it. `id` makes ids of the answer and of its calls.
[[nodiscard]] Reply WriteOpenAi(const Asked& asked, const Answer& answer, const Tokens& tokens,
                                const std::string& id);
[[nodiscard]] Reply WriteAnthropic(const Asked& asked, const Answer& answer, const Tokens& tokens,
                                   const std::string& id);

/// A list of models (GET /v1/models).
[[nodiscard]] Reply ModelsReply(Wire wire, const std::vector<std::string>& models);

/// Text of a message's content, which is a string or a list of parts.
[[nodiscard]] std::string ContentText(const nlohmann::ordered_json& content);

}  // namespace kernelpro::fake
