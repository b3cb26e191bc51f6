// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "mcp/server.h"

namespace kernelpro::mcp {

/// What the tool "wait" of TestOffer stands at.
class Gate {
 public:
  /// Returns when opened or stopped; true when opened.
  bool Pass(const std::stop_token& stop);
  void Open();
  /// Waits until so many tools have come here.
  void AwaitArrivals(int count);

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool open_ = false;
  int arrivals_ = 0;
};

/// Tools: echo {text}, sum {a, b} (structured), wait (at the gate, with progress), fail,
/// bad_news (isError), liar (its result breaks its output schema), thrower, raw (text that is no
/// UTF-8). Resources: kp:one, kp:two and kp:runs/{name}; kp:broken cannot be read.
[[nodiscard]] Offer TestOffer(Gate& gate);

/// Serve on a thread, at the other end of two pipes.
class Peer {
 public:
  explicit Peer(Offer offer);
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer();

  void SendRaw(std::string_view bytes) const;

  void Send(const Json& message) const { SendRaw(message.dump() + "\n"); }

  /// The next message; fails the test and is null when none comes (100 s) or it is no JSON.
  [[nodiscard]] Json Receive();
  /// Sends a request and takes the next message, which must be its answer.
  [[nodiscard]] Json Ask(const Json& id, std::string_view method, const Json& params = {});
  [[nodiscard]] Json AskStateless(const Json& id, std::string_view method,
                                  Json params = Json::object());
  /// The handshake.
  void Begin(std::string_view revision = "2025-11-25");
  /// A ping is answered with nothing before it: the stream is in step and nothing else was sent.
  [[nodiscard]] bool InStep();
  void EndInput();
  void CloseOutput();

  void RequestStop() { stop_.request_stop(); }

  /// Waits for Serve's return.
  [[nodiscard]] Status Join();
  /// Everything that is still unread once Serve has returned.
  [[nodiscard]] std::string Rest();

 private:
  [[nodiscard]] std::optional<std::string> ReadLine();

  Offer offer_;
  std::stop_source stop_;
  int to_server_ = -1, from_server_ = -1;
  int server_in_ = -1, server_out_ = -1;
  std::string buffer_;
  int pings_ = 0;
  Status status_ = Ok();
  std::thread thread_;
};

[[nodiscard]] Json CallOf(const Json& id, std::string_view tool,
                          const Json& arguments = Json::object());
/// Zero when the message is no error.
[[nodiscard]] int CodeOf(const Json& message);

}  // namespace kernelpro::mcp
