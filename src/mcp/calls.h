// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "mcp/rpc.h"
#include "mcp/schema.h"
#include "mcp/server.h"
#include "mcp/stream.h"

namespace kernelpro::mcp {

struct CheckedTool {
  const Tool* tool = nullptr;
  Schema input;
  std::optional<Schema> output;
};

/// A tools/call on its way.
struct Call {
  Call();
  Call(Call&& other) noexcept;
  Call& operator=(Call&& other) noexcept;
  ~Call();

  std::string key;  ///< the id as JSON text: 1 and "1" are two ids
  std::unique_ptr<const Json> id, arguments;
  std::unique_ptr<const Json> progress_token;  ///< null: no progress is wanted
  std::string revision;
  const CheckedTool* tool = nullptr;
  std::size_t bytes = 0;  ///< of the message, for the queue's limit
  /// Shared: the calls of one batch answer together, whichever thread settles the last of them.
  std::shared_ptr<Replies> replies;
};

/// Runs tools one at a time, in order, on a thread of its own. `offer` and `writer` outlive it.
class Calls {
 public:
  Calls(const Offer& offer, LineWriter& writer);
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls();

  /// Refuses (with an answer) when too much is waiting.
  void Add(Call call);
  /// The id of a call that waits or runs.
  [[nodiscard]] bool InFlight(const std::string& key) const;
  /// Drops a waiting call; asks a running one to stop and drops its answer. Else nothing.
  void Cancel(const std::string& key);
  /// Drops what waits, asks the running tool to stop, and waits for it.
  void Stop();

  static constexpr std::size_t kMostWaiting = 1024;
  static constexpr std::size_t kMostWaitingBytes = 4 * kLongestMessage;

 private:
  void Work();
  [[nodiscard]] Answer Run(const Call& call, const std::stop_token& stop);

  const Offer& offer_;
  LineWriter& writer_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::set<std::string> in_flight_;
  std::string running_;  ///< its key; empty: none, as no key is
  std::stop_source running_stop_;
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace kernelpro::mcp
