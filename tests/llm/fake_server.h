// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "fake_handler.h"

namespace kernelpro::fake {

/// A server of both wires on 127.0.0.1 for tests, on raw sockets: what is wrong about a reply must
/// be decided byte by byte, and a library of HTTP would put it right.
class FakeServer {
 public:
  /// `port` 0: any free one. Lines of the ledger are also appended to `ledger` unless it is empty.
  /// kIo when the port or the file cannot be had.
  [[nodiscard]] static Result<std::unique_ptr<FakeServer>> Start(
      HandlerOptions options, int port = 0, const std::filesystem::path& ledger = {});
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  [[nodiscard]] int port() const;
  /// "http://127.0.0.1:port": the base of Anthropic's SDK; OpenAI's wants "/v1" after it.
  [[nodiscard]] std::string url() const;

  /// Ends all connections and waits for their threads. The figures below are final afterwards.
  void Stop();

  [[nodiscard]] std::vector<LedgerEntry> Ledger() const;
  /// How often each fault was played, kNone included.
  [[nodiscard]] std::map<FaultKind, std::uint64_t> Played() const;
  /// Requests that followed a redirect.
  [[nodiscard]] std::uint64_t redirected() const;
  /// Connections that were accepted: fewer than requests when a client keeps them.
  [[nodiscard]] std::uint64_t connections() const;

 private:
  class Impl;
  explicit FakeServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A port of 127.0.0.1 on which nobody listens: connections are refused.
[[nodiscard]] int DeadPort();

}  // namespace kernelpro::fake
