// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/rules/rule_file.h"
#include "diagnose/rules/scope.h"
#include "kernelpro/finding.h"

namespace kernelpro::diagnose {
namespace {

/// Words that texts may use, found by the rule's `where`.
struct Place {
  std::string file;
  std::uint32_t line = 0;
  std::map<std::string, std::string, std::less<>> words;
};

std::string PlaceText(const std::string& file, std::uint32_t line) {
  LineMetrics at;
  at.file = file;
  at.line = line;
  return diagnose::Place(line == 0 ? nullptr : &at);
}

void PlaceSpot(const KernelProfile& kernel, std::string_view reason, Place& place) {
  const HotSpot* spot = WorstSpot(kernel, reason);
  if (spot == nullptr) {
    return;
  }
  place.words["consumer"] = spot->instruction;
  place.words["producer"] = spot->producer;
  place.words["producer_where"] = spot->producer_line != 0
                                      ? PlaceText(spot->producer_file, spot->producer_line)
                                      : fmt::format("offset 0x{:x}", spot->producer_address);
  const bool at_producer = spot->producer_line != 0;
  place.file = at_producer ? spot->producer_file : spot->file;
  place.line = at_producer ? spot->producer_line : spot->line;
}

Place FindPlace(const KernelProfile& kernel, std::string_view where) {
  Place place;
  if (where == "loop" && kernel.hot_loop) {
    place.file = kernel.hot_loop->file;
    place.line = kernel.hot_loop->line;
  } else if (where.starts_with("stall:")) {
    PlaceSpot(kernel, where.substr(6), place);
  } else if (where.starts_with("line:")) {
    const LineMetrics* line =
        WorstLine(kernel, [&](const LineMetrics& l) { return Get(l, where.substr(5)); });
    if (line != nullptr) {
      place.file = line->file;
      place.line = line->line;
    }
  }
  place.words["where"] = PlaceText(place.file, place.line);
  place.words["kernel"] = kernel.name;
  return place;
}

class RuleTool : public Tool {
 public:
  explicit RuleTool(RuleFile rule) : rule_(std::move(rule)) {}

  [[nodiscard]] std::string_view id() const override { return rule_.id; }

  [[nodiscard]] std::string_view title() const override { return rule_.title; }

  [[nodiscard]] std::vector<std::string_view> classes() const override {
    return {rule_.classes.begin(), rule_.classes.end()};
  }

  [[nodiscard]] std::vector<std::string_view> metrics() const override {
    return {rule_.needs.begin(), rule_.needs.end()};
  }

  [[nodiscard]] ToolDocument document() const override { return rule_.document; }

  [[nodiscard]] bool of_program() const override { return rule_.of_program; }

  [[nodiscard]] std::optional<Finding> Examine(const ToolInput& in) const override {
    std::map<std::string, std::optional<double>> values;
    const FormulaScope scope = MakeScope(in, values);
    for (const auto& [name, formula] : rule_.lets) {
      values[name] = formula.Evaluate(scope);
    }
    if (rule_.when && rule_.when->Evaluate(scope).value_or(0) == 0) {
      return std::nullopt;
    }
    const RuleText* chosen = Choose(scope);
    if (chosen == nullptr) {
      return std::nullopt;
    }
    const double severity = chosen->severity ? chosen->severity->Evaluate(scope).value_or(0) : 0;
    if (severity <= 0) {
      return std::nullopt;
    }
    Finding f;
    f.id = rule_.id;
    f.title = rule_.title;
    f.kernel = in.kernel.name;
    f.time_share = rule_.of_program ? 1 : in.kernel.time_share;
    f.severity = std::min(1.0, severity);
    f.bound = chosen->bound ? std::clamp(chosen->bound->Evaluate(scope).value_or(0), 0.0, 1.0) : 0;
    f.confidence = chosen->confidence;
    Write(in, *chosen, scope, f);
    for (const auto& [name, value] : values) {
      if (value) {
        f.evidence[name] = *value;
      }
    }
    return f;
  }

 private:
  /// The first case that holds, else the rule's own text when it has one.
  [[nodiscard]] const RuleText* Choose(const FormulaScope& scope) const {
    for (const auto& [when, text] : rule_.cases) {
      if (when.Evaluate(scope).value_or(0) != 0) {
        return &text;
      }
    }
    return rule_.text.seen.empty() ? nullptr : &rule_.text;
  }

  void Write(const ToolInput& in, const RuleText& text, const FormulaScope& scope,
             Finding& f) const {
    const Place place = FindPlace(in.kernel, rule_.where);
    f.file = place.file;
    f.line = place.line;
    const Template::Values values = {
        scope.value, [&](std::string_view name) -> std::optional<std::string> {
          const auto found = place.words.find(name);
          return found == place.words.end() ? std::nullopt : std::optional(found->second);
        }};
    f.seen = text.seen.Fill(values);
    f.why = text.why.Fill(values);
    f.check = text.check.Fill(values);
    f.avoid = text.avoid.Fill(values);
    for (const Template& remedy : text.remedies) {
      f.remedies.push_back(remedy.Fill(values));
    }
    f.action = f.remedies.empty() ? "" : f.remedies.front();
  }

  RuleFile rule_;
};

}  // namespace

Result<std::unique_ptr<Tool>> ParseRule(std::string_view toml, std::string_view shown_path) {
  KP_ASSIGN_OR_RETURN(RuleFile rule, ReadRuleFile(toml, shown_path));
  return std::unique_ptr<Tool>(std::make_unique<RuleTool>(std::move(rule)));
}

}  // namespace kernelpro::diagnose
