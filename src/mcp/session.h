// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/calls.h"
#include "mcp/rpc.h"
#include "mcp/server.h"
#include "mcp/stream.h"

namespace kernelpro::mcp {

/// The reader's side of one client: takes lines, answers what is quick, hands calls on. For one
/// thread. What it is given outlives it.
class Session {
 public:
  Session(const Offer& offer, const std::vector<CheckedTool>& tools, LineWriter& writer,
          Calls& calls);

  void HandleLine(std::string_view line);
  void HandleTooLong();

 private:
  enum class State : std::uint8_t { kNew, kAnswered, kInitialized };

  struct Request;

  void HandleMessage(const Json& message, std::size_t bytes,
                     const std::shared_ptr<Replies>& replies);
  void HandleRequest(const Request& request, const std::shared_ptr<Replies>& replies);
  void HandleNotification(const std::string& method, const Json& params);
  [[nodiscard]] Answer Initialize(const Request& request);
  /// The revision that a request is served in, or why it is not served.
  [[nodiscard]] std::variant<std::string, RpcError> Revision(const Request& request) const;
  [[nodiscard]] Answer Quick(const Request& request, const std::string& revision) const;
  void AddCall(const Request& request, const std::string& revision,
               const std::shared_ptr<Replies>& replies);
  void Refuse(const Json& id, RpcError error);

  const Offer& offer_;
  const std::vector<CheckedTool>& tools_;
  LineWriter& writer_;
  Calls& calls_;
  State state_ = State::kNew;
  std::string revision_;  ///< once initialize was answered
};

}  // namespace kernelpro::mcp
