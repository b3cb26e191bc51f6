// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fake_handler.h"
#include "llm/chat.h"
#include "llm/prices.h"

namespace kernelpro::fake {

/// A question and what was done to it.
struct Posed {
  FaultKind kind = FaultKind::kNone;
  bool always = false;  ///< every attempt meets the fault; otherwise only the first one
  bool stream = false;
  std::string text;  ///< and the right answer to it: the server repeats what it is told
};

/// How it ended.
struct Ended {
  std::optional<llm::ChatResponse> response;
  ErrorCode code = ErrorCode::kInternal;  ///< without a response
  std::string message;
};

/// What the client's contract (llm/client.h, llm/chat.h) forbids of this, one sentence each; empty:
/// all is well. `bill` are the server's entries of this question; `secret` may be nowhere.
[[nodiscard]] std::vector<std::string> Violations(const Posed& posed, const Ended& ended,
                                                  const std::vector<LedgerEntry>& bill,
                                                  const llm::Price& price,
                                                  const std::string& secret);

/// Dollars of a bill at a price.
[[nodiscard]] double Bill(const std::vector<LedgerEntry>& bill, const llm::Price& price);

/// Whether a run of 12 bytes of the secret is in the text.
[[nodiscard]] bool Leaks(std::string_view text, std::string_view secret);

}  // namespace kernelpro::fake
