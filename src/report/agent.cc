// SPDX-License-Identifier: Apache-2.0
#include "report/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "profile/profile_json.h"
#include "report/figures.h"
#include "report/format.h"
#include "report/text.h"
#include "search/memory.h"
#include "search/record.h"

namespace kernelpro::report {
namespace {

using Json = nlohmann::ordered_json;
using store::NodeRecord;

constexpr std::size_t kMemoryShown = 20;
constexpr std::size_t kReasonShown = 4000;

/// Compilers and candidates write it; a model reads it.
std::string Reason(const NodeRecord& node) {
  return Printable(node.verdict_reason, kReasonShown);
}

double TimeOf(const NodeRecord* node) {
  return node == nullptr || !node->done ? 0 : node->time_us;
}

Json Ratio(double before, double after) {
  return before > 0 && after > 0 ? Json(before / after) : Json(nullptr);
}

Json Findings(const NodeRecord& node) {
  const Json diagnosis = Json::parse(node.diagnosis, nullptr, false);
  return diagnosis.is_object() && diagnosis.contains("findings") ? diagnosis["findings"]
                                                                 : Json::array();
}

/// The ids that --finding wants; the feedback itself speaks in titles.
std::string FindingIds(const NodeRecord& node) {
  std::string text;
  for (const Json& finding : Findings(node)) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", finding.value("id", ""),
                        finding.value("title", ""));
  }
  return text.empty() ? "" : "findings by id: " + text + '\n';
}

Result<Profile> ProfileOf(const NodeRecord* node) {
  return ParseProfileJson(node == nullptr ? "" : node->profile, "profile");
}

std::string Figures(const NodeRecord& node, const search::RunState& state) {
  const Result<Profile> profile = ProfileOf(&node);
  const Result<Profile> before = ProfileOf(state.Find(node.parent));
  return profile ? FiguresText(*profile, before ? &*before : nullptr) : "";
}

/// What it is judged by, but for what is hidden.
std::string TaskText(const Task& task, const std::string& gpu) {
  std::string text = fmt::format("task       {}\n", task.description);
  for (const auto& [kind, name] : {std::pair(Workload::Kind::kTimed, "timed on"),
                                   std::pair(Workload::Kind::kChecked, "checked on")}) {
    std::string shapes;
    for (const Workload& w : task.workloads) {
      if (w.kind != kind) {
        continue;
      }
      std::string axes;
      for (const auto& [axis, value] : w.axes) {
        axes += fmt::format("{}{}={}", axes.empty() ? "" : " ", axis, value);
      }
      shapes += fmt::format("{}{}", shapes.empty() ? "" : "; ", axes);
    }
    text += fmt::format("{:<11}{}{}\n", name, shapes,
                        kind == Workload::Kind::kChecked ? "; and on shapes that stay hidden" : "");
  }
  return text + fmt::format(
                    "tolerance  absolute {:g}, relative {:g}; lowest precision {}; libraries: {}\n"
                    "device     {}\n",
                    task.tolerance.absolute, task.tolerance.relative, task.policy.lowest_precision,
                    task.policy.libraries.empty()
                        ? "none"
                        : fmt::format("{}", fmt::join(task.policy.libraries, ", ")),
                    gpu);
}

std::string LessonLine(const Lesson& lesson) {
  return fmt::format("  [{}] {}\n", Name(lesson.kind), lesson.text);
}

Json LessonsJson(const std::vector<Lesson>& lessons) {
  Json json = Json::array();
  for (const Lesson& lesson : lessons) {
    json.push_back({{"kind", Name(lesson.kind)}, {"text", lesson.text}, {"node", lesson.node}});
  }
  return json;
}

const NodeRecord& BestOf(const search::RunState& state) {
  const auto best = state.tree().Best();
  return best ? *state.Find(*best) : state.nodes().front();
}

std::string HowToSubmit(const std::string& run, store::NodeId parent) {
  return fmt::format(
      "Write the whole kernel anew (never a diff) to a file, change one thing, and submit it:\n"
      "  kernelpro agent submit {} FILE.cu --parent {} --action SHORT_ID --finding ID --reason "
      "\"one sentence\"\n",
      run, parent);
}

/// The contract of a candidate: docs/architecture.md, "Words and owners".
constexpr const char* kContract =
    "A kernel is one CUDA C++ file that includes \"kernelpro_task.h\" (below) and defines\n"
    "  extern \"C\" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream)\n"
    "which launches its work on that stream and returns. It must be right for any extent of the "
    "axes.\n";

}  // namespace

Json NodeJson(const NodeRecord& node, const search::RunState& state) {
  const NodeRecord& root = state.nodes().front();
  Json json = {
      {"node", node.id},       {"parent", node.parent},        {"action", node.action},
      {"reason", node.reason}, {"finding", node.finding},      {"origin", node.origin},
      {"verdict", nullptr},    {"verdict_reason", ""},         {"time_us", nullptr},
      {"provenance", nullptr}, {"speedup_over_seed", nullptr}, {"speedup_over_parent", nullptr}};
  if (node.done) {
    json["verdict"] = node.verdict;
    json["verdict_reason"] = Reason(node);
  }
  if (TimeOf(&node) > 0) {
    json["time_us"] = node.time_us;
    json["provenance"] = node.provenance;
    json["speedup_over_seed"] = Ratio(TimeOf(&root), node.time_us);
    json["speedup_over_parent"] = Ratio(TimeOf(state.Find(node.parent)), node.time_us);
  }
  return json;
}

std::string NodeLine(const NodeRecord& node, const search::RunState& state) {
  std::string line = fmt::format("node {} ({})", node.id, node.action);
  if (node.parent != 0) {
    line += fmt::format(" of node {}", node.parent);
  }
  if (!node.done) {
    return line + ": waits for a result";
  }
  line += ": " + node.verdict;
  if (node.time_us <= 0) {
    const std::string reason = Reason(node);
    return line + (reason.empty() ? "" : ": " + reason.substr(0, reason.find('\n')));
  }
  line += fmt::format(", {} {}", FormatTime(node.time_us), node.provenance);
  const double seed = TimeOf(&state.nodes().front());
  if (node.parent != 0 && seed > 0) {
    line += fmt::format(", {:.2f}x over the seed", seed / node.time_us);
  }
  if (const double parent = TimeOf(state.Find(node.parent)); parent > 0 && node.parent != 1) {
    line += fmt::format(", {:.2f}x over node {}", parent / node.time_us, node.parent);
  }
  return line;
}

namespace {

/// "checked 13x131, 3x1024 and hidden shapes: ..." from the record of an evaluation that is ok.
std::string CheckedLine(const NodeRecord& node) {
  const Json evaluation = Json::parse(node.evaluation, nullptr, false);
  if (!evaluation.is_object() || !evaluation.contains("checks")) {
    return "";
  }
  std::string shapes;
  double worst = 0;
  for (const Json& check : evaluation["checks"]) {
    shapes += (shapes.empty() ? "" : ", ") + check.value("workload", std::string());
    for (const Json& output : check["outputs"]) {
      if (output.contains("worst_ratio") && output["worst_ratio"].is_number()) {
        worst = std::max(worst, output["worst_ratio"].get<double>());
      }
    }
  }
  return shapes.empty()
             ? ""
             : fmt::format("checked {}: worst error {:.2g} of what is allowed\n", shapes, worst);
}

/// A node of the tree and all below it, indented by its depth.
void AddTree(const search::RunState& state, store::NodeId parent, std::size_t depth,
             const std::set<store::NodeId>& winning, std::string* text) {
  for (const NodeRecord& node : state.nodes()) {
    if (node.parent == parent) {
      *text += fmt::format("{} {:{}}{}\n", winning.contains(node.id) ? '*' : ' ', "", 2 * depth,
                           NodeLine(node, state));
      AddTree(state, node.id, depth + 1, winning, text);
    }
  }
}

std::string TreeText(const search::RunState& state) {
  std::set<store::NodeId> winning;
  for (const NodeRecord& node : PathTo(state.nodes(), BestOf(state).id)) {
    winning.insert(node.id);
  }
  std::string text;
  AddTree(state, 0, 0, winning, &text);
  return text;
}

}  // namespace

AgentAnswer NextAnswer(const search::AgentRun& run, const search::NextParent& next,
                       const std::vector<Lesson>& memory, const Task& task, const std::string& gpu,
                       const std::string& shown_run) {
  const search::RunState& state = run.state();
  const NodeRecord& node = *state.Find(next.node);
  const search::RunState::Surroundings around = state.Around(next.node);
  const std::vector<Lesson> lessons = search::SearchMemory(memory, "", kMemoryShown);
  AgentAnswer answer;
  Json tried = Json::array();
  for (const NodeBrief& child : around.tried) {
    tried.push_back(NodeJson(*state.Find(child.node), state));
  }
  const Json json = {{"run", shown_run},
                     {"parent", NodeJson(node, state)},
                     {"repair", next.repair},
                     {"waiting", next.waiting},
                     {"source", node.source},
                     {"flags", node.flags},
                     {"header", CandidateHeader(task)},
                     {"task", task.description},
                     {"feedback", next.repair ? Reason(node) : node.feedback},
                     {"findings", next.repair ? Json::array() : Findings(node)},
                     {"tried", std::move(tried)},
                     {"memory", LessonsJson(lessons)},
                     {"best", NodeJson(BestOf(state), state)}};
  answer.json = search::Dump(json);
  std::string& text = answer.text;
  text = fmt::format("{}parent     {}\nbest       {}\n", TaskText(task, gpu), NodeLine(node, state),
                     NodeLine(BestOf(state), state));
  if (next.waiting > 0) {
    text += fmt::format("waiting    {} submitted kernels have no result yet\n", next.waiting);
  }
  // What is wrong and what is slow are never said in one breath.
  text += next.repair
              ? fmt::format("\nThis kernel is wrong. Mend it, and change nothing else:\n{}\n",
                            Reason(node))
              : fmt::format("\n{}{}{}", node.feedback, Figures(node, state), FindingIds(node));
  if (!around.tried.empty()) {
    text += "tried from here\n";
    for (const NodeBrief& child : around.tried) {
      text += "  " + NodeLine(*state.Find(child.node), state) + '\n';
    }
  }
  if (!lessons.empty()) {
    text += "learnt in this run\n";
    for (const Lesson& lesson : lessons) {
      text += LessonLine(lesson);
    }
  }
  text +=
      fmt::format("\n{}{}\n--- source of node {}\n{}\n--- kernelpro_task.h\n{}", kContract,
                  HowToSubmit(shown_run, next.node), next.node, node.source, CandidateHeader(task));
  return answer;
}

AgentAnswer SubmitAnswer(const search::AgentRun& run, store::NodeId id,
                         const std::string& shown_run) {
  const search::RunState& state = run.state();
  const NodeRecord& node = *state.Find(id);
  AgentAnswer answer;
  Json json = NodeJson(node, state);
  json["run"] = shown_run;
  json["feedback"] = node.feedback;
  json["findings"] = Findings(node);
  json["best"] = NodeJson(BestOf(state), state);
  answer.json = search::Dump(json);
  answer.text = NodeLine(node, state) + '\n';
  if (!node.done) {
    answer.text += fmt::format(
        "It is judged by: kernelpro agent evaluate {} --pending, on a machine that has the run's "
        "device\n",
        shown_run);
    return answer;
  }
  if (node.verdict == "unsupported") {
    answer.text += fmt::format(
        "\n{}\nThe emulator cannot judge it, so it may well be right. A GPU can: kernelpro agent "
        "evaluate {} --device cuda\n",
        Reason(node), shown_run);
  } else if (node.verdict != "ok") {
    // The line above holds the first line of the reason, and all of it when it has no other.
    const std::string reason = Reason(node);
    answer.text += reason.find('\n') == std::string::npos ? "" : fmt::format("\n{}\n", reason);
  } else {
    answer.text +=
        CheckedLine(node) + fmt::format("best so far: {}\n\n{}{}{}", NodeLine(BestOf(state), state),
                                        node.feedback, Figures(node, state), FindingIds(node));
  }
  answer.text += fmt::format("\nnext: kernelpro agent next {}\n", shown_run);
  return answer;
}

std::string MeasurementsText(const search::RunState& state,
                             const std::vector<store::MeasurementRecord>& measurements) {
  std::string text;
  std::string device;
  double seed = 0;
  for (const store::MeasurementRecord& m : measurements) {
    if (m.device != device) {
      device = m.device;
      seed = m.node == store::kRoot ? m.time_us : 0;
      text += fmt::format("on {} ({})\n", m.device, m.gpu);
    }
    const NodeRecord* const node = state.Find(m.node);
    text += fmt::format("  node {:<4} {:<32} ", m.node, node == nullptr ? "" : node->action);
    if (m.time_us <= 0) {
      text += fmt::format("{}: {}\n", m.verdict, Printable(m.verdict_reason, 200));
      continue;
    }
    text += fmt::format("{:>9} {}", FormatTime(m.time_us), m.provenance);
    text += seed > 0 ? fmt::format("  {:.2f}x of the seed there\n", seed / m.time_us) : "\n";
  }
  return text;
}

AgentAnswer StatusAnswer(const search::RunState& state,
                         const std::vector<store::MeasurementRecord>& measurements,
                         const std::string& task, const std::string& device,
                         const std::string& shown_run) {
  Json nodes = Json::array();
  std::size_t waiting = 0;
  for (const NodeRecord& node : state.nodes()) {
    nodes.push_back(NodeJson(node, state));
    waiting += node.done ? 0 : 1;
  }
  Json verdicts = Json::object();
  for (const auto& [verdict, count] : state.Verdicts()) {
    verdicts[verdict] = count;
  }
  Json elsewhere = Json::array();
  for (const store::MeasurementRecord& m : measurements) {
    elsewhere.push_back({{"node", m.node},
                         {"device", m.device},
                         {"gpu", m.gpu},
                         {"verdict", m.verdict},
                         {"verdict_reason", Printable(m.verdict_reason, kReasonShown)},
                         {"time_us", m.time_us > 0 ? Json(m.time_us) : Json(nullptr)},
                         {"provenance", m.provenance}});
  }
  AgentAnswer answer;
  const Json json = {{"run", shown_run},
                     {"task", task},
                     {"device", device},
                     {"evaluated", state.Evaluated()},
                     {"waiting", waiting},
                     {"verdicts", std::move(verdicts)},
                     {"best", NodeJson(BestOf(state), state)},
                     {"nodes", std::move(nodes)},
                     {"measurements", std::move(elsewhere)}};
  answer.json = search::Dump(json);
  answer.text =
      fmt::format("{} on {}: {} evaluated, {} waiting\nbest {}\n{}", task, device,
                  state.Evaluated(), waiting, NodeLine(BestOf(state), state), TreeText(state));
  answer.text += "(* leads to the best)\n";
  if (!measurements.empty()) {
    answer.text += "\njudged elsewhere (never in one ranking with the above)\n" +
                   MeasurementsText(state, measurements);
  }
  return answer;
}

AgentAnswer MemoryAnswer(const std::vector<Lesson>& lessons) {
  AgentAnswer answer;
  const Json json = {{"lessons", LessonsJson(lessons)}};
  answer.json = search::Dump(json);
  for (const Lesson& lesson : lessons) {
    answer.text += LessonLine(lesson);
  }
  if (lessons.empty()) {
    answer.text = "Nothing in the memory of this run matches.\n";
  }
  return answer;
}

}  // namespace kernelpro::report
