// SPDX-License-Identifier: Apache-2.0
#include "plugins/external_tool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "process/process.h"
#include "profile/profile_json.h"

namespace kernelpro::plugins {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestText = 2000;
constexpr std::size_t kMostFindings = 100;
constexpr std::size_t kMostRemedies = 10;
constexpr std::uint64_t kMostOutput = 4U << 20U;

class Reader {
 public:
  Reader(std::string_view label, std::size_t index) : label_(label), index_(index) {}

  Result<Finding> Read(const Json& json) {
    if (!json.is_object()) {
      return Wrong("is no object");
    }
    Finding f;
    for (const auto& [key, text] : {std::pair{"id", &f.id},
                                    {"title", &f.title},
                                    {"seen", &f.seen},
                                    {"why", &f.why},
                                    {"check", &f.check},
                                    {"avoid", &f.avoid}}) {
      KP_ASSIGN_OR_RETURN(*text, Text(json, key, true));
    }
    KP_ASSIGN_OR_RETURN(f.kernel, Text(json, "kernel", false));
    KP_ASSIGN_OR_RETURN(f.file, Text(json, "file", false));
    KP_ASSIGN_OR_RETURN(f.severity, Share(json, "severity", std::nullopt));
    KP_ASSIGN_OR_RETURN(f.bound, Share(json, "bound", 0.0));
    KP_ASSIGN_OR_RETURN(f.confidence, Share(json, "confidence", 0.5));
    if (const auto line = json.find("line"); line != json.end() && line->is_number_unsigned()) {
      f.line = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(line->get<std::uint64_t>(), 0xffffffffU));
    }
    const auto remedies = json.find("do");
    if (remedies == json.end() || !remedies->is_array() || remedies->empty()) {
      return Wrong("has no \"do\": a list of sentences, the first thing to try first");
    }
    for (const Json& remedy : *remedies) {
      if (remedy.is_string() && f.remedies.size() < kMostRemedies) {
        f.remedies.push_back(Printable(remedy.get_ref<const std::string&>(), kLongestText));
      }
    }
    f.action = f.remedies.empty() ? "" : f.remedies.front();
    ReadEvidence(json, f);
    return f;
  }

 private:
  [[nodiscard]] Error Wrong(std::string_view what) const {
    return Fail(ErrorCode::kParse, fmt::format("{}: findings[{}] {}", label_, index_, what));
  }

  Result<std::string> Text(const Json& json, const char* key, bool needed) const {
    const auto found = json.find(key);
    if (found == json.end() || found->is_null()) {
      return needed ? Result<std::string>(Wrong(fmt::format("has no \"{}\"", key)))
                    : Result<std::string>(std::string());
    }
    if (!found->is_string()) {
      return Wrong(fmt::format("\"{}\" is no string", key));
    }
    std::string text = Printable(found->get_ref<const std::string&>(), kLongestText);
    std::ranges::replace(text, '\n', ' ');
    return text;
  }

  Result<double> Share(const Json& json, const char* key, std::optional<double> fallback) const {
    const auto found = json.find(key);
    if (found == json.end() && fallback) {
      return *fallback;
    }
    if (found == json.end() || !found->is_number()) {
      return Wrong(fmt::format("\"{}\" must be a number from 0 to 1", key));
    }
    const auto value = found->get<double>();
    if (!(value >= 0 && value <= 1)) {
      return Wrong(fmt::format("\"{}\" is {}, not from 0 to 1", key, value));
    }
    return value;
  }

  static void ReadEvidence(const Json& json, Finding& f) {
    const auto found = json.find("evidence");
    if (found == json.end() || !found->is_object()) {
      return;
    }
    for (const auto& [name, value] : found->items()) {
      if (value.is_number() && std::isfinite(value.get<double>())) {
        f.evidence[Printable(name, 200)] = value.get<double>();
      }
    }
  }

  std::string_view label_;
  std::size_t index_;
};

class FoundTool : public Tool {
 public:
  FoundTool(Finding finding, std::string_view origin)
      : finding_(std::move(finding)), origin_(origin) {}

  [[nodiscard]] std::string_view id() const override { return finding_.id; }

  [[nodiscard]] std::string_view title() const override { return finding_.title; }

  [[nodiscard]] std::vector<std::string_view> classes() const override { return {}; }

  [[nodiscard]] std::vector<std::string_view> metrics() const override { return {}; }

  [[nodiscard]] ToolDocument document() const override {
    ToolDocument document;
    document.origin = origin_;
    return document;
  }

  [[nodiscard]] bool of_program() const override { return finding_.kernel.empty(); }

  [[nodiscard]] std::optional<Finding> Examine(const ToolInput& input) const override {
    const bool mine = finding_.kernel.empty() || finding_.kernel == input.kernel.name ||
                      finding_.kernel == input.kernel.mangled;
    if (!mine) {
      return std::nullopt;
    }
    Finding f = finding_;
    f.kernel = input.kernel.name;
    f.time_share = of_program() ? 1 : input.kernel.time_share;
    return f;
  }

 private:
  Finding finding_;
  std::string origin_;
};

}  // namespace

Result<std::vector<Finding>> ParseExternalFindings(std::string_view text, std::string_view label) {
  const Json json = Json::parse(text, nullptr, false);
  const auto list = json.is_object() ? json.find("findings") : json.end();
  if (json.is_discarded() || list == json.end() || !list->is_array()) {
    return Fail(ErrorCode::kParse,
                fmt::format("{}: the answer is not {{\"findings\": [...]}} but \"{}\"", label,
                            Printable(text, 200)));
  }
  if (list->size() > kMostFindings) {
    return Fail(ErrorCode::kParse, fmt::format("{}: {} findings; at most {} are taken", label,
                                               list->size(), kMostFindings));
  }
  std::vector<Finding> findings;
  for (const Json& one : *list) {
    KP_ASSIGN_OR_RETURN(Finding finding, Reader(label, findings.size()).Read(one));
    findings.push_back(std::move(finding));
  }
  return findings;
}

Result<std::vector<Finding>> RunExternalTool(const std::filesystem::path& program,
                                             const Profile& profile,
                                             std::chrono::milliseconds limit,
                                             const std::stop_token& stop) {
  ProcessSpec spec;
  spec.argv = {program.string()};
  spec.input = ProfileJson(profile);
  spec.limits.wall = limit;
  spec.limits.output_bytes = kMostOutput;
  KP_ASSIGN_OR_RETURN(const ProcessResult result, RunProcess(spec, stop));
  if (result.end == ProcessResult::End::kCancelled) {
    return Fail(ErrorCode::kCancelled, "stopped");
  }
  if (!result.Succeeded()) {
    const bool late = result.end == ProcessResult::End::kTimedOut;
    return Fail(
        late ? ErrorCode::kTimeout : ErrorCode::kToolFailed,
        fmt::format("the tool {} {}{}{}", program.string(), DescribeEnd(result, spec.limits),
                    result.err.empty() ? "" : ": ", Printable(Trim(result.err), kLongestText)));
  }
  return ParseExternalFindings(result.out, program.string());
}

std::unique_ptr<Tool> MakeFoundTool(Finding finding, std::string_view origin) {
  return std::make_unique<FoundTool>(std::move(finding), origin);
}

}  // namespace kernelpro::plugins
