// SPDX-License-Identifier: Apache-2.0
#include "mcp/rpc.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace kernelpro::mcp {
namespace {

/// Looks at the text before the parser does. On the valid prefix that a parser builds something
/// from both see the same brackets and strings.
std::optional<RpcError> CheckShape(std::string_view line) {
  std::vector<std::size_t> members;
  bool in_string = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
      continue;
    }
    if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (members.size() == kDeepest) {
        return RpcError{RpcCode::kInvalidRequest,
                        fmt::format("nested deeper than {} levels", kDeepest), ""};
      }
      members.push_back(0);
    } else if ((c == '}' || c == ']') && !members.empty()) {
      members.pop_back();
    } else if (c == ':' && !members.empty() && ++members.back() > kMostMembers) {
      return RpcError{RpcCode::kInvalidRequest,
                      fmt::format("an object of more than {} members", kMostMembers), ""};
    }
  }
  return std::nullopt;
}

}  // namespace

Answer ParseMessage(std::string_view line) {
  if (std::optional<RpcError> wrong = CheckShape(line)) {
    return std::move(*wrong);
  }
  Json message = Json::parse(line, nullptr, false);
  if (message.is_discarded()) {
    return RpcError{RpcCode::kParse, "the line is not one JSON text in UTF-8", ""};
  }
  return message;
}

bool IsId(const Json& id) {
  return id.is_string() || id.is_number_integer();
}

std::string Line(const Json& message) {
  return message.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Replies::Replies(LineWriter& writer, bool batch, std::size_t count)
    : writer_(writer), batch_(batch), waiting_(count) {}

void Replies::Give(const Json& id, Answer answer) {
  Json message{{"jsonrpc", "2.0"}, {"id", id}};
  if (Json* result = std::get_if<Json>(&answer)) {
    message["result"] = std::move(*result);
  } else {
    RpcError& error = std::get<RpcError>(answer);
    message["error"] = {{"code", static_cast<int>(error.code)},
                        {"message", std::move(error.message)}};
    if (!error.data.empty()) {
      message["error"]["data"] = Json::parse(error.data);
    }
  }
  Settle(Line(message));
}

void Replies::Skip() {
  Settle(std::nullopt);
}

void Replies::Settle(std::optional<std::string> message) {
  const std::scoped_lock lock(mutex_);
  if (message) {
    text_ += (text_.empty() ? "" : ",") + *message;
  }
  if (--waiting_ == 0 && !text_.empty()) {
    writer_.Write(batch_ ? "[" + text_ + "]" : text_);
  }
}

}  // namespace kernelpro::mcp
