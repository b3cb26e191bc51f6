// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "llm/chat.h"
#include "llm/client.h"
#include "llm/sse.h"
#include "llm/transport.h"

/// How a question is written for a server and its answer read; one pair of files per wire. Nothing
/// here knows of connections, retries or money.
namespace kernelpro::llm {

/// An error in a server's own words, from whichever of the usual places its text stands in.
struct ServerError {
  std::string type;  ///< "invalid_request_error", "overloaded_error", ...
  std::string code;  ///< "model_not_found", "insufficient_quota", ...
  std::string message;
};

/// Of the body of an error status, or of an event of a stream; nothing when it says none. `text`
/// may be anything.
[[nodiscard]] std::optional<ServerError> FindServerError(std::string_view text);

/// What was read of an answer so far.
struct Reading {
  ChatResponse response;
  bool complete = false;             ///< the server said why it ended
  bool usage_complete = false;       ///< response.usage is what the server will charge
  std::optional<ServerError> error;  ///< told inside an answer with status 200
};

/// Puts one answer together.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  /// The next event of a stream; kParse when it is none of this wire.
  [[nodiscard]] virtual Status Event(const SseEvent& event) = 0;
  /// A whole answer that was not streamed.
  [[nodiscard]] virtual Status Whole(std::string_view body) = 0;
  /// Whether the stream's own end mark has come.
  [[nodiscard]] virtual bool Ended() const = 0;
  /// After the last byte: calls in order, `problem` but for the schema.
  [[nodiscard]] virtual Reading Finish() = 0;
};

/// POST to this.
[[nodiscard]] std::string RequestUrl(const Endpoint& endpoint);
/// The key is in here and nowhere else.
[[nodiscard]] Headers RequestHeaders(const Endpoint& endpoint, const Key& key, bool stream);
/// kInvalidArgument when a schema of the request is no JSON or an effort is unknown.
[[nodiscard]] Result<std::string> RequestBody(const Endpoint& endpoint, const ChatRequest& request,
                                              bool stream);
[[nodiscard]] std::unique_ptr<AnswerReader> MakeReader(const Endpoint& endpoint,
                                                       const ChatRequest& request);

// The parts of the two wires.
[[nodiscard]] Result<std::string> OpenAiBody(const Endpoint& endpoint, const ChatRequest& request,
                                             bool stream);
[[nodiscard]] Result<std::string> AnthropicBody(const Endpoint& endpoint,
                                                const ChatRequest& request, bool stream);
[[nodiscard]] std::unique_ptr<AnswerReader> OpenAiReader();
/// `answer_tool`: the call of this name is the answer (see AnswerTool); empty: none is.
[[nodiscard]] std::unique_ptr<AnswerReader> AnthropicReader(std::string answer_tool);

/// Models whose answers begin with hidden reasoning: they take max_completion_tokens and no
/// temperature (OpenAI's o-series and gpt-5 and later).
[[nodiscard]] bool IsOpenAiReasoner(std::string_view model);

/// What a Claude model takes, by the version in its name; all false for other names. Sources:
/// platform.claude.com/docs "Adaptive thinking", "Structured outputs" and the migration guides of
/// Opus 4.7 and Sonnet 5.5, looked up 2026-11-30.
struct ClaudeTraits {
  bool json_output = false;        ///< output_config.format: from 4.5 on
  bool adaptive_thinking = false;  ///< thinking "adaptive" with output_config.effort: from 4.6 on
  bool sampling = true;            ///< takes a temperature: before 4.7
};

[[nodiscard]] ClaudeTraits TraitsOf(std::string_view model);

/// The tool that carries a structured answer to models without JSON output, and its name; empty
/// when the request needs none.
[[nodiscard]] std::string AnswerTool(const Endpoint& endpoint, const ChatRequest& request);

/// Sets `problem` and `problem_text` from why the answer ended, for both wires.
void JudgeEnd(ChatResponse& response, bool truncated, bool refused, std::string_view why);

}  // namespace kernelpro::llm
