// SPDX-License-Identifier: Apache-2.0
// mcp: the agent's commands as tools of the Model Context Protocol, over standard input and output.
#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "agent_desk.h"
#include "commands.h"
#include "mcp/server.h"
#include "mcp_tools.h"
#include "report/json.h"
#include "setup.h"

namespace kernelpro::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInstructions =
    "KernelPro judges CUDA kernels: is it right, how fast, and what would an expert change. Call "
    "start_run with a task folder, then repeat: next_parent (source, findings, memory), write the "
    "whole kernel anew changing one thing, submit_kernel. A wrong kernel is mended before anything "
    "else. Times are modelled on the emulator and measured on a GPU; the two are never compared. "
    "Use note to remember what you learnt, report at the end.";

/// The agent's desk as an MCP server: one desk, kept for the life of the connection.
class Server {
 public:
  [[nodiscard]] mcp::Offer MakeOffer() {
    mcp::Offer offer;
    offer.info = {"kernelpro", "KernelPro", KP_VERSION, kInstructions};
    for (mcp::Tool tool : AgentTools()) {
      tool.call = [this, name = tool.name](const mcp::Json& arguments, mcp::ProgressSink& progress,
                                           const std::stop_token& stop) {
        return Call(name, arguments, progress, stop);
      };
      offer.tools.push_back(std::move(tool));
    }
    offer.list = [this] { return List(); };
    offer.templates = {
        {"kernelpro://source?run={run}&node={node}", "source", "Source of a node",
         "The kernel as it was submitted", "text/x-cuda"},
        {"kernelpro://next?run={run}&node={node}", "node", "A node and its feedback",
         "What next_parent says about this node", "text/plain"},
        {"kernelpro://diagnosis?run={run}&node={node}", "diagnosis", "Diagnosis of a node",
         "All that the experts say", "text/plain"},
    };
    offer.read = [this](const std::string& uri) { return Read(uri); };
    return offer;
  }

 private:
  Result<mcp::ToolResult> Call(const std::string& name, const mcp::Json& arguments,
                               mcp::ProgressSink& progress, const std::stop_token& stop) {
    bool ok = true;
    Result<report::AgentAnswer> answer = CallAgentTool(desk_, name, arguments, progress, &ok, stop);
    if (!answer) {
      return std::move(answer).error();
    }
    const auto json = mcp::Json::parse(answer->json, nullptr, false);
    if (json.is_object() && json.contains("run") && json["run"].is_string()) {
      const std::lock_guard lock(mutex_);
      runs_.insert(json["run"].get<std::string>());
    }
    // A kernel that is wrong is an answer, not a failure of the tool.
    return mcp::ToolResult{std::move(answer->text), std::move(answer->json), false};
  }

  /// Runs of this connection and those of the working folder.
  Result<std::vector<mcp::Resource>> List() {
    std::set<std::string> runs;
    {
      const std::lock_guard lock(mutex_);
      runs = runs_;
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("kernelpro-runs", error)) {
      if (fs::exists(entry.path() / "run.db", error)) {
        runs.insert(entry.path().string());
      }
    }
    std::vector<mcp::Resource> resources;
    for (const std::string& run : runs) {
      resources.push_back({"kernelpro://status?run=" + EncodeUri(run), run, "Run " + run,
                           "The tree of this run so far", "text/plain"});
    }
    return resources;
  }

  Result<std::string> Read(const std::string& uri) {
    KP_ASSIGN_OR_RETURN(const ResourceAddress address, ParseResourceUri(uri));
    AgentDesk desk;  // Reading needs nothing of the one that a tool may be using now.
    Result<report::AgentAnswer> answer = ReadResource(desk, address);
    if (!answer) {
      Error error = std::move(answer).error();
      error.code = ErrorCode::kNotFound;
      return error;
    }
    return std::move(answer->text);
  }

  AgentDesk desk_;
  std::mutex mutex_;
  std::set<std::string> runs_;
};

}  // namespace

int Mcp() {
  const Interrupt interrupt;
  Server server;
  const Status served =
      mcp::Serve(server.MakeOffer(), STDIN_FILENO, STDOUT_FILENO, interrupt.token());
  return served ? 0 : Complain(served.error(), false);
}

}  // namespace kernelpro::app
