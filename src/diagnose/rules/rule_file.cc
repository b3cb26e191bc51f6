// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rules/rule_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "diagnose/rules/scope.h"
#include "task/toml.h"
#include "task/toml_table.h"

namespace kernelpro::diagnose {
namespace {

constexpr std::array<std::string_view, 4> kWords = {"kernel", "where", "consumer", "producer"};

bool IsId(std::string_view id) {
  const std::size_t dot = id.find('.');
  return dot != std::string_view::npos && dot > 0 && dot + 1 < id.size() && id.size() <= 64 &&
         std::ranges::all_of(id, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
         });
}

class Reader {
 public:
  Reader(const TomlNode& root, const TomlSource& source, std::string_view path)
      : root_(root), source_(source), path_(path) {}

  Result<RuleFile> Read() {
    KP_ASSIGN_OR_RETURN(
        const TomlTable table,
        TomlTable::Open(
            root_, source_, "a rule",
            {"id",    "title", "core",     "source", "looks_for",  "scope", "classes", "needs",
             "where", "when",  "severity", "bound",  "confidence", "seen",  "why",     "do",
             "check", "avoid", "not_when", "fires",  "silent",     "let",   "case"}));
    KP_RETURN_IF_ERROR(ReadHead(table));
    KP_RETURN_IF_ERROR(ReadLets(table));
    if (table.Find("when") != nullptr) {
      KP_ASSIGN_OR_RETURN(rule_.when, FormulaAt(table, "when"));
    }
    KP_RETURN_IF_ERROR(ReadText(table, rule_.text));
    KP_RETURN_IF_ERROR(ReadCases(table));
    KP_RETURN_IF_ERROR(CheckComplete(table));
    return std::move(rule_);
  }

 private:
  Status ReadHead(const TomlTable& table) {
    KP_ASSIGN_OR_RETURN(rule_.id, table.Text("id"));
    if (!IsId(rule_.id)) {
      return table.At(table.Find("id")->line,
                      fmt::format("id \"{}\" is not group.name", Printable(rule_.id, 80)),
                      "lower-case letters, digits and '_', with a dot: \"mem.my_rule\"");
    }
    KP_ASSIGN_OR_RETURN(rule_.title, table.Text("title"));
    KP_ASSIGN_OR_RETURN(rule_.where, table.Text("where", ""));
    if (table.Find("scope") != nullptr) {
      constexpr std::array<std::string_view, 2> kScopes = {"kernel", "program"};
      KP_ASSIGN_OR_RETURN(const std::string scope, table.Word("scope", kScopes));
      rule_.of_program = scope == "program";
    }
    ToolDocument& d = rule_.document;
    d.origin = path_;
    KP_ASSIGN_OR_RETURN(d.source, table.Text("source"));
    KP_ASSIGN_OR_RETURN(d.looks_for, table.Text("looks_for", ""));
    KP_ASSIGN_OR_RETURN(d.severity, table.Text("severity", ""));
    KP_ASSIGN_OR_RETURN(d.bound, table.Text("bound", ""));
    KP_ASSIGN_OR_RETURN(d.not_when, table.Text("not_when", ""));
    KP_ASSIGN_OR_RETURN(d.fires, table.Text("fires", ""));
    KP_ASSIGN_OR_RETURN(d.silent, table.Text("silent", ""));
    if (const TomlNode* core = table.Find("core"); core != nullptr) {
      KP_RETURN_IF_ERROR(table.Expect(*core, "core", TomlNode::Kind::kBool));
      d.core = core->boolean;
    }
    KP_ASSIGN_OR_RETURN(rule_.classes, Texts(table, "classes"));
    KP_ASSIGN_OR_RETURN(rule_.needs, Texts(table, "needs"));
    return Ok();
  }

  Result<std::vector<std::string>> Texts(const TomlTable& table, std::string_view key) {
    std::vector<std::string> texts;
    if (table.Find(key) != nullptr) {
      KP_ASSIGN_OR_RETURN(const std::vector<const TomlNode*> nodes, table.TextList(key));
      for (const TomlNode* node : nodes) {
        texts.push_back(node->text);
      }
    }
    return texts;
  }

  Status CheckName(const TomlTable& table, std::uint32_t line, const std::string& name,
                   bool words) const {
    const bool is_let =
        std::ranges::any_of(rule_.lets, [&](const auto& let) { return let.first == name; });
    const bool is_word =
        words && (std::ranges::find(kWords, name) != kWords.end() || name == "producer_where");
    if (is_let || is_word || IsScopeName(name)) {
      return Ok();
    }
    return table.At(line, fmt::format("unknown name '{}'", Printable(name, 80)),
                    "a name under [let] that stands above it, a metric, or u.* n.* I U T stall.* "
                    "class.* task.* hw.* grid block warps");
  }

  Result<Formula> Checked(const TomlTable& table, const TomlNode& node) {
    Result<Formula> formula = Formula::Parse(node.text);
    if (!formula) {
      return table.At(node.line, formula.error().message);
    }
    for (const std::string& name : formula->names()) {
      KP_RETURN_IF_ERROR(CheckName(table, node.line, name, false));
    }
    return formula;
  }

  Result<Formula> FormulaAt(const TomlTable& table, std::string_view key) {
    const TomlNode& node = *table.Find(key);
    KP_RETURN_IF_ERROR(table.Expect(node, key, TomlNode::Kind::kString));
    return Checked(table, node);
  }

  Status ReadLets(const TomlTable& table) {
    const TomlNode* lets = table.Find("let");
    if (lets == nullptr) {
      return Ok();
    }
    KP_RETURN_IF_ERROR(table.Expect(*lets, "let", TomlNode::Kind::kTable));
    for (const TomlNode& let : lets->items) {
      KP_RETURN_IF_ERROR(table.Expect(let, let.key, TomlNode::Kind::kString));
      KP_ASSIGN_OR_RETURN(Formula formula, Checked(table, let));
      rule_.lets.emplace_back(let.key, std::move(formula));
    }
    return Ok();
  }

  Status ReadTemplate(const TomlTable& table, std::string_view key, Template& into) {
    const TomlNode* node = table.Find(key);
    if (node == nullptr) {
      return Ok();
    }
    KP_RETURN_IF_ERROR(table.Expect(*node, key, TomlNode::Kind::kString));
    return Parsed(table, *node, into);
  }

  Status Parsed(const TomlTable& table, const TomlNode& node, Template& into) {
    Result<Template> text = Template::Parse(node.text);
    if (!text) {
      return table.At(node.line, text.error().message);
    }
    for (const std::string& name : text->names()) {
      KP_RETURN_IF_ERROR(CheckName(table, node.line, name, true));
    }
    into = std::move(text).value();
    return Ok();
  }

  Status ReadText(const TomlTable& table, RuleText& text) {
    if (table.Find("severity") != nullptr) {
      KP_ASSIGN_OR_RETURN(text.severity, FormulaAt(table, "severity"));
    }
    if (table.Find("bound") != nullptr) {
      KP_ASSIGN_OR_RETURN(text.bound, FormulaAt(table, "bound"));
    }
    KP_ASSIGN_OR_RETURN(text.confidence, table.Number("confidence", text.confidence));
    KP_RETURN_IF_ERROR(ReadTemplate(table, "seen", text.seen));
    KP_RETURN_IF_ERROR(ReadTemplate(table, "why", text.why));
    KP_RETURN_IF_ERROR(ReadTemplate(table, "check", text.check));
    KP_RETURN_IF_ERROR(ReadTemplate(table, "avoid", text.avoid));
    if (table.Find("do") != nullptr) {
      KP_ASSIGN_OR_RETURN(const std::vector<const TomlNode*> remedies, table.TextList("do"));
      text.remedies.clear();
      for (const TomlNode* remedy : remedies) {
        KP_RETURN_IF_ERROR(Parsed(table, *remedy, text.remedies.emplace_back()));
      }
    }
    return Ok();
  }

  Status ReadCases(const TomlTable& table) {
    const TomlNode* cases = table.Find("case");
    if (cases == nullptr) {
      return Ok();
    }
    KP_RETURN_IF_ERROR(table.Expect(*cases, "case", TomlNode::Kind::kArray));
    for (const TomlNode& item : cases->items) {
      KP_ASSIGN_OR_RETURN(const TomlTable one,
                          TomlTable::Open(item, source_, "a [[case]]",
                                          {"when", "severity", "bound", "confidence", "seen", "why",
                                           "do", "check", "avoid"}));
      KP_RETURN_IF_ERROR(one.Required("when"));
      KP_ASSIGN_OR_RETURN(Formula when, FormulaAt(one, "when"));
      RuleText text = rule_.text;
      KP_RETURN_IF_ERROR(ReadText(one, text));
      rule_.cases.emplace_back(std::move(when), std::move(text));
    }
    return Ok();
  }

  Status CheckComplete(const TomlTable& table) {
    std::vector<const RuleText*> texts;
    if (rule_.cases.empty() || !rule_.text.seen.empty()) {
      texts.push_back(&rule_.text);
    }
    for (const auto& [when, text] : rule_.cases) {
      texts.push_back(&text);
    }
    for (const RuleText* text : texts) {
      for (const auto& [missing, key] :
           {std::pair{!text->severity, "severity"}, std::pair{!text->bound, "bound"},
            std::pair{text->seen.empty(), "seen"}, std::pair{text->why.empty(), "why"},
            std::pair{text->remedies.empty(), "do"}, std::pair{text->check.empty(), "check"},
            std::pair{text->avoid.empty(), "avoid"}}) {
        if (missing) {
          return table.At(table.line(), fmt::format("the rule has no \"{}\"", key),
                          "every finding says: severity bound seen why do check avoid");
        }
      }
    }
    for (const Template& remedy : texts.front()->remedies) {
      rule_.document.remedies.push_back(remedy.text());
    }
    return Ok();
  }

  const TomlNode& root_;
  const TomlSource& source_;
  std::string path_;
  RuleFile rule_;
};

}  // namespace

Result<RuleFile> ReadRuleFile(std::string_view toml, std::string_view shown_path) {
  const TomlSource source(toml, shown_path);
  KP_ASSIGN_OR_RETURN(const TomlNode root, ParseToml(toml, source));
  return Reader(root, source, shown_path).Read();
}

}  // namespace kernelpro::diagnose
