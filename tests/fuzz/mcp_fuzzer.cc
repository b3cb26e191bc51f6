// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "mcp/server.h"

namespace {

using kernelpro::Fail;
using kernelpro::Result;
using namespace kernelpro::mcp;

Offer FuzzOffer() {
  Offer offer;
  offer.info = {"fuzz", "", "1", ""};
  Tool echo{.name = "echo",
            .input_schema = R"({"type":"object","properties":{"text":{"type":"string"},
                "n":{"type":"array","items":{"type":"integer","minimum":0},"uniqueItems":true}}})"};
  echo.call = [](const Json& arguments, ProgressSink& progress,
                 const std::stop_token&) -> Result<ToolResult> {
    progress.Report(1, 1, "x");
    return ToolResult{.text = arguments.dump(), .structured = arguments.dump()};
  };
  offer.tools.push_back(std::move(echo));
  offer.list = []() -> Result<std::vector<Resource>> {
    return std::vector<Resource>{{"kp:one", "one", "", "", "text/plain"}};
  };
  offer.templates = {{"kp:{a}/{b}", "ab", "", "", "text/plain"}};
  offer.read = [](const std::string& uri) -> Result<std::string> {
    if (uri.starts_with("kp:")) {
      return uri;
    }
    return Fail(kernelpro::ErrorCode::kNotFound, uri);
  };
  return offer;
}

/// A file in memory, at its start.
int MemoryFile(std::string_view content) {
  const int fd = ::memfd_create("fuzz", 0);
  if (fd < 0 ||
      ::write(fd, content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      ::lseek(fd, 0, SEEK_SET) != 0) {
    std::abort();
  }
  return fd;
}

std::string Everything(int fd) {
  std::string text(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  if (::pread(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    std::abort();
  }
  return text;
}

}  // namespace

/// After any lines a ping is answered, and all that is written is JSON, a message a line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Offer offer = FuzzOffer();
  std::string input =
      R"({"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-03-26"}})"
      "\n"
      R"({"jsonrpc":"2.0","method":"notifications/initialized"})"
      "\n";
  input.append(reinterpret_cast<const char*>(data), size);
  input +=
      "\n"
      R"({"jsonrpc":"2.0","id":"last ping","method":"ping"})"
      "\n";
  const int in = MemoryFile(input);
  const int out = MemoryFile("");
  if (!Serve(offer, in, out, {}).ok()) {
    std::abort();
  }
  const std::string written = Everything(out);
  bool answered = false;
  for (const std::string_view line : kernelpro::Lines(written)) {
    const Json message = Json::parse(line, nullptr, false);
    if (!message.is_object() && !message.is_array()) {
      std::abort();
    }
    answered =
        answered || (message.is_object() && message.contains("id") && message["id"] == "last ping");
  }
  if (!answered) {
    std::abort();
  }
  ::close(in);
  ::close(out);
  return 0;
}
