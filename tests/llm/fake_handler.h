// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fault.h"
#include "wire.h"

namespace kernelpro::fake {

/// What a model says. Called from the threads of connections. Where the request forces a tool and
/// no call is made, the text becomes the arguments of the call.
using Responder = std::function<Answer(const Asked&)>;
/// What goes wrong with a request. Called from the threads of connections.
using FaultPlan = std::function<Fault(const Asked&)>;

/// The text of the last message.
[[nodiscard]] Answer Echo(const Asked& asked);

/// A generation that a provider would put on the bill.
struct LedgerEntry {
  std::uint64_t index = 0;  ///< of the request
  std::string id;
  Wire wire = Wire::kOpenAi;
  std::string model;
  std::string body_hash;
  std::string last;  ///< text of the last message
  Tokens tokens;     ///< as billed: `completion` may be less than what was to be said
  FaultKind fault = FaultKind::kNone;
  bool delivered = false;  ///< the whole answer was sent, well formed
};

/// One JSON object: {index, id, wire, model, body_hash, prompt_tokens, cached_tokens,
/// cache_write_tokens, completion_tokens, fault, delivered}.
[[nodiscard]] std::string LedgerLine(const LedgerEntry& entry);

struct HandlerOptions {
  std::string key;  ///< empty: any key is right
  std::vector<std::string> models = {"test-model"};
  Responder responder = Echo;
  FaultPlan plan;                     ///< none: the header "x-fake-fault" only
  bool repeats_key = false;           ///< messages of errors hold the key that was sent
  std::uint64_t cache_minimum = 256;  ///< tokens from which a prompt's prefix is cached
  std::uint64_t seed = 1;             ///< of cuts and garbage
};

/// What to send for a request, and what it cost.
struct Handled {
  Asked asked;
  Reply reply;
  Fault fault;
  std::string id;
  Tokens tokens;
  bool generated = false;  ///< a model was asked
};

/// The server without its sockets. Thread safe.
///
/// A request may name its fault itself, in a header: "x-fake-fault: server_error" always, or
/// "x-fake-fault: server_error;2;some-case" for the first two requests of this very header (an SDK
/// repeats its headers when it tries again).
class Handler {
 public:
  explicit Handler(HandlerOptions options);

  [[nodiscard]] Handled Handle(HttpRequest http);

  /// Requests that followed a redirect: a client that goes there gives its key to strangers.
  [[nodiscard]] std::uint64_t redirected() const;

  [[nodiscard]] std::uint64_t seed() const { return options_.seed; }

 private:
  [[nodiscard]] bool Authorized(Wire wire, const HttpRequest& http, Refusal& refusal) const;
  [[nodiscard]] bool KnownModel(Wire wire, const std::string& model, Refusal& refusal) const;
  [[nodiscard]] Fault Plan(const Asked& asked);
  [[nodiscard]] Tokens CountPrompt(const Asked& asked);
  void Complete(Handled& handled);
  void Refuse(Handled& handled, Wire wire, Refusal refusal) const;

  const HandlerOptions options_;
  mutable std::mutex mutex_;
  std::uint64_t requests_ = 0;
  std::uint64_t redirected_ = 0;
  std::map<std::string, int> header_faults_;
  std::set<std::string> prefixes_;
};

}  // namespace kernelpro::fake
