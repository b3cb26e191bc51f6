// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "fault.h"
#include "wire.h"

namespace kernelpro::fake {

/// One accepted socket. Owns the descriptor; ends early once `stop` is set.
class Connection {
 public:
  Connection(int socket, const std::atomic<bool>& stop) : socket_(socket), stop_(stop) {}

  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The next request of the connection; nothing when it was closed or is no HTTP.
  [[nodiscard]] std::optional<HttpRequest> Read();

  struct Played {
    bool open = false;       ///< another request may follow
    bool all = false;        ///< every byte was handed to the kernel
    std::size_t pieces = 0;  ///< of the reply, begun
  };

  [[nodiscard]] Played Play(const std::vector<Step>& steps);

 private:
  /// False when the peer closed, on errors and on `stop`.
  [[nodiscard]] bool Fill();
  [[nodiscard]] bool Send(std::string_view bytes) const;
  /// Until the peer closes, or the server stops.
  void Stall() const;
  [[nodiscard]] bool ReadBody(HttpRequest& request);
  [[nodiscard]] bool ReadChunks(std::string& body);
  void Reset();

  int socket_;
  const std::atomic<bool>& stop_;
  std::string buffer_;
};

}  // namespace kernelpro::fake
