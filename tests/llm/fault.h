// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A server of chat completions for tests, and what can go wrong with one.
namespace kernelpro::fake {

enum class FaultKind : std::uint8_t {
  kNone,
  kSlow,                ///< the whole answer, a few bytes at a time
  kStalled,             ///< the request is read, nothing is ever sent
  kStalledMidway,       ///< half of the answer, then nothing; the connection stays open
  kResetOnArrival,      ///< connection reset before the request was read
  kResetBeforeHeaders,  ///< the request is read (and answered, somewhere), then reset
  kCutInHeaders,        ///< closed in the middle of the response's header
  kCutInEvent,          ///< closed in the middle of an event (or of the JSON body)
  kCutBeforeEnd,        ///< closed after the last data and before [DONE] / message_stop
  kHalfEventThenGarbage,
  kGarbage,  ///< random bytes where HTTP was expected
  kHtml200,  ///< a web page with status 200 (a captive portal, a proxy)
  kHtml502,
  kRateLimitedSeconds,  ///< 429 with Retry-After in seconds
  kRateLimitedDate,     ///< 429 with Retry-After as a date
  kRateLimitedMs,       ///< 429 with retry-after-ms
  kQuota,               ///< the account is out of money: waiting does not help
  kServerError,         ///< 500
  kUnavailable,         ///< 503
  kOverloaded,          ///< 529
  kEmptyBody,           ///< 200 without a byte
  kEmptyAnswer,         ///< a well formed answer without text and calls
  kTruncated,           ///< a well formed answer that ended at max_tokens
  kRefused,             ///< the model declined
  kInvalidUtf8,         ///< bytes in the answer's text that are no UTF-8
  kLengthTooLong,       ///< Content-Length of more bytes than come
  kLengthTooShort,      ///< Content-Length of fewer bytes than the answer has
  kErrorEvent,          ///< an error in the middle of a stream with status 200
  kRedirect,            ///< 307 to another path
  kDuplicatedEvents,    ///< the events that open and end a stream come twice
  kHugeLine,            ///< an event of many megabytes that never ends
  kNoUsage,             ///< a good answer that does not say what it cost
};

/// What a fault leaves behind on the server.
enum class Billing : std::uint8_t {
  kNothing,  ///< no work was done, or the provider does not charge for it
  kSent,  ///< the prompt, and the answer as far as it was sent: providers stop when a stream breaks
  kWhole,  ///< the prompt and the whole answer
};

struct FaultFacts {
  FaultKind kind;
  std::string_view name;
  Billing billing;
  /// A client that reads to the end has all that the server wanted to say, and it is well formed.
  bool delivers;
};

/// All kinds, kNone first.
[[nodiscard]] const std::vector<FaultFacts>& AllFaults();
[[nodiscard]] const FaultFacts& Facts(FaultKind kind);
[[nodiscard]] std::optional<FaultKind> FindFault(std::string_view name);

struct Fault {
  FaultKind kind = FaultKind::kNone;
  std::chrono::milliseconds wait{20};  ///< kRateLimitedMs: as told; kSlow: between pieces
  std::uint32_t retry_after_s = 1;     ///< kRateLimitedSeconds, kRateLimitedDate
  std::size_t huge_bytes = std::size_t{4} << 20U;
};

/// An HTTP response before anything goes wrong with it: the pieces are SSE events, or one JSON
/// text.
struct Reply {
  int status = 200;
  std::vector<std::string> headers;  ///< "Name: value"
  std::string content_type = "application/json";
  std::vector<std::string> pieces;
  bool chunked = false;         ///< a stream: Transfer-Encoding, no Content-Length
  std::size_t head_pieces = 0;  ///< pieces that open a stream and hold nothing of the answer
  std::size_t tail_pieces = 0;  ///< pieces at the end without which the answer is not complete
  std::vector<std::uint64_t> tokens;  ///< of the answer in each piece
};

/// What a connection does next.
struct Step {
  enum class Kind : std::uint8_t { kSend, kWait, kStall, kClose, kReset };
  Kind kind = Kind::kSend;
  std::string bytes;                  ///< kSend
  std::chrono::milliseconds wait{0};  ///< kWait
  std::size_t pieces = 0;             ///< kSend: of the reply, begun by these bytes
};

/// The bytes of a reply under a fault. `seed` chooses where a cut falls and what garbage is.
/// Replies of another status or content (429, 500, a refusal) are made by the caller; here is only
/// what happens to the bytes.
[[nodiscard]] std::vector<Step> Script(const Reply& reply, const Fault& fault, std::uint64_t seed);

/// "Thu, 01 Jan 1970 00:00:00 GMT"
[[nodiscard]] std::string HttpDate(std::int64_t unix_seconds);

}  // namespace kernelpro::fake
