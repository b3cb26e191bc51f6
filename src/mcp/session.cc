// SPDX-License-Identifier: Apache-2.0
#include "mcp/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "mcp/catalog.h"

namespace kernelpro::mcp {
namespace {

constexpr std::size_t kLongestName = 200;
constexpr const char* kRevisionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kClientKey = "io.modelcontextprotocol/clientCapabilities";

RpcError Invalid(std::string message) {
  return {RpcCode::kInvalidRequest, std::move(message), ""};
}

RpcError InvalidParams(std::string message) {
  return {RpcCode::kInvalidParams, std::move(message), ""};
}

RpcError NoMethod(std::string_view method) {
  return {RpcCode::kMethodNotFound, "there is no method " + Printable(method, kLongestName), ""};
}

/// Null when there is none.
const Json* Meta(const Json& params) {
  const auto meta = params.find("_meta");
  return meta != params.end() && meta->is_object() ? &*meta : nullptr;
}

const Json* Find(const Json* object, const char* key) {
  if (object == nullptr) {
    return nullptr;
  }
  const auto found = object->find(key);
  return found != object->end() ? &*found : nullptr;
}

std::optional<RpcError> WrongEnvelope(const Json& message) {
  if (!message.is_object()) {
    return Invalid("a message is a JSON object");
  }
  const Json* version = Find(&message, "jsonrpc");
  if (version == nullptr || *version != "2.0") {
    return Invalid("\"jsonrpc\" must be \"2.0\"");
  }
  if (const Json* id = Find(&message, "id"); id != nullptr && !IsId(*id)) {
    return Invalid("\"id\" must be a string or an integer");
  }
  const Json* method = Find(&message, "method");
  if (method == nullptr || !method->is_string()) {
    return Invalid("\"method\" must be a string");
  }
  const Json* params = Find(&message, "params");
  if (params != nullptr && !params->is_structured()) {
    return Invalid("\"params\" must be an object");
  }
  return std::nullopt;
}

/// An answer to a request that we never made. Whatever it holds, answering it would start a loop.
bool IsResponse(const Json& message) {
  return message.is_object() && !message.contains("method") &&
         (message.contains("result") || message.contains("error"));
}

}  // namespace

struct Session::Request {
  const Json& id;
  const std::string& method;
  const Json& params;
  std::size_t bytes;
};

Session::Session(const Offer& offer, const std::vector<CheckedTool>& tools, LineWriter& writer,
                 Calls& calls)
    : offer_(offer), tools_(tools), writer_(writer), calls_(calls) {}

void Session::Refuse(const Json& id, RpcError error) {
  Replies(writer_, false, 1).Give(id, std::move(error));
}

void Session::HandleTooLong() {
  Refuse(nullptr, Invalid(fmt::format("a message of more than {} bytes", kLongestMessage)));
}

void Session::HandleLine(std::string_view line) {
  if (Trim(line).empty()) {
    return;
  }
  Answer parsed = ParseMessage(line);
  if (RpcError* error = std::get_if<RpcError>(&parsed)) {
    Refuse(nullptr, std::move(*error));
    return;
  }
  const Json& message = std::get<Json>(parsed);
  if (!message.is_array()) {
    HandleMessage(message, line.size(), std::make_shared<Replies>(writer_, false, 1));
    return;
  }
  if (state_ != State::kInitialized || revision_ != kBatches) {
    Refuse(nullptr, Invalid(fmt::format("batches belong to revision {} only", kBatches)));
  } else if (message.empty() || message.size() > kLargestBatch) {
    Refuse(nullptr, Invalid(fmt::format("a batch holds 1 to {} messages", kLargestBatch)));
  } else {
    const auto replies = std::make_shared<Replies>(writer_, true, message.size());
    for (const Json& one : message) {
      HandleMessage(one, line.size() / message.size(), replies);
    }
  }
}

void Session::HandleMessage(const Json& message, std::size_t bytes,
                            const std::shared_ptr<Replies>& replies) {
  const Json none;
  if (IsResponse(message)) {
    replies->Skip();
    return;
  }
  const Json* id = message.is_object() ? Find(&message, "id") : nullptr;
  if (std::optional<RpcError> wrong = WrongEnvelope(message)) {
    replies->Give(id != nullptr && IsId(*id) ? *id : none, std::move(*wrong));
    return;
  }
  const Json empty = Json::object();
  const Json* given = Find(&message, "params");
  const Json& params = given != nullptr ? *given : empty;
  const auto& method = message["method"].get_ref<const std::string&>();
  if (id == nullptr) {
    HandleNotification(method, params);
    replies->Skip();
  } else if (calls_.InFlight(id->dump())) {
    // Under the id it would pass for the answer to the call that is in flight.
    replies->Give(none, Invalid("a request with the id " + Printable(id->dump(), kLongestName) +
                                " has not been answered yet"));
  } else if (!params.is_object()) {
    replies->Give(*id, InvalidParams("\"params\" must be an object"));
  } else {
    HandleRequest({*id, method, params, bytes}, replies);
  }
}

void Session::HandleNotification(const std::string& method, const Json& params) {
  if (method == "notifications/initialized" && state_ == State::kAnswered) {
    state_ = State::kInitialized;
  } else if (method == "notifications/cancelled" && params.is_object()) {
    if (const Json* id = Find(&params, "requestId"); id != nullptr && IsId(*id)) {
      calls_.Cancel(id->dump());
    }
  }
}

void Session::HandleRequest(const Request& request, const std::shared_ptr<Replies>& replies) {
  if (request.method == "initialize") {
    replies->Give(request.id, Initialize(request));
    return;
  }
  std::variant<std::string, RpcError> revision = Revision(request);
  if (RpcError* error = std::get_if<RpcError>(&revision)) {
    replies->Give(request.id, std::move(*error));
    return;
  }
  if (request.method == "tools/call" && !offer_.tools.empty()) {
    AddCall(request, std::get<std::string>(revision), replies);
  } else {
    replies->Give(request.id, Quick(request, std::get<std::string>(revision)));
  }
}

Answer Session::Initialize(const Request& request) {
  const Json* asked = Find(&request.params, "protocolVersion");
  if (state_ != State::kNew) {
    return Invalid("this session is initialized already");
  }
  if (asked == nullptr || !asked->is_string()) {
    return InvalidParams("\"protocolVersion\" must be a string");
  }
  const auto& text = asked->get_ref<const std::string&>();
  revision_ = IsHandshakeRevision(text) ? text : kNewestHandshake;
  state_ = State::kAnswered;
  return Catalog(offer_, revision_).Initialize();
}

std::variant<std::string, RpcError> Session::Revision(const Request& request) const {
  const Json* meta = Meta(request.params);
  const Json* stated = Find(meta, kRevisionKey);
  if (stated != nullptr && stated->is_string() && *stated != kStateless) {
    Json supported = Json::array({kStateless});
    return RpcError{RpcCode::kUnsupportedVersion, "Unsupported protocol version",
                    Line(Json{{"supported", std::move(supported)}, {"requested", *stated}})};
  }
  if (stated != nullptr || request.method == "server/discover") {
    const Json* client = Find(meta, kClientKey);
    if (stated == nullptr || !stated->is_string() || client == nullptr || !client->is_object()) {
      return InvalidParams(
          fmt::format("\"_meta\" must hold \"{}\" and \"{}\"", kRevisionKey, kClientKey));
    }
    return std::string(kStateless);
  }
  if (request.method == "ping") {
    return revision_;
  }
  if (state_ != State::kInitialized) {
    return Invalid("send \"initialize\" and \"notifications/initialized\" first");
  }
  return revision_;
}

Answer Session::Quick(const Request& request, const std::string& revision) const {
  const Catalog catalog(offer_, revision);
  if (request.method == "server/discover") {
    return catalog.Discover();
  }
  if (request.method == "ping" && !catalog.stateless()) {
    return Json::object();
  }
  if (request.method == "tools/list" && !offer_.tools.empty()) {
    return catalog.Tools(request.params);
  }
  if (request.method == "resources/list" && catalog.HasResources()) {
    return catalog.Resources(request.params);
  }
  if (request.method == "resources/templates/list" && catalog.HasResources()) {
    return catalog.Templates(request.params);
  }
  if (request.method == "resources/read" && catalog.HasResources()) {
    return catalog.Read(request.params);
  }
  return NoMethod(request.method);
}

void Session::AddCall(const Request& request, const std::string& revision,
                      const std::shared_ptr<Replies>& replies) {
  const Json* name = Find(&request.params, "name");
  const auto tool = std::ranges::find_if(tools_, [&](const CheckedTool& checked) {
    return name != nullptr && name->is_string() && *name == checked.tool->name;
  });
  if (tool == tools_.end()) {
    replies->Give(request.id, InvalidParams(name != nullptr && name->is_string()
                                                ? "there is no tool " +
                                                      Printable(name->get_ref<const std::string&>(),
                                                                kLongestName)
                                                : "\"name\" must be a string"));
    return;
  }
  const Json* arguments = Find(&request.params, "arguments");
  if (arguments != nullptr && !arguments->is_object()) {
    replies->Give(request.id, InvalidParams("\"arguments\" must be an object"));
    return;
  }
  const Json* token = Find(Meta(request.params), "progressToken");
  if (token != nullptr && !IsId(*token)) {
    replies->Give(request.id, InvalidParams("\"progressToken\" must be a string or an integer"));
    return;
  }
  Call call;
  call.key = request.id.dump();
  call.id = std::make_unique<const Json>(request.id);
  call.arguments = std::make_unique<const Json>(arguments != nullptr ? *arguments : Json::object());
  call.progress_token = token != nullptr ? std::make_unique<const Json>(*token) : nullptr;
  call.revision = revision;
  call.tool = &*tool;
  call.bytes = request.bytes;
  call.replies = replies;
  calls_.Add(std::move(call));
}

}  // namespace kernelpro::mcp
