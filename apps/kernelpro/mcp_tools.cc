// SPDX-License-Identifier: Apache-2.0
#include "mcp_tools.h"

#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace kernelpro::app {
namespace {

using mcp::Json;

Json Text(const char* what) {
  return {{"type", "string"}, {"description", what}};
}

Json Whole(const char* what) {
  return {{"type", "integer"}, {"description", what}};
}

Json Flag(const char* what) {
  return {{"type", "boolean"}, {"description", what}};
}

Json ListOf(const char* type, const char* what) {
  return {{"type", "array"}, {"items", {{"type", type}}}, {"description", what}};
}

mcp::Tool MakeTool(const char* name, const char* title, const char* description, Json properties,
                   std::vector<std::string> required, bool read_only) {
  mcp::Tool tool;
  tool.name = name;
  tool.title = title;
  tool.description = description;
  tool.input_schema = Json{
      {"type", "object"},
      {"properties", std::move(properties)},
      {"required", std::move(required)},
      {"additionalProperties",
       false}}.dump();
  tool.read_only = read_only;
  return tool;
}

constexpr const char* kRun = "Run folder, as start_run named it";

std::string String(const Json& arguments, const char* name, std::string otherwise = {}) {
  return arguments.value(name, std::move(otherwise));
}

search::Submission ReadSubmission(const Json& a) {
  search::Submission s;
  s.parent = a.at("parent").get<std::int64_t>();
  s.candidate.source = String(a, "source");
  s.candidate.flags = a.value("flags", std::vector<std::string>());
  s.action = String(a, "action");
  s.reason = String(a, "reason");
  s.finding = String(a, "finding");
  s.origin = String(a, "by");
  return s;
}

AgentStart ReadStart(const Json& a) {
  AgentStart start;
  start.task = String(a, "task");
  start.run = String(a, "run");
  start.device = String(a, "device", "auto");
  start.search = String(a, "search", "mcts");
  if (a.contains("seed")) {
    start.seed = a["seed"].get<std::uint64_t>();
  }
  return start;
}

std::optional<std::int64_t> Node(const Json& a) {
  return a.contains("node") ? std::optional(a["node"].get<std::int64_t>()) : std::nullopt;
}

}  // namespace

std::vector<mcp::Tool> AgentTools() {
  const Json run = Text(kRun);
  std::vector<mcp::Tool> tools;
  tools.push_back(MakeTool("start_run", "Start a run",
                           "Makes a run for a task and judges its seed kernel.",
                           {{"task", Text("Folder with task.toml, reference.cc and seed.cu")},
                            {"device", Text("auto | emulator[:GPU] | cuda[:N]")},
                            {"run", Text("Folder to create; default kernelpro-runs/TASK-TIME")},
                            {"search", Text("mcts | greedy | beam | random")},
                            {"seed", Whole("Same seed, same inputs and choices")}},
                           {"task"}, false));
  tools.push_back(MakeTool(
      "next_parent", "Next parent",
      "The kernel to go on from: source, what the experts say, what was tried, what was learnt.",
      {{"run", run}, {"node", Whole("Look at this node instead of the search's choice")}}, {"run"},
      true));
  tools.push_back(MakeTool(
      "submit_kernel", "Submit a kernel",
      "Adds a whole kernel (never a diff) to the run, compiles, checks, times and explains it.",
      {{"run", run},
       {"source", Text("The whole CUDA source")},
       {"parent", Whole("Node that it was made from")},
       {"action", Text("Short id of what was done, like tile_64x64")},
       {"reason", Text("One sentence: why it should help")},
       {"finding", Text("Id of the parent's finding that it answers")},
       {"flags", ListOf("string", "Compiler flags of the allowed list")},
       {"by", Text("Who wrote it")},
       {"defer", Flag("Only keep it; evaluate judges it later")}},
      {"run", "source", "parent", "action"}, false));
  tools.push_back(MakeTool(
      "evaluate", "Judge kernels",
      "Judges kernels that wait; with another device: judges the run's kernels there, beside its "
      "ranking.",
      {{"run", run},
       {"device", Text("Default: the run's own")},
       {"all", Flag("On another device: also those judged there before")},
       {"nodes", ListOf("integer", "Only these")}},
      {"run"}, false));
  tools.push_back(MakeTool("diagnose", "Diagnose a node", "All that the experts say about a node.",
                           {{"run", run}, {"node", Whole("Which node")}}, {"run", "node"}, true));
  tools.push_back(MakeTool("search_memory", "Search the memory",
                           "What the run has learnt: wins, dead ends, errors, facts.",
                           {{"run", run},
                            {"query", Text("Words to look for; empty: everything, youngest first")},
                            {"most", Whole("Lessons at most, default 20")}},
                           {"run"}, true));
  tools.push_back(MakeTool("note", "Note a lesson", "Adds a lesson to the run's memory.",
                           {{"run", run},
                            {"text", Text("One or two sentences")},
                            {"kind", Text("error | dead_end | win | fact")},
                            {"node", Whole("Node that taught it")}},
                           {"run", "text"}, false));
  tools.push_back(
      MakeTool("status", "Status", "The tree of the run so far.", {{"run", run}}, {"run"}, true));
  tools.push_back(MakeTool("report", "Report", "The result so far; also writes best.cu.",
                           {{"run", run}}, {"run"}, false));
  return tools;
}

Result<report::AgentAnswer> CallAgentTool(AgentDesk& desk, const std::string& name, const Json& a,
                                          mcp::ProgressSink& progress, bool* ok,
                                          const std::stop_token& stop) {
  if (name == "start_run") {
    return desk.Start(ReadStart(a), stop);
  }
  const std::string run = String(a, "run");
  if (name == "next_parent") {
    return desk.Next(run, Node(a));
  }
  if (name == "submit_kernel") {
    return desk.Submit(run, ReadSubmission(a), a.value("defer", false), ok, stop);
  }
  if (name == "evaluate") {
    return desk.Evaluate(
        run,
        {String(a, "device"), a.value("all", false), a.value("nodes", std::vector<std::int64_t>())},
        [&progress](std::size_t done, std::size_t total, const std::string& what) {
          progress.Report(static_cast<double>(done), static_cast<double>(total), what);
        },
        stop);
  }
  if (name == "diagnose") {
    return desk.Diagnose(run, a.at("node").get<std::int64_t>());
  }
  if (name == "search_memory") {
    const auto most = a.value("most", std::int64_t{20});
    return desk.Memory(run, String(a, "query"), most < 1 ? 1 : static_cast<std::size_t>(most));
  }
  if (name == "note") {
    return desk.Note(
        run, {ParseLessonKind(String(a, "kind", "fact")), String(a, "text"), Node(a).value_or(0)});
  }
  return name == "status" ? desk.Status(run) : desk.Report(run);
}

std::string EncodeUri(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", u);
    }
  }
  return out;
}

namespace {

int HexDigit(char c) {
  const std::string_view digits = "0123456789abcdef";
  return static_cast<int>(
      digits.find(static_cast<char>(std::tolower(static_cast<unsigned char>(c)))));
}

std::string DecodeUri(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      out += static_cast<char>(16 * HexDigit(text[i + 1]) + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

Result<ResourceAddress> ParseResourceUri(const std::string& uri) {
  constexpr std::string_view kScheme = "kernelpro://";
  const Error unknown =
      Fail(ErrorCode::kNotFound, fmt::format("there is no resource {}", Printable(uri, 200)));
  const std::size_t question = uri.find('?');
  if (!uri.starts_with(kScheme) || question == std::string::npos) {
    return unknown;
  }
  ResourceAddress address;
  address.kind = uri.substr(kScheme.size(), question - kScheme.size());
  for (const std::string_view part : Split(std::string_view(uri).substr(question + 1), '&')) {
    if (part.starts_with("run=")) {
      address.run = DecodeUri(part.substr(4));
    } else if (long long node = 0;
               part.starts_with("node=") && ParseInteger(part.substr(5), &node)) {
      address.node = node;
    } else {
      return unknown;
    }
  }
  return address.run.empty() ? Result<ResourceAddress>(unknown) : address;
}

Result<report::AgentAnswer> ReadResource(AgentDesk& desk, const ResourceAddress& address) {
  if (address.kind == "status") {
    return desk.Status(address.run);
  }
  if (address.kind == "next") {
    return desk.Next(address.run, address.node);
  }
  if (address.kind == "diagnosis") {
    return desk.Diagnose(address.run, address.node);
  }
  if (address.kind == "source") {
    return desk.Source(address.run, address.node);
  }
  return Fail(ErrorCode::kNotFound,
              fmt::format("there is no resource of kind {}", Printable(address.kind, 80)));
}

}  // namespace kernelpro::app
