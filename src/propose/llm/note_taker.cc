// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/note_taker.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "propose/llm/neutralise.h"
#include "propose/llm/situation.h"

namespace kernelpro::agents {
namespace {

constexpr std::size_t kMostNews = 4;
constexpr std::size_t kMostLessons = 2;
constexpr std::size_t kLessonWords = 50;
constexpr double kTemperature = 0;

std::string Describe(const NodeBrief& child, const ProposalRequest& request) {
  const NodeBrief& parent = request.node;
  std::string text = fmt::format("child {}: {}\n", child.node, NeutraliseLine(child.action, 100));
  if (!child.reason.empty()) {
    text += fmt::format("intention: {}\n", NeutraliseLine(child.reason, 400));
  }
  text += fmt::format("verdict: {}\n", NeutraliseLine(child.verdict, 40));
  if (child.verdict != kOkVerdict) {
    text += fmt::format("reason: {}\n", Neutralise(child.verdict_reason, 1500));
  } else if (parent.verdict == kOkVerdict && parent.time_us > 0 && child.time_us > 0) {
    text += fmt::format("time: {:.4g} us; its parent: {:.4g} us ({:.3g} times as fast)\n",
                        child.time_us, parent.time_us, parent.time_us / child.time_us);
  }
  return text;
}

std::string Schema(const std::vector<NodeBrief>& news) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const NodeBrief& child : news) {
    nodes.push_back(child.node);
  }
  const nlohmann::ordered_json lesson = {
      {"type", "object"},
      {"properties",
       {{"kind", {{"type", "string"}, {"enum", {"win", "dead_end", "error"}}}},
        {"text", {{"type", "string"}}},
        {"node", {{"type", "integer"}, {"enum", nodes}}}}},
      {"required", {"kind", "text", "node"}},
      {"additionalProperties", false}};
  const nlohmann::ordered_json schema = {
      {"type", "object"},
      {"properties", {{"lessons", {{"type", "array"}, {"items", lesson}}}}},
      {"required", {"lessons"}},
      {"additionalProperties", false}};
  return schema.dump();
}

Attempt<std::vector<Lesson>> Unusable(std::string why) {
  return {.value = std::nullopt, .why = std::move(why)};
}

/// Why a lesson cannot be true; empty: it can.
std::string Contradiction(Lesson::Kind kind, const NodeBrief& child, const NodeBrief& parent) {
  const bool right = child.verdict == kOkVerdict;
  const bool repair = parent.verdict != kOkVerdict;
  if (kind == Lesson::Kind::kError && right) {
    return fmt::format("it calls child {} an error, and that is correct", child.node);
  }
  if (kind != Lesson::Kind::kError && !right) {
    return fmt::format("it speaks of the speed of child {}, which is wrong ({})", child.node,
                       child.verdict);
  }
  if (kind == Lesson::Kind::kWin && !repair && Failed(child, parent)) {
    return fmt::format("it calls child {} a win, and that is no faster", child.node);
  }
  if (kind == Lesson::Kind::kDeadEnd && (repair || !Failed(child, parent))) {
    return fmt::format("it calls child {} a dead end, and that is better than its parent",
                       child.node);
  }
  return {};
}

Attempt<std::vector<Lesson>> ReadLessons(const std::string& answer,
                                         const std::vector<NodeBrief>& news,
                                         const NodeBrief& parent) {
  const nlohmann::json object = nlohmann::json::parse(JsonText(answer), nullptr, false);
  const auto list = object.is_object() ? object.find("lessons") : object.end();
  if (!object.is_object() || list == object.end() || !list->is_array()) {
    return Unusable("the answer is not a JSON object with a list of lessons");
  }
  if (list->size() > kMostLessons) {
    return Unusable(fmt::format("{} lessons instead of at most {}", list->size(), kMostLessons));
  }
  std::vector<Lesson> lessons;
  for (const nlohmann::json& item : *list) {
    if (!item.is_object() || !item.contains("kind") || !item["kind"].is_string() ||
        !item.contains("text") || !item["text"].is_string() || !item.contains("node") ||
        !item["node"].is_number_integer()) {
      return Unusable("a lesson without kind, text or node");
    }
    Lesson lesson;
    const auto& kind = item["kind"].get_ref<const std::string&>();
    lesson.kind = ParseLessonKind(kind);
    lesson.text =
        FirstWords(NeutraliseLine(item["text"].get_ref<const std::string&>(), 320), kLessonWords);
    lesson.node = item["node"].get<std::int64_t>();
    const auto child = std::ranges::find(news, lesson.node, &NodeBrief::node);
    if (lesson.kind == Lesson::Kind::kFact || lesson.text.empty() || child == news.end()) {
      return Unusable("a lesson of no known kind, without text, or about another kernel");
    }
    if (std::string why = Contradiction(lesson.kind, *child, parent); !why.empty()) {
      return Unusable(std::move(why));
    }
    lessons.push_back(std::move(lesson));
  }
  return {.value = std::move(lessons), .why = {}};
}

}  // namespace

std::vector<NodeBrief> NoteTaker::News(const ProposalRequest& request) {
  std::int64_t known = 0;
  for (const NodeBrief& child : request.tried) {
    if (std::ranges::find(request.memory, child.node, &Lesson::node) != request.memory.end()) {
      known = std::max(known, child.node);
    }
  }
  std::vector<NodeBrief> news;
  for (const NodeBrief& child : request.tried) {
    if (child.node > known && !child.verdict.empty() && child.verdict != "infrastructure_error") {
      news.push_back(child);
    }
  }
  if (news.size() > kMostNews) {
    news.erase(news.begin(), news.end() - static_cast<std::ptrdiff_t>(kMostNews));
  }
  return news;
}

Result<Attempt<std::vector<Lesson>>> NoteTaker::TakeNotes(const Turn& turn,
                                                          const std::string& memory) const {
  const std::vector<NodeBrief> news = News(turn.request);
  std::string text;
  for (const NodeBrief& child : news) {
    text += Describe(child, turn.request);
  }
  llm::ChatRequest question = MakeRequest(
      setting_, turn, "note_taker",
      setting_.prompts.Render(
          "note_taker.md",
          {{"children", DataBlock("children", text, kFeedbackLimit)}, {"memory", memory}}),
      kTemperature);
  question.schema_name = "lessons";
  question.schema = Schema(news);
  question.max_tokens = std::min(question.max_tokens, kShortAnswerTokens);
  KP_ASSIGN_OR_RETURN(const llm::ChatResponse response, Ask(setting_, turn, question));
  if (std::string why = WhyUnusable(response); !why.empty()) {
    return Unusable(std::move(why));
  }
  return ReadLessons(response.text, news, turn.request.node);
}

}  // namespace kernelpro::agents
