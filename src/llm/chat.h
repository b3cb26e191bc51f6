// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// What is said to a language model and what it says back, whatever the wire.
namespace kernelpro::llm {

/// A call of one of our tools that the model asks for.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  ///< JSON text, as the model wrote it; may be malformed
};

struct Message {
  enum class Role : std::uint8_t { kUser, kAssistant, kTool };
  Role role = Role::kUser;
  std::string text;
  std::vector<ToolCall> calls;  ///< kAssistant: what it asked for
  std::string call_id;          ///< kTool: which call this answers
  bool failed = false;          ///< kTool: the text is an error message
  std::string reasoning;        ///< kAssistant: ChatResponse::reasoning, as it came
};

struct ToolSpec {
  std::string name;
  std::string description;
  std::string schema;  ///< JSON Schema of the arguments, as text
};

/// One question. The system text, the tools and the first messages come first on the wire and are
/// the same from question to question, which is what servers' prompt caches want.
struct ChatRequest {
  std::string purpose;  ///< "planner", "coder", ...: for records; never on the wire
  std::string system;
  std::vector<Message> messages;
  std::vector<ToolSpec> tools;
  std::string schema_name;  ///< of `schema`: letters, digits, '_'
  std::string schema;       ///< JSON Schema that the answer must meet; empty: free text
  std::optional<double> temperature;
  std::uint32_t max_tokens = 16384;  ///< of the answer, reasoning included
  std::string
      effort;  ///< "", "minimal", "low", "medium", "high": how long to reason; empty: default
};

/// Tokens that were paid for. `input` counts all of the prompt, cached parts included.
struct Usage {
  std::uint64_t input = 0;
  std::uint64_t cache_read = 0;   ///< of `input`, at the cached price
  std::uint64_t cache_write = 0;  ///< of `input`, written to the cache
  std::uint64_t output = 0;       ///< reasoning included
  std::uint64_t reasoning = 0;    ///< of `output`, where the server says so
  bool estimated = false;         ///< the server did not say: an upper bound
};

/// Why an answer that was given (and paid for) cannot be used.
enum class Problem : std::uint8_t {
  kNone,
  kTruncated,  ///< ended at max_tokens or at the context's end
  kRefused,    ///< the model or a filter declined
  kEmpty,      ///< neither text nor a tool call
  kSchema,     ///< does not meet the schema that was asked for
};

/// "truncated", ...; "" for kNone.
[[nodiscard]] std::string_view Name(Problem problem);

struct ChatResponse {
  std::string text;
  std::vector<ToolCall> calls;
  /// What the server wants back with the calls in the next question (Message::reasoning): signed
  /// blocks of JSON, Anthropic only. Of no use to a person; empty: nothing.
  std::string reasoning;
  Problem problem = Problem::kNone;
  std::string problem_text;  ///< one sentence: what happened and what to do; empty for kNone
  std::string model;         ///< who answered, in the server's own words
  std::string id;            ///< the server's id of the exchange; may be empty
  Usage usage;               ///< of the attempt that answered
  double cost = 0;           ///< in dollars, of all attempts of this question
  std::uint32_t attempts = 1;
  bool replayed = false;  ///< taken from a record: nothing was spent now
};

/// Asks one model. Thread safe.
class ChatClient {
 public:
  virtual ~ChatClient() = default;
  /// "openai:gpt-5 at https://..." : never holds a key.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Errors mean that there is no answer: kInvalidArgument (no or wrong key, unknown model, a
  /// request that the server calls wrong), kUnavailable (network, rate limit, server trouble, after
  /// all retries), kTimeout, kCancelled (stop), kParse (what came back is no answer: HTML,
  /// garbage), kToolFailed (a cap of the budget would be exceeded: see budget.h). Messages never
  /// hold a key.
  [[nodiscard]] virtual Result<ChatResponse> Ask(const ChatRequest& request,
                                                 const std::stop_token& stop) = 0;
};

/// Upper bound of the tokens of a request's prompt: no tokenizer in use makes more tokens than
/// bytes; on top of these what servers' templates add to messages and tools.
[[nodiscard]] std::uint64_t PromptTokensAtMost(const ChatRequest& request);
/// What it is likely to be, for showing: 3.5 bytes a token of English and code.
[[nodiscard]] std::uint64_t PromptTokensAbout(const ChatRequest& request);

/// The request as JSON text (without `purpose`), one fixed order of keys: what is stored, hashed
/// and compared.
[[nodiscard]] std::string RequestJson(const ChatRequest& request);
/// And the response: {text, calls, reasoning, problem, problem_text, model, id, usage,
/// cost, attempts}; `replayed` is not written.
[[nodiscard]] std::string ResponseJson(const ChatResponse& response);
[[nodiscard]] Result<ChatResponse> ParseResponseJson(std::string_view text);

/// Hash of what is asked (RequestJson): the key of a recorded exchange.
[[nodiscard]] std::string RequestHash(const ChatRequest& request);

}  // namespace kernelpro::llm
