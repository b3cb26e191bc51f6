// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/performance_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/diagnose.h"
#include "propose/llm/neutralise.h"
#include "propose/llm/situation.h"

namespace kernelpro::agents {
namespace {

/// As many as the feedback names (diagnose/feedback.cc).
constexpr std::size_t kMostFindings = 3;
constexpr std::size_t kTableLimit = 24000;

std::string RawTable(const Profile& profile) {
  std::string text;
  for (const KernelProfile& kernel : profile.kernels) {
    for (const auto& [name, metric] : kernel.metrics) {
      text += profile.kernels.size() > 1 ? NeutraliseLine(kernel.name, 80) + " " : std::string();
      text += fmt::format("{} {:.6g} {}\n", name, metric.value, metric.unit);
    }
  }
  return text.empty() ? text : DataBlock("counters", text, kTableLimit);
}

std::string Fields(const Finding& f) {
  std::string where = f.line == 0 ? std::string("not known") : fmt::format("line {}", f.line);
  return fmt::format(
      "{} ({})\nKERNEL {}\nWHERE {}\nSEEN {}\nWHY {}\nDO {}\nCHECK {}\nAVOID {}\nBOUND {}", f.title,
      f.id, f.kernel, where, f.seen, f.why, f.action, f.check, f.avoid,
      f.bound > 0 && f.bound < 1 ? fmt::format("at most {:.2f} times as fast", 1 / (1 - f.bound))
                                 : std::string("not known"));
}

}  // namespace

std::string PerformanceText(FeedbackMode mode, const Prompts& prompts,
                            const ProposalRequest& request) {
  switch (mode) {
    case FeedbackMode::kTools:
      return DataBlock("findings of the expert tools",
                       request.feedback.empty() ? FeedbackText(request.diagnosis, request.profile)
                                                : request.feedback,
                       kFeedbackLimit);
    case FeedbackMode::kRaw:
      return RawTable(request.profile);
    case FeedbackMode::kNone:
      return {};
    case FeedbackMode::kPlacebo:
      return DataBlock("advice", prompts.Render("placebo.md", {}), kFeedbackLimit);
  }
  return {};
}

std::vector<std::string> ShownFindings(const Diagnosis& diagnosis) {
  std::vector<std::string> ids;
  for (const Finding& finding : diagnosis.findings) {
    if (ids.size() < kMostFindings && std::ranges::find(ids, finding.id) == ids.end()) {
      ids.push_back(finding.id);
    }
  }
  return ids;
}

std::string FindingList(const Diagnosis& diagnosis) {
  std::string text;
  for (const std::string& id : ShownFindings(diagnosis)) {
    const auto found = std::ranges::find(diagnosis.findings, id, &Finding::id);
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", id, found->title);
  }
  return text.empty() ? text : DataBlock("ids", text, kFeedbackLimit);
}

std::string ToolList() {
  std::string text;
  for (const auto& tool : BuiltInTools()) {
    text += fmt::format("{}- {}: {}", text.empty() ? "" : "\n", tool->id(), tool->title());
  }
  return text;
}

Result<std::string> FindingText(const Diagnosis& diagnosis, std::string_view id) {
  for (const Finding& finding : diagnosis.findings) {
    if (finding.id == id) {
      return Fields(finding);
    }
  }
  for (const Suppressed& suppressed : diagnosis.suppressed) {
    if (suppressed.id == id) {
      return fmt::format("{}: explained by {}: {}", id, suppressed.by, suppressed.why);
    }
  }
  for (const NotRun& tool : diagnosis.not_run) {
    if (tool.id == id) {
      return fmt::format("{}: could not look, these are missing: {}", id,
                         fmt::join(tool.missing, ", "));
    }
  }
  const bool known =
      std::ranges::any_of(BuiltInTools(), [id](const auto& tool) { return tool->id() == id; });
  if (!known) {
    return Fail(ErrorCode::kNotFound, fmt::format("there is no tool {}", NeutraliseLine(id, 60)));
  }
  return fmt::format("{}: found nothing", id);
}

}  // namespace kernelpro::agents
