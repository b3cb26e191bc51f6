// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "llm/client.h"
#include "llm/transport.h"
#include "llm/wire.h"

/// Failures in words: what happened, where, and what to do next. Nothing here hides keys: whoever
/// shows a message does (Key::Redact).
namespace kernelpro::llm {

struct Fault {
  Error error;
  bool passing = false;  ///< another attempt may go well
};

/// "gpt-5 at https://api.openai.com/v1".
[[nodiscard]] std::string Where(const Endpoint& endpoint);

/// An exchange that brought no answer of a server; `outcome.end` is not kWhole.
[[nodiscard]] Fault TransportFault(const Endpoint& endpoint, const HttpRequest& request,
                                   const HttpOutcome& outcome);

/// A status other than 2xx, with what was read of its body. `with_key`: one was sent.
[[nodiscard]] Fault StatusFault(const Endpoint& endpoint, bool with_key, const HttpHead& head,
                                std::string_view body);

/// An error that was told inside an answer.
[[nodiscard]] Fault AnswerFault(const Endpoint& endpoint, bool with_key, const ServerError& error);

/// A 2xx answer of a content type that is none of ours; HTML shows its title.
[[nodiscard]] Fault ContentFault(const Endpoint& endpoint, std::string_view content_type,
                                 std::string_view body);

}  // namespace kernelpro::llm
