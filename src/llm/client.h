// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "llm/budget.h"
#include "llm/chat.h"
#include "llm/prices.h"

namespace kernelpro::llm {

enum class Wire : std::uint8_t {
  kOpenAi,     ///< POST <base>/chat/completions: OpenAI, vLLM, llama.cpp, Ollama, gateways
  kAnthropic,  ///< POST <base>/v1/messages
};

/// Where a model is. "openai:gpt-5.1", "anthropic:claude-sonnet-4-6"; the part before the first ':'
/// chooses the wire, the rest is sent as it stands.
struct Endpoint {
  Wire wire = Wire::kOpenAi;
  std::string base_url;  ///< https://api.openai.com/v1, https://api.anthropic.com
  std::string model;
};

/// kInvalidArgument says what forms there are. `base_url` empty: the provider's own.
[[nodiscard]] Result<Endpoint> ParseEndpoint(std::string_view model, std::string_view base_url);

/// Whether the host of a URL is this machine (127.0.0.0/8, ::1, localhost).
[[nodiscard]] bool IsLoopback(std::string_view url);

/// A secret. It can be sent and nothing else: no stream operator, no formatter, no comparison.
class Key {
 public:
  Key() = default;

  explicit Key(std::string secret) : secret_(std::move(secret)) {}

  [[nodiscard]] bool empty() const { return secret_.empty(); }

  /// For the header of a request only.
  [[nodiscard]] const std::string& Reveal() const { return secret_; }

  /// The text with every occurrence of the key replaced: for messages of servers that repeat what
  /// they were sent.
  [[nodiscard]] std::string Redact(std::string text) const;

 private:
  std::string secret_;
};

/// From `file` when given (kInvalidArgument unless it is ours and nobody else may read it: chmod
/// 600), else from the environment: OPENAI_API_KEY or ANTHROPIC_API_KEY. kInvalidArgument says
/// which variable is missing; an endpoint on this machine needs no key.
[[nodiscard]] Result<Key> FindKey(const Endpoint& endpoint, const std::filesystem::path& file);

struct ClientOptions {
  Endpoint endpoint;
  Key key;
  Price price;
  bool stream = true;
  std::chrono::milliseconds connect_timeout{15'000};
  /// Nothing at all was received for this long (the first byte of a reasoning model takes long).
  std::chrono::milliseconds idle_timeout{300'000};
  /// Of a question with all its attempts and waits.
  std::chrono::milliseconds total_timeout{1'800'000};
  std::uint32_t max_attempts = 6;
  /// Waits between attempts: random in [0, base * 2^n], at most this (full jitter); a server's
  /// Retry-After is a lower bound of the wait.
  std::chrono::milliseconds backoff_base{1000};
  std::chrono::milliseconds backoff_max{60'000};
  std::uint64_t seed = 1;  ///< of the jitter
};

/// A client over HTTP. `budget` and `clock` must outlive it. Its connections are kept open and used
/// again; any number of threads may ask at once.
[[nodiscard]] Result<std::unique_ptr<ChatClient>> OpenClient(ClientOptions options, Budget& budget,
                                                             const Clock& clock);

}  // namespace kernelpro::llm
