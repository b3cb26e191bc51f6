// SPDX-License-Identifier: Apache-2.0
#include "diagnose/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/facts.h"
#include "kernelpro/profile.h"

namespace kernelpro {
namespace {

constexpr std::size_t kMostFigures = 8;
constexpr double kLeastChange = 0.10;

const KernelProfile* Find(const Profile& profile, const KernelProfile& like, bool single) {
  const auto same = [&](const KernelProfile& k) {
    return (!like.mangled.empty() && k.mangled == like.mangled) || k.name == like.name;
  };
  const auto found = std::ranges::find_if(profile.kernels, same);
  if (found != profile.kernels.end()) {
    return &*found;
  }
  return single && profile.kernels.size() == 1 ? &profile.kernels.front() : nullptr;
}

std::vector<std::string> IdsOf(const Diagnosis& diagnosis, const std::string& kernel) {
  std::vector<std::string> ids;
  for (const Finding& f : diagnosis.findings) {
    if (f.kernel == kernel && std::ranges::find(ids, f.id) == ids.end()) {
      ids.push_back(f.id);
    }
  }
  return ids;
}

bool Has(const std::vector<std::string>& ids, const std::string& id) {
  return std::ranges::find(ids, id) != ids.end();
}

/// Metrics that both have and that changed, by the size of the change; those that stand for one
/// amount of work in several units (.avg, .max beside .sum) only once.
std::vector<FigureChange> Figures(const KernelProfile& before, const KernelProfile& after) {
  std::vector<FigureChange> changes;
  for (const auto& [name, metric] : before.metrics) {
    const auto found = after.metrics.find(name);
    const bool part = name.ends_with(".avg") || name.ends_with(".max") || name.ends_with(".min");
    if (found == after.metrics.end() || part || name.starts_with("device__")) {
      continue;
    }
    const double a = metric.value;
    const double b = found->second.value;
    const double change = std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1e-30});
    if (change > kLeastChange) {
      changes.push_back({name, a, b, metric.unit});
    }
  }
  const auto size = [](const FigureChange& c) {
    return std::abs(std::log((std::abs(c.after) + 1e-9) / (std::abs(c.before) + 1e-9)));
  };
  std::ranges::stable_sort(
      changes, [&](const FigureChange& a, const FigureChange& b) { return size(a) > size(b); });
  changes.resize(std::min(changes.size(), kMostFigures));
  return changes;
}

std::optional<Outcome> OutcomeOf(const Diagnosis& before, const KernelChange& change) {
  const auto primary = std::ranges::find(before.findings, change.kernel, &Finding::kernel);
  if (primary == before.findings.end() || change.before_us <= 0 || change.after_us <= 0) {
    return std::nullopt;
  }
  return Outcome{primary->id, primary->title, primary->bound, change.before_us, change.after_us};
}

KernelChange ChangeOf(const KernelProfile& before, const KernelProfile& after,
                      const Comparison& comparison) {
  KernelChange change;
  change.kernel = before.name;
  change.before_us = before.time_us;
  change.after_us = after.time_us;
  change.comparable = before.time_provenance == after.time_provenance;
  const std::vector<std::string> first = IdsOf(comparison.before, before.name);
  const std::vector<std::string> second = IdsOf(comparison.after, after.name);
  for (const std::string& id : first) {
    (Has(second, id) ? change.stayed : change.gone).push_back(id);
  }
  for (const std::string& id : second) {
    if (!Has(first, id)) {
      change.appeared.push_back(id);
    }
  }
  change.figures = Figures(before, after);
  if (change.comparable) {
    change.outcome = OutcomeOf(comparison.before, change);
  }
  return change;
}

std::string TimeText(const KernelChange& change) {
  if (change.before_us <= 0 || change.after_us <= 0) {
    return "times unknown";
  }
  const std::string times =
      fmt::format("{:.1f} us -> {:.1f} us", change.before_us, change.after_us);
  return change.comparable ? fmt::format("{} ({:.2f}x)", times, change.before_us / change.after_us)
                           : times + " (one measured, the other modelled: no ratio)";
}

}  // namespace

Comparison Compare(const Profile& before, const Profile& after, const Hardware& hardware,
                   const std::vector<const Tool*>& tools) {
  Comparison comparison;
  comparison.before = Diagnose(before, hardware, tools);
  comparison.after = Diagnose(after, hardware, tools);
  const bool single = before.kernels.size() == 1;
  std::vector<const KernelProfile*> matched;
  for (const KernelProfile& kernel : before.kernels) {
    const KernelProfile* other = Find(after, kernel, single);
    if (other == nullptr) {
      comparison.only_before.push_back(kernel.name);
      continue;
    }
    matched.push_back(other);
    comparison.kernels.push_back(ChangeOf(kernel, *other, comparison));
  }
  for (const KernelProfile& kernel : after.kernels) {
    if (std::ranges::find(matched, &kernel) == matched.end()) {
      comparison.only_after.push_back(kernel.name);
    }
  }
  return comparison;
}

std::string ComparisonText(const Comparison& comparison) {
  std::string text;
  for (const KernelChange& change : comparison.kernels) {
    text += fmt::format("{}: {}\n", change.kernel, TimeText(change));
    if (change.outcome) {
      text += fmt::format("  predicted  {} at most {:.2f}x\n", change.outcome->title,
                          1 / (1 - std::min(change.outcome->bound, 0.999)));
    }
    for (const auto& [label, ids] :
         {std::pair{"gone", &change.gone}, std::pair{"still there", &change.stayed},
          std::pair{"new", &change.appeared}}) {
      if (!ids->empty()) {
        text += fmt::format("  {:<10} {}\n", label, fmt::join(*ids, ", "));
      }
    }
    for (const FigureChange& figure : change.figures) {
      text += fmt::format("  {:<72} {:>14.6g} -> {:<14.6g} {}\n", figure.name, figure.before,
                          figure.after, figure.unit);
    }
  }
  for (const std::string& name : comparison.only_before) {
    text += fmt::format("{}: only in the first profile\n", name);
  }
  for (const std::string& name : comparison.only_after) {
    text += fmt::format("{}: only in the second profile\n", name);
  }
  return text.empty() ? "Neither profile holds a kernel.\n" : text;
}

}  // namespace kernelpro
