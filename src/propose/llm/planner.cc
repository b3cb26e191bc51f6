// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/text.h"
#include "propose/llm/finding_tool.h"
#include "propose/llm/neutralise.h"
#include "propose/llm/performance_text.h"
#include "propose/llm/situation.h"

namespace kernelpro::agents {
namespace {

/// Plans shall vary with what was tried, not with chance; a little of it gets a search out of a
/// rut. Our choice, unmeasured.
constexpr double kTemperature = 0.4;
constexpr std::size_t kPlanWords = 120, kWhyWords = 40;
/// Calls of get_findings when the planner chooses the tools itself.
constexpr std::uint32_t kReactiveCalls = 6;
constexpr std::size_t kLongestName = 48;

/// `ids`: what `finding` may be besides ""; none: any string.
std::string Schema(const std::vector<std::string>* ids) {
  nlohmann::ordered_json finding = {{"type", "string"}};
  if (ids != nullptr) {
    finding["enum"] = nlohmann::ordered_json::array({""});
    for (const std::string& id : *ids) {
      finding["enum"].push_back(id);
    }
  }
  const nlohmann::ordered_json text = {{"type", "string"}};
  const nlohmann::ordered_json schema = {
      {"type", "object"},
      {"properties",
       {{"technique", text},
        {"finding", finding},
        {"plan", text},
        {"why", text},
        {"expected_gain", {{"type", "number"}}},
        {"differs", text}}},
      {"required", {"technique", "finding", "plan", "why", "expected_gain", "differs"}},
      {"additionalProperties", false}};
  // Ids of users' own tools may be no UTF-8; that is no reason to throw.
  return schema.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

bool IsTechnique(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name[0] >= 'a' && name[0] <= 'z' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

Attempt<Plan> Unusable(std::string why) {
  return {.value = std::nullopt, .why = std::move(why)};
}

std::string Text(const nlohmann::json& object, const char* key) {
  const auto value = object.find(key);
  return value != object.end() && value->is_string()
             ? std::string(Trim(value->get_ref<const std::string&>()))
             : std::string();
}

/// "vector_loads(tile)" and "vector_loads" are the same technique.
std::string_view TechniqueOf(std::string_view action) {
  return action.substr(0, action.find('('));
}

/// The same technique for the same finding, which did not work.
const NodeBrief* FailedBefore(const Plan& plan, const ProposalRequest& request) {
  const auto found = std::ranges::find_if(request.tried, [&](const NodeBrief& child) {
    return TechniqueOf(child.action) == plan.technique && child.finding == plan.finding &&
           Failed(child, request.node);
  });
  return found == request.tried.end() ? nullptr : &*found;
}

Attempt<Plan> ReadPlan(const std::string& answer, const std::set<std::string>& ids,
                       const ProposalRequest& request) {
  const nlohmann::json object = nlohmann::json::parse(JsonText(answer), nullptr, false);
  if (!object.is_object()) {
    return Unusable("the answer is not a JSON object");
  }
  Plan plan;
  plan.technique = Text(object, "technique");
  plan.finding = Text(object, "finding");
  plan.plan = FirstWords(Neutralise(Text(object, "plan"), 4000), kPlanWords);
  plan.why = FirstWords(NeutraliseLine(Text(object, "why"), 1000), kWhyWords);
  plan.differs = NeutraliseLine(Text(object, "differs"), 400);
  const auto gain = object.find("expected_gain");
  if (!IsTechnique(plan.technique)) {
    return Unusable(fmt::format("technique is no name in snake_case: \"{}\"",
                                NeutraliseLine(plan.technique, 60)));
  }
  if (!plan.finding.empty() && !ids.contains(plan.finding)) {
    return Unusable(
        fmt::format("finding {} was not among those shown", NeutraliseLine(plan.finding, 60)));
  }
  if (plan.plan.empty()) {
    return Unusable("the plan is empty");
  }
  if (gain == object.end() || !gain->is_number()) {
    return Unusable("expected_gain is no number");
  }
  plan.expected_gain = gain->get<double>();
  if (!std::isfinite(plan.expected_gain)) {
    return Unusable("expected_gain is no number");
  }
  plan.expected_gain = std::clamp(plan.expected_gain, 1.0, 100.0);
  if (const NodeBrief* before = FailedBefore(plan, request);
      before != nullptr && plan.differs.empty()) {
    return Unusable(
        fmt::format("{} failed from here before ({}), and the plan does not say what "
                    "it does differently",
                    plan.technique, before->verdict));
  }
  if (!plan.differs.empty()) {
    plan.plan += "\nDifferent from the attempt that failed: " + plan.differs;
  }
  return {.value = std::move(plan), .why = {}};
}

}  // namespace

Result<Attempt<Plan>> Planner::MakePlan(const Turn& turn, const std::string& memory) const {
  const ProposalRequest& request = turn.request;
  const bool tools = setting_.options.feedback == FeedbackMode::kTools;
  const bool reactive = tools && setting_.options.orchestration == Orchestration::kReactive;
  const bool told = tools && !reactive;
  PromptValues values = {{"times", TimesText(request)},
                         {"source", SourceBlock(request)},
                         {"path", PathBlock(request, tools)},
                         {"tried", TriedBlock(request, tools)},
                         {"memory", memory}};
  std::vector<std::string> listed;
  if (reactive) {
    values["tools"] = ToolList();
  } else {
    values["performance"] = PerformanceText(setting_.options.feedback, setting_.prompts, request);
  }
  if (told) {
    listed = ShownFindings(request.diagnosis);
    values["findings"] = FindingList(request.diagnosis);
  }
  llm::ChatRequest question = MakeRequest(
      setting_, turn, "planner", setting_.prompts.Render("planner.md", values), kTemperature);
  question.schema_name = "plan";
  question.schema = Schema(reactive ? nullptr : &listed);
  question.max_tokens = std::min(question.max_tokens, kShortAnswerTokens);
  std::set<std::string> shown(listed.begin(), listed.end());
  Toolbox toolbox;
  if (reactive) {
    toolbox.tools.push_back(MakeFindingTool(request.diagnosis, shown));
    toolbox.most_calls = kReactiveCalls;
  }
  KP_ASSIGN_OR_RETURN(const llm::ChatResponse response,
                      AskWithTools(setting_, turn, std::move(question), toolbox));
  if (std::string why = WhyUnusable(response); !why.empty()) {
    return Unusable(std::move(why));
  }
  if (!response.calls.empty()) {
    return Unusable("it asked for tools to the end and gave no plan");
  }
  return ReadPlan(response.text, shown, request);
}

}  // namespace kernelpro::agents
