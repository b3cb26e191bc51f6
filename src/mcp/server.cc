// SPDX-License-Identifier: Apache-2.0
#include "mcp/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "mcp/calls.h"
#include "mcp/rpc.h"
#include "mcp/schema.h"
#include "mcp/session.h"
#include "mcp/stream.h"

namespace kernelpro::mcp {
namespace {

/// As revision 2025-11-25 has it.
constexpr std::size_t kLongestToolName = 128;
constexpr std::string_view kToolNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

Result<std::vector<CheckedTool>> CheckTools(const Offer& offer) {
  std::vector<CheckedTool> checked;
  for (const Tool& tool : offer.tools) {
    const std::string who = fmt::format("the tool \"{}\"", tool.name);
    if (tool.name.empty() || tool.name.size() > kLongestToolName ||
        tool.name.find_first_not_of(kToolNameLetters) != std::string::npos || !tool.call ||
        std::ranges::count(offer.tools, tool.name, &Tool::name) != 1) {
      return Fail(ErrorCode::kInvalidArgument,
                  who + " needs a function and a name of its own of letters, digits, _, - and .");
    }
    Result<Schema> input = Schema::Parse(tool.input_schema);
    if (!input) {
      return std::move(input).error().Wrap(who + ", input schema");
    }
    checked.push_back({&tool, std::move(*input), std::nullopt});
    if (!tool.output_schema.empty()) {
      Result<Schema> output = Schema::Parse(tool.output_schema);
      if (!output) {
        return std::move(output).error().Wrap(who + ", output schema");
      }
      checked.back().output = std::move(*output);
    }
  }
  return checked;
}

}  // namespace

Status Serve(const Offer& offer, int input_fd, int output_fd, const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(const std::vector<CheckedTool> tools, CheckTools(offer));
  KP_ASSIGN_OR_RETURN(const Wake wake, Wake::Create());
  const std::stop_callback on_stop(stop, [&] { wake.Signal(); });
  LineReader reader(input_fd, wake, kLongestMessage);
  LineWriter writer(output_fd, wake);
  Calls calls(offer, writer);
  Session session(offer, tools, writer, calls);
  Status status = Ok();
  for (std::string line;;) {
    const Result<LineReader::Event> event = reader.Next(line);
    if (!event.ok()) {
      status = event.error();
      break;
    }
    if (*event == LineReader::Event::kEnd) {
      break;
    }
    *event == LineReader::Event::kLine ? session.HandleLine(line) : session.HandleTooLong();
  }
  wake.Signal();  // first: a worker may be writing to a client that does not read
  writer.Close();
  calls.Stop();
  KP_RETURN_IF_ERROR(writer.status());
  return status;
}

}  // namespace kernelpro::mcp
