// SPDX-License-Identifier: Apache-2.0
#include "report/model_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "report/format.h"

namespace kernelpro::report {
namespace {

std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) {
      ++end;
    }
    for (std::size_t i = first; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(first + end - 1) / 2;
    }
    first = end;
  }
  return ranks;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double Spearman(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.size() < 3) {
    return 0;
  }
  const std::vector<double> x = Ranks(a);
  const std::vector<double> y = Ranks(b);
  const double mean_x = Mean(x);
  const double mean_y = Mean(y);
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

ModelCheck CheckModel(const std::vector<store::NodeRecord>& nodes) {
  ModelCheck check;
  std::vector<double> modelled;
  std::vector<double> measured;
  for (const store::NodeRecord& node : nodes) {
    if (!node.done || node.verdict != "ok" || node.provenance != "measured") {
      continue;
    }
    const auto json = nlohmann::json::parse(node.evaluation, nullptr, false);
    if (json.is_discarded() || !json.contains("modelled_us") || !json["modelled_us"].is_number()) {
      continue;
    }
    modelled.push_back(json["modelled_us"].get<double>());
    measured.push_back(node.time_us);
    check.nodes.push_back({node.id, node.action, modelled.back(), measured.back()});
  }
  check.spearman = Spearman(modelled, measured);
  return check;
}

std::string ModelCheckText(const ModelCheck& check) {
  if (check.nodes.empty()) {
    return {};
  }
  std::string text = fmt::format("the emulator's model over {} kernels: rank correlation {:.2f}\n",
                                 check.nodes.size(), check.spearman);
  std::vector<ModelCheck::Node> furthest = check.nodes;
  std::ranges::stable_sort(furthest, std::greater(), [](const ModelCheck::Node& n) {
    return std::fabs(std::log(n.modelled_us / n.measured_us));
  });
  furthest.resize(std::min<std::size_t>(3, furthest.size()));
  for (const ModelCheck::Node& n : furthest) {
    text += fmt::format("  node {} ({}): {} modelled, {} measured, {:.2f}\n", n.id, n.action,
                        FormatTime(n.modelled_us), FormatTime(n.measured_us),
                        n.modelled_us / n.measured_us);
  }
  return text;
}

nlohmann::ordered_json ModelCheckJson(const ModelCheck& check) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const ModelCheck::Node& n : check.nodes) {
    nodes.push_back({{"node", n.id},
                     {"action", n.action},
                     {"modelled_us", n.modelled_us},
                     {"measured_us", n.measured_us}});
  }
  return {{"spearman", check.spearman}, {"nodes", std::move(nodes)}};
}

}  // namespace kernelpro::report
