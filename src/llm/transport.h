// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace kernelpro::llm {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// The value of the last header called `name`, in any case; nothing when there is none.
[[nodiscard]] std::optional<std::string> FindHeader(const Headers& headers, std::string_view name);

struct HttpRequest {
  std::string url;
  Headers headers;
  std::string body;
  std::chrono::milliseconds connect_timeout{15'000};
  std::chrono::milliseconds idle_timeout{300'000};
  std::chrono::milliseconds total_timeout{1'800'000};
  /// Whether the body has said that it is over. Its connection's end is then waited for kLinger
  /// only: some servers keep it open behind the last event. Empty: the connection alone decides.
  std::function<bool()> answered = {};
};

inline constexpr std::chrono::milliseconds kLinger{1000};

struct HttpHead {
  int status = 0;  ///< 0: no answer came
  Headers headers;
};

/// How an exchange ended, whatever its status.
enum class HttpEnd : std::uint8_t {
  kWhole,         ///< all of the answer came
  kNoConnection,  ///< name not found, refused, no route, connect timeout
  kNoTrust,       ///< TLS: the server's certificate was not accepted
  kCut,           ///< the connection ended early
  kNoHttp,        ///< bytes came that are no HTTP
  kIdle,          ///< nothing came for idle_timeout
  kTotalTimeout,  ///< total_timeout passed
  kTooLarge,      ///< the body passed kBodyLimit
  kStopped,       ///< stop was requested
  kSinkRefused,   ///< on_body gave false
  kBadRequest,    ///< a URL that cannot be asked
};

inline constexpr std::uint64_t kBodyLimit = 64ULL << 20U;

struct HttpOutcome {
  HttpEnd end = HttpEnd::kWhole;
  HttpHead head;
  bool sent = false;   ///< bytes of the request went out: a server may have worked
  std::string detail;  ///< the library's words on what went wrong
};

/// One HTTP POST. Thread safe.
class Transport {
 public:
  /// Pieces of the body as they come; false ends the exchange.
  using OnBody = std::function<bool(const HttpHead&, std::string_view)>;

  virtual ~Transport() = default;
  /// Follows no redirect: it would carry the key to another host.
  [[nodiscard]] virtual HttpOutcome Post(const HttpRequest& request, const OnBody& on_body,
                                         const std::stop_token& stop) = 0;
};

/// Over libcurl, HTTP/1.1. Connections are kept open and used again by any number of threads. The
/// proxies of the environment are honoured but for hosts of this machine. `clock` must outlive it.
[[nodiscard]] std::unique_ptr<Transport> OpenHttpTransport(const Clock& clock);

}  // namespace kernelpro::llm
