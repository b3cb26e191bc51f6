// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// A server of the Model Context Protocol (https://modelcontextprotocol.io) over two byte streams:
/// JSON-RPC 2.0, one message a line. It knows nothing about kernels.
namespace kernelpro::mcp {

using Json = nlohmann::ordered_json;

/// What a running tool may tell meanwhile. Thread safe; silent when the client asked for no
/// progress.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  /// `done` grows; `total` 0: unknown.
  virtual void Report(double done, double total, std::string_view message) = 0;
};

struct ToolResult {
  std::string text;        ///< for the model
  std::string structured;  ///< JSON object, as text; empty: none
  bool failed = false;     ///< isError: the tool ran and has bad news
};

struct Tool {
  std::string name, title, description;
  std::string input_schema;   ///< JSON Schema of an object, as text; keywords as of schema.h
  std::string output_schema;  ///< of ToolResult::structured; empty: not declared
  bool read_only = false;     ///< annotation readOnlyHint
  /// `arguments` fits the input schema. An Error becomes a result with isError: the model reads its
  /// message. A result that does not fit the output schema becomes an internal error.
  std::function<Result<ToolResult>(const Json& arguments, ProgressSink& progress,
                                   const std::stop_token& stop)>
      call;
};

struct Resource {
  std::string uri, name, title, description, mime_type;
};

struct ResourceTemplate {
  std::string uri_template, name, title, description, mime_type;
};

struct ServerInfo {
  std::string name, title, version;
  std::string instructions;  ///< how a model should use the server
};

/// Everything a server offers. `list` is asked anew each time, so resources may come and go. `list`
/// and `read` are called while a tool runs on the other thread. Without `read` there are no
/// resources.
struct Offer {
  ServerInfo info;
  std::vector<Tool> tools;
  std::function<Result<std::vector<Resource>>()> list;
  std::vector<ResourceTemplate> templates;
  /// kNotFound for a URI that is not there.
  std::function<Result<std::string>(const std::string& uri)> read;
};

/// Serves until the input ends or `stop` is requested: then running tools are asked to stop, waited
/// for, and their answers are dropped. Tools run one at a time on a thread of their own, in the
/// order of their calls, so that pings, cancellations and listings are answered meanwhile. Returns
/// kIo when a stream breaks, and kInvalidArgument before anything is read when a tool's name or
/// schema is wrong.
[[nodiscard]] Status Serve(const Offer& offer, int input_fd, int output_fd,
                           const std::stop_token& stop);

}  // namespace kernelpro::mcp
