// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tool_kit.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/tools/documents.h"
#include "kernelpro/finding.h"
#include "kernelpro/tool.h"

namespace kernelpro::diagnose {
namespace {

class FunctionTool : public Tool {
 public:
  explicit FunctionTool(ToolSpec spec) : spec_(std::move(spec)) {}

  [[nodiscard]] std::string_view id() const override { return spec_.id; }

  [[nodiscard]] std::string_view title() const override { return spec_.title; }

  [[nodiscard]] std::vector<std::string_view> classes() const override { return spec_.classes; }

  [[nodiscard]] std::vector<std::string_view> metrics() const override { return spec_.metrics; }

  [[nodiscard]] ToolDocument document() const override { return DocumentOf(spec_.id); }

  [[nodiscard]] std::optional<Finding> Examine(const ToolInput& input) const override {
    std::optional<Finding> finding = spec_.examine(input);
    if (finding) {
      finding->id = std::string(spec_.id);
      finding->title = std::string(spec_.title);
      finding->kernel = input.kernel.name;
      finding->time_share = input.kernel.time_share;
      if (!finding->remedies.empty() && finding->action.empty()) {
        finding->action = finding->remedies.front();
      }
    }
    return finding;
  }

 private:
  ToolSpec spec_;
};

}  // namespace

std::unique_ptr<Tool> MakeTool(ToolSpec spec) {
  return std::make_unique<FunctionTool>(std::move(spec));
}

}  // namespace kernelpro::diagnose
