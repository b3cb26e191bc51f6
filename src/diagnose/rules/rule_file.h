// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "diagnose/rules/formula.h"
#include "diagnose/rules/template.h"
#include "kernelpro/tool.h"

namespace kernelpro::diagnose {

/// What a rule says when it fires; a case starts as a copy of the rule's own.
struct RuleText {
  std::optional<Formula> severity, bound;
  double confidence = 0.5;
  Template seen, why, check, avoid;
  std::vector<Template> remedies;
};

/// A rule as read and checked (rule.h has the format).
struct RuleFile {
  std::string id, title, where;
  bool of_program = false;
  std::vector<std::string> classes, needs;
  std::vector<std::pair<std::string, Formula>> lets;
  std::optional<Formula> when;
  RuleText text;
  std::vector<std::pair<Formula, RuleText>> cases;
  ToolDocument document;
};

[[nodiscard]] Result<RuleFile> ReadRuleFile(std::string_view toml, std::string_view shown_path);

}  // namespace kernelpro::diagnose
