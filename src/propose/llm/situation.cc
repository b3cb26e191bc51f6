// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/situation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "propose/llm/neutralise.h"

namespace kernelpro::agents {
namespace {

constexpr std::size_t kMostWins = 5;
/// Attempts from one parent that a prompt shows: the newest. Progressive widening stops before.
constexpr std::size_t kMostTried = 24;

std::string Join(const std::vector<std::string>& words) {
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

std::string ShapesText(const Task& task) {
  std::string text;
  for (const Workload& workload : task.workloads) {
    if (workload.kind == Workload::Kind::kHidden) {
      continue;
    }
    std::vector<std::string> axes;
    for (const std::string& axis : task.axes) {
      if (const auto value = workload.axes.find(axis); value != workload.axes.end()) {
        axes.push_back(fmt::format("{} = {}", axis, value->second));
      }
    }
    text += fmt::format("  - {}: {}\n",
                        workload.kind == Workload::Kind::kTimed
                            ? fmt::format("timed (weight {})", workload.weight)
                            : std::string("checked"),
                        fmt::join(axes, ", "));
  }
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

std::string ToleranceText(const Task& task) {
  return fmt::format(
      "|got - want| <= {} * scale + {} * |want|, where scale is the root mean square of the output "
      "unless the task says otherwise, and want is computed in double precision",
      task.tolerance.absolute, task.tolerance.relative);
}

std::string Duration(double us) {
  return us > 0 ? fmt::format("{:.4g} us", us) : std::string("unknown");
}

/// Kernels that the machine, not the candidate, failed say nothing.
bool IsJudged(const NodeBrief& node) {
  return !node.verdict.empty() && node.verdict != "infrastructure_error";
}

std::vector<const NodeBrief*> Newest(const std::vector<NodeBrief>& nodes) {
  std::vector<const NodeBrief*> judged;
  for (const NodeBrief& node : nodes) {
    if (IsJudged(node)) {
      judged.push_back(&node);
    }
  }
  if (judged.size() > kMostTried) {
    judged.erase(judged.begin(), judged.end() - static_cast<std::ptrdiff_t>(kMostTried));
  }
  return judged;
}

std::string Action(const NodeBrief& node, bool with_finding) {
  std::string text = NeutraliseLine(node.action, 100);
  if (with_finding && !node.finding.empty()) {
    text += fmt::format(" for {}", NeutraliseLine(node.finding, 60));
  }
  return text;
}

std::string Normalised(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '.') {
      continue;
    }
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace

std::string SystemText(const Prompts& prompts, const ProposalRequest& request) {
  const Task& task = request.task;
  const std::string header = CandidateHeader(task);
  const std::string task_text = prompts.Render(
      "task.md",
      {{"name", NeutraliseLine(task.name, 100)},
       {"description", Neutralise(task.description, 4000)},
       {"gpu", request.gpu.empty() ? std::string("not named") : NeutraliseLine(request.gpu, 100)},
       {"provenance", request.provenance.empty() ? std::string("in microseconds")
                                                 : NeutraliseLine(request.provenance, 40)},
       {"precision", task.policy.lowest_precision},
       {"libraries", Join(task.policy.libraries)},
       {"tolerance", ToleranceText(task)},
       {"shapes", ShapesText(task)},
       {"header", header}});
  return prompts.Render("system.md", {{"task", task_text}});
}

std::string TimesText(const ProposalRequest& request) {
  return fmt::format(
      "The kernel below takes {}; the first kernel takes {}, the fastest one so far {}.",
      Duration(request.node.time_us), Duration(request.seed_us), Duration(request.best.time_us));
}

std::string SourceBlock(const ProposalRequest& request) {
  return DataBlock("source of the kernel", request.parent.source, kSourceLimit);
}

std::string PathBlock(const ProposalRequest& request, bool with_findings) {
  if (request.path.size() < 2) {
    return {};
  }
  std::string text;
  for (const NodeBrief& node : request.path) {
    text += node.verdict == kOkVerdict
                ? fmt::format("{}: {}\n", Action(node, with_findings), Duration(node.time_us))
                : fmt::format("{}: {}, repaired next\n", Action(node, with_findings),
                              NeutraliseLine(node.verdict, 40));
  }
  return DataBlock("steps", text, kFeedbackLimit);
}

bool Failed(const NodeBrief& child, const NodeBrief& parent) {
  return IsJudged(child) && (child.verdict != kOkVerdict || child.time_us >= parent.time_us);
}

std::string TriedBlock(const ProposalRequest& request, bool with_findings) {
  std::string text;
  for (const NodeBrief* child : Newest(request.tried)) {
    text += fmt::format("{}: ", Action(*child, with_findings));
    if (child->verdict != kOkVerdict) {
      text += fmt::format("failed ({})\n", NeutraliseLine(child->verdict, 40));
    } else if (request.node.time_us > 0 && child->time_us > 0) {
      text += fmt::format("{}, {:.3g} times as fast\n", Duration(child->time_us),
                          request.node.time_us / child->time_us);
    } else {
      text += Duration(child->time_us) + "\n";
    }
  }
  return text.empty() ? text : DataBlock("attempts", text, kFeedbackLimit);
}

std::string RepairsBlock(const ProposalRequest& request) {
  std::string text;
  for (const NodeBrief* child : Newest(request.tried)) {
    if (child->verdict != kOkVerdict) {
      text += fmt::format("{}: {}\n", NeutraliseLine(child->verdict, 40),
                          NeutraliseLine(child->verdict_reason, 600));
    }
  }
  return text.empty() ? text : DataBlock("failed repairs", text, kReasonLimit);
}

std::string MemoryBlock(const std::vector<Lesson>& memory, const std::vector<Lesson::Kind>& kinds) {
  std::set<std::string> seen;
  std::vector<std::string> lines;
  std::size_t wins = 0;
  for (auto lesson = memory.rbegin(); lesson != memory.rend() && lines.size() < kMemoryLines;
       ++lesson) {
    if (std::ranges::find(kinds, lesson->kind) == kinds.end()) {
      continue;
    }
    const std::string text = NeutraliseLine(lesson->text, 320);
    if (text.empty() || !seen.insert(Normalised(text)).second) {
      continue;
    }
    if (lesson->kind == Lesson::Kind::kWin && ++wins > kMostWins) {
      continue;
    }
    lines.push_back(fmt::format("{}: {}", Name(lesson->kind), text));
  }
  std::ranges::reverse(lines);
  return lines.empty() ? std::string()
                       : DataBlock("lessons", fmt::format("{}", fmt::join(lines, "\n")), 16000);
}

}  // namespace kernelpro::agents
