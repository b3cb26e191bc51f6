// SPDX-License-Identifier: Apache-2.0
#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "llm/client.h"
#include "llm/transport.h"

namespace kernelpro::llm {
namespace {

using std::chrono::milliseconds;

struct EasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};

struct MultiDeleter {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};

struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

/// The multi handle owns the connection; it is there (and not curl_easy_perform) because a wait in
/// it can be ended from another thread.
struct Connection {
  std::unique_ptr<CURLM, MultiDeleter> multi{curl_multi_init()};
  std::unique_ptr<CURL, EasyDeleter> easy{curl_easy_init()};
};

/// What the callbacks share with the loop.
struct Exchange {
  const Transport::OnBody& on_body;
  HttpHead head;
  std::uint64_t received = 0;  ///< bytes of head and body
  std::uint64_t body = 0;
  bool too_large = false;
  bool refused = false;
  std::string_view upload;  ///< what is left of the request's body
  bool uploading = false;   ///< some of it was taken
};

/// Gives the body out, once: there is no function to seek. When a kept connection turns out to be
/// dead, libcurl would send a POST again by itself, and a server may have worked for both; without
/// a way back it ends with CURLE_SEND_FAIL_REWIND, and trying again is up to us.
std::size_t OnUpload(char* to, std::size_t, std::size_t room, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::string_view part = exchange.upload.substr(0, room);
  part.copy(to, part.size());
  exchange.upload.remove_prefix(part.size());
  exchange.uploading = true;
  return part.size();
}

std::size_t OnHeader(char* data, std::size_t, std::size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  exchange.received += size;
  const std::string_view line = Trim(std::string_view(data, size));
  if (line.starts_with("HTTP/")) {  // also after an interim answer (100 Continue, a proxy's 200)
    exchange.head.headers.clear();
  } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    exchange.head.headers.emplace_back(line.substr(0, colon), Trim(line.substr(colon + 1)));
  }
  return exchange.received > kBodyLimit ? 0 : size;
}

void ReadStatus(CURL* easy, HttpHead& head) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  head.status = static_cast<int>(status);
}

struct BodyUser {
  Exchange* exchange;
  CURL* easy;
};

std::size_t OnData(char* data, std::size_t, std::size_t size, void* user) {
  auto& [exchange, easy] = *static_cast<BodyUser*>(user);
  exchange->received += size;
  exchange->body += size;
  if (exchange->body > kBodyLimit) {
    exchange->too_large = true;
    return CURL_WRITEFUNC_ERROR;
  }
  if (exchange->head.status == 0) {
    ReadStatus(easy, exchange->head);
  }
  if (!exchange->on_body(exchange->head, std::string_view(data, size))) {
    exchange->refused = true;
    return CURL_WRITEFUNC_ERROR;
  }
  return size;
}

HttpEnd EndOf(CURLcode code, const Exchange& exchange) {
  if (exchange.too_large) {
    return HttpEnd::kTooLarge;
  }
  if (exchange.refused) {
    return HttpEnd::kSinkRefused;
  }
  switch (code) {
    case CURLE_OK:
      return HttpEnd::kWhole;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
      return HttpEnd::kNoConnection;
    case CURLE_OPERATION_TIMEDOUT:  // ours are in the loop: this is the connect timeout
      return HttpEnd::kNoConnection;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
      return HttpEnd::kNoTrust;
    case CURLE_WEIRD_SERVER_REPLY:
      return HttpEnd::kNoHttp;
    case CURLE_UNSUPPORTED_PROTOCOL:  // of the URL, or of what came back ("HTTP/0.9")
      return exchange.uploading ? HttpEnd::kNoHttp : HttpEnd::kBadRequest;
    case CURLE_URL_MALFORMAT:
    case CURLE_OUT_OF_MEMORY:
      return HttpEnd::kBadRequest;
    default:
      return HttpEnd::kCut;
  }
}

class HttpTransport : public Transport {
 public:
  explicit HttpTransport(const Clock& clock) : clock_(clock) {
    static std::once_flag once;  // libcurl's own global state
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  }

  HttpOutcome Post(const HttpRequest& request, const OnBody& on_body,
                   const std::stop_token& stop) override {
    if (stop.stop_requested()) {
      return {HttpEnd::kStopped, {}, false, "stopped"};
    }
    Connection connection = Take();
    if (!connection.multi || !connection.easy) {
      return {HttpEnd::kBadRequest, {}, false, "out of memory"};
    }
    Exchange exchange{.on_body = on_body, .upload = request.body};
    BodyUser user{&exchange, connection.easy.get()};
    char error[CURL_ERROR_SIZE] = "";
    const auto headers = SetUp(connection.easy.get(), request, exchange, user, error);
    curl_multi_add_handle(connection.multi.get(), connection.easy.get());
    HttpOutcome outcome;
    {
      const std::stop_callback wake(stop,
                                    [&connection] { curl_multi_wakeup(connection.multi.get()); });
      outcome = Run(connection, request, exchange, stop);
    }
    ReadStatus(connection.easy.get(), exchange.head);
    long sent = 0;
    curl_easy_getinfo(connection.easy.get(), CURLINFO_REQUEST_SIZE, &sent);
    outcome.sent = sent > 0;
    outcome.head = std::move(exchange.head);
    if (outcome.detail.empty() && outcome.end != HttpEnd::kWhole) {
      outcome.detail = error;
    }
    // Removing a transfer that has not ended closes its connection; one that has ended stays open.
    curl_multi_remove_handle(connection.multi.get(), connection.easy.get());
    curl_easy_reset(connection.easy.get());
    Give(std::move(connection));
    return outcome;
  }

 private:
  static std::unique_ptr<curl_slist, ListDeleter> SetUp(CURL* easy, const HttpRequest& request,
                                                        Exchange& exchange, BodyUser& user,
                                                        char* error) {
    curl_slist* list = nullptr;
    for (const auto& [name, value] : request.headers) {
      list = curl_slist_append(list, (name + ": " + value).c_str());
    }
    list = curl_slist_append(list, "Expect:");  // no round trip before a large body
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     std::max<long>(1, static_cast<long>(request.connect_timeout.count())));
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, OnUpload);
    curl_easy_setopt(easy, CURLOPT_READDATA, &exchange);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, OnHeader);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, OnData);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &user);
    if (IsLoopback(request.url)) {
      curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    }
    return std::unique_ptr<curl_slist, ListDeleter>(list);
  }

  HttpOutcome Run(Connection& connection, const HttpRequest& request, Exchange& exchange,
                  const std::stop_token& stop) const {
    const auto start = clock_.Now();
    auto last_news = start;
    std::uint64_t seen = 0;
    curl_off_t uploaded = 0;
    for (;;) {
      int running = 0;
      if (const CURLMcode code = curl_multi_perform(connection.multi.get(), &running);
          code != CURLM_OK) {
        return {HttpEnd::kCut, {}, true, curl_multi_strerror(code)};
      }
      if (running == 0) {
        return {EndOf(CodeOf(connection.multi.get()), exchange), {}, true, ""};
      }
      if (stop.stop_requested()) {
        return {HttpEnd::kStopped, {}, true, "stopped"};
      }
      const auto now = clock_.Now();
      curl_off_t up = 0;
      curl_easy_getinfo(connection.easy.get(), CURLINFO_SIZE_UPLOAD_T, &up);
      if (exchange.received != seen || up != uploaded) {
        seen = exchange.received;
        uploaded = up;
        last_news = now;
      }
      const bool answered = request.answered && request.answered();
      if (answered && now - last_news >= kLinger) {
        return {HttpEnd::kWhole, {}, true, ""};
      }
      const auto left = start + request.total_timeout - now;
      const auto idle_left = last_news + request.idle_timeout - now;
      if (left <= left.zero()) {
        return {HttpEnd::kTotalTimeout, {}, true, "total timeout"};
      }
      if (idle_left <= idle_left.zero()) {
        return {HttpEnd::kIdle, {}, true, "idle timeout"};
      }
      const auto wait = std::chrono::ceil<milliseconds>(std::min(left, idle_left));
      curl_multi_poll(connection.multi.get(), nullptr, 0,
                      static_cast<int>(std::min<long long>(wait.count(), answered ? 100 : 1000)),
                      nullptr);
    }
  }

  static CURLcode CodeOf(CURLM* multi) {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg == CURLMSG_DONE) {
        return message->data.result;
      }
    }
    return CURLE_RECV_ERROR;
  }

  Connection Take() {
    const std::scoped_lock lock(mutex_);
    if (idle_.empty()) {
      return {};
    }
    Connection connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  void Give(Connection connection) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(connection));
  }

  const Clock& clock_;
  std::mutex mutex_;
  std::vector<Connection> idle_;  ///< last used last: the warmest is taken first
};

}  // namespace

std::unique_ptr<Transport> OpenHttpTransport(const Clock& clock) {
  return std::make_unique<HttpTransport>(clock);
}

}  // namespace kernelpro::llm
