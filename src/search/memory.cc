// SPDX-License-Identifier: Apache-2.0
#include "search/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"

namespace kernelpro::search {
namespace {

/// Faster than its parent by less than this is not a win: the margin of tree.h, rounded.
constexpr double kWinningRatio = 1.02;
constexpr std::size_t kReasonLimit = 240;

std::string FirstLine(std::string_view text) {
  return Printable(Trim(text.substr(0, text.find('\n'))), kReasonLimit);
}

/// `best_us`: of the kernels before it.
Lesson FromNode(const store::NodeRecord& node, const store::NodeRecord& parent, double best_us) {
  const std::string about = node.finding.empty() ? "" : fmt::format(" (for {})", node.finding);
  if (node.verdict != "ok") {
    return {Lesson::Kind::kError,
            fmt::format("node {}, {}{}: {}: {}", node.id, node.action, about, node.verdict,
                        FirstLine(node.verdict_reason)),
            node.id};
  }
  if (parent.time_us <= 0) {
    return {Lesson::Kind::kWin,
            fmt::format("node {}, {}{}: right, after {} was {}; {:.4g} us {}", node.id, node.action,
                        about, parent.id, parent.verdict, node.time_us, node.provenance),
            node.id};
  }
  const double ratio = parent.time_us / node.time_us;
  const bool best = node.time_us < best_us;
  const bool win = best || ratio >= kWinningRatio;
  const std::string_view judgement = best                        ? "the best so far"
                                     : win                       ? "faster"
                                     : ratio > 1 / kWinningRatio ? "no difference"
                                                                 : "slower";
  return {win ? Lesson::Kind::kWin : Lesson::Kind::kDeadEnd,
          fmt::format("node {}, {}{}: {}, {:.3f}x of node {} ({:.4g} us {})", node.id, node.action,
                      about, judgement, ratio, parent.id, node.time_us, node.provenance),
          node.id};
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0 || c == '_' || c == '.') {
      word += static_cast<char>(std::tolower(u));
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) {
    words.push_back(std::move(word));
  }
  return words;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

std::vector<Lesson> Remember(const std::vector<store::NodeRecord>& nodes,
                             const std::vector<store::LessonRecord>& written) {
  std::map<store::NodeId, const store::NodeRecord*> by_id;
  for (const store::NodeRecord& node : nodes) {
    by_id[node.id] = &node;
  }
  std::vector<Lesson> lessons;
  std::set<std::string> said;
  const auto add = [&](Lesson lesson) {
    if (said.insert(lesson.text).second) {
      lessons.push_back(std::move(lesson));
    }
  };
  double best_us = std::numeric_limits<double>::infinity();
  for (const store::NodeRecord& node : nodes) {
    const auto parent = by_id.find(node.parent);
    if (node.done && parent != by_id.end() && node.verdict != "infrastructure_error") {
      add(FromNode(node, *parent->second, best_us));
    }
    if (node.time_us > 0) {
      best_us = std::min(best_us, node.time_us);
    }
  }
  for (const store::LessonRecord& lesson : written) {
    add({ParseLessonKind(lesson.kind), lesson.text, lesson.node});
  }
  std::stable_sort(lessons.begin(), lessons.end(),
                   [](const Lesson& a, const Lesson& b) { return a.node < b.node; });
  return lessons;
}

std::vector<Lesson> SearchMemory(const std::vector<Lesson>& lessons, std::string_view query,
                                 std::size_t most) {
  const std::vector<std::string> words = Words(query);
  std::vector<std::pair<std::size_t, const Lesson*>> found;
  for (auto lesson = lessons.rbegin(); lesson != lessons.rend(); ++lesson) {
    const std::string text = Lower(lesson->text) + ' ' + std::string(Name(lesson->kind));
    const auto hits = static_cast<std::size_t>(std::count_if(
        words.begin(), words.end(),
        [&text](const std::string& word) { return text.find(word) != std::string::npos; }));
    if (hits > 0 || words.empty()) {
      found.emplace_back(hits, &*lesson);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Lesson> best;
  for (std::size_t i = 0; i < std::min(most, found.size()); ++i) {
    best.push_back(*found[i].second);
  }
  return best;
}

}  // namespace kernelpro::search
