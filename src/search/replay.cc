// SPDX-License-Identifier: Apache-2.0
#include "search/replay.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace kernelpro::search {
namespace {

class RecordedOrder final : public Policy {
 public:
  explicit RecordedOrder(std::vector<store::NodeRecord> recorded)
      : recorded_(std::move(recorded)) {}

  [[nodiscard]] std::string_view name() const override { return "recorded"; }

  [[nodiscard]] std::optional<Choice> Choose(const Tree& tree, Rng& /*rng*/) const override {
    const std::size_t next = tree.nodes().size();
    if (next >= recorded_.size()) {
      return std::nullopt;
    }
    const NodeId parent = recorded_[next].parent;
    const auto found = tree.nodes().find(parent);
    if (found == tree.nodes().end()) {
      return std::nullopt;
    }
    const std::vector<Untried>& untried = found->second.untried;
    return Choice{parent, untried.empty() ? 0 : untried.front().proposal};
  }

 private:
  std::vector<store::NodeRecord> recorded_;
};

/// What the same seed and device give again to the last digit but for the order of additions.
constexpr double kSameTime = 1e-9;

std::string Difference(const store::NodeRecord& a, const store::NodeRecord& b, bool same_device) {
  if (a.content != b.content) {
    return "another kernel";
  }
  if (a.parent != b.parent) {
    return fmt::format("was made of node {}, now of node {}", a.parent, b.parent);
  }
  if (a.action != b.action) {
    return fmt::format("was called {}, is {}", a.action, b.action);
  }
  if (a.done != b.done || a.verdict != b.verdict) {
    return fmt::format("was {}, is {}{}", a.done ? a.verdict : "waiting",
                       b.done ? b.verdict : "waiting",
                       b.verdict_reason.empty() ? "" : ": " + b.verdict_reason);
  }
  if (same_device && std::abs(a.time_us - b.time_us) > kSameTime * a.time_us) {
    return fmt::format("took {} us, takes {} us", a.time_us, b.time_us);
  }
  return "";
}

}  // namespace

std::unique_ptr<Policy> MakeRecordedOrder(std::vector<store::NodeRecord> recorded) {
  return std::make_unique<RecordedOrder>(std::move(recorded));
}

std::vector<std::string> CompareTrees(const std::vector<store::NodeRecord>& recorded,
                                      const std::vector<store::NodeRecord>& replayed,
                                      bool same_device) {
  std::vector<std::string> differences;
  for (std::size_t i = 0; i < std::min(recorded.size(), replayed.size()); ++i) {
    const std::string difference = Difference(recorded[i], replayed[i], same_device);
    if (!difference.empty()) {
      differences.push_back(fmt::format("node {}: {}", recorded[i].id, difference));
    }
  }
  if (recorded.size() != replayed.size()) {
    differences.push_back(
        fmt::format("{} nodes were recorded, {} were made", recorded.size(), replayed.size()));
  }
  return differences;
}

}  // namespace kernelpro::search
