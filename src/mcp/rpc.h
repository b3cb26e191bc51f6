// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "mcp/server.h"
#include "mcp/stream.h"

/// JSON-RPC 2.0 as the protocol uses it.
namespace kernelpro::mcp {

enum class RpcCode : std::int16_t {
  kParse = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kInternal = -32603,
  kResourceNotFound = -32002,    ///< until revision 2025-11-25; then kInvalidParams
  kUnsupportedVersion = -32022,  ///< since revision 2026-07-28
};

struct RpcError {
  RpcCode code = RpcCode::kInternal;
  std::string message;
  std::string data;  ///< JSON text; empty: none
};

/// The `result` of a request, or why there is none.
using Answer = std::variant<Json, RpcError>;

inline constexpr std::size_t kLongestMessage = 16U << 20U;
/// Recursive code (writing, copying, validating) sees no more levels than this.
inline constexpr std::size_t kDeepest = 100;
/// Finding a key is a walk through the members, so many of them would cost quadratic time.
inline constexpr std::size_t kMostMembers = 1000;
inline constexpr std::size_t kLargestBatch = 1000;

/// One line as JSON, within the limits above: kParse for what is no JSON (or no UTF-8),
/// kInvalidRequest for what exceeds a limit.
[[nodiscard]] Answer ParseMessage(std::string_view line);

/// A string or an integer.
[[nodiscard]] bool IsId(const Json& id);

/// One line without its end; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string Line(const Json& message);

/// The answers to one line of input: one message, or an array for a batch, written when the last
/// is there. For each request Give or Skip is called once; thread safe.
class Replies {
 public:
  Replies(LineWriter& writer, bool batch, std::size_t count);
  Replies(const Replies&) = delete;
  Replies& operator=(const Replies&) = delete;

  /// `id` null: the request's could not be read.
  void Give(const Json& id, Answer answer);
  /// For a notification or a cancelled request: nothing is sent.
  void Skip();

 private:
  void Settle(std::optional<std::string> message);

  LineWriter& writer_;
  const bool batch_;
  std::mutex mutex_;
  std::size_t waiting_;
  std::string text_;
};

}  // namespace kernelpro::mcp
