// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "mcp/rpc.h"
#include "mcp/server.h"

/// What an Offer looks like to a client.
namespace kernelpro::mcp {

/// Revisions that begin with `initialize`, oldest first.
[[nodiscard]] bool IsHandshakeRevision(std::string_view revision);
inline constexpr std::string_view kNewestHandshake = "2025-11-25";
/// Each request says its revision itself, and nothing is remembered between requests.
inline constexpr std::string_view kStateless = "2026-07-28";
/// Only this revision has batches.
inline constexpr std::string_view kBatches = "2025-03-26";

/// The `result` objects of one revision. Revisions are dates and compare as texts. `offer` must
/// outlive it.
class Catalog {
 public:
  Catalog(const Offer& offer, std::string_view revision) : offer_(offer), revision_(revision) {}

  [[nodiscard]] Json Initialize() const;
  [[nodiscard]] Json Discover() const;
  /// Pages of kPageLength; `params` may hold a cursor. kInvalidParams for a cursor that is not
  /// ours.
  [[nodiscard]] Answer Tools(const Json& params) const;
  [[nodiscard]] Answer Resources(const Json& params) const;
  [[nodiscard]] Answer Templates(const Json& params) const;
  [[nodiscard]] Answer Read(const Json& params) const;
  /// Of a tool that ran, or could not: `content`, `structuredContent`, `isError`.
  [[nodiscard]] Answer CallResult(const Result<ToolResult>& outcome) const;

  [[nodiscard]] bool HasResources() const;

  [[nodiscard]] bool stateless() const { return revision_ >= kStateless; }

  static constexpr std::size_t kPageLength = 100;

 private:
  [[nodiscard]] Json ServerInfo() const;
  [[nodiscard]] Json Capabilities() const;
  [[nodiscard]] Json ToolJson(const Tool& tool) const;
  [[nodiscard]] std::string MimeType(const std::string& uri) const;
  [[nodiscard]] Json Complete(Json result, bool cacheable) const;

  const Offer& offer_;
  std::string revision_;
};

}  // namespace kernelpro::mcp
