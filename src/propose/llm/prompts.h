// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kernelpro::agents {

/// What a prompt is filled with: texts by name. An empty text counts as absent: its section
/// ({{#name}} ... {{/name}}) is left out.
using PromptValues = std::map<std::string, std::string>;

/// The prompts: mustache templates, of which {{name}}, {{#name}}, {{^name}}, {{/name}} and
/// {{! comment }} are allowed. Texts that are put in are never read as templates and never escaped.
class Prompts {
 public:
  /// From a folder, or the built-in ones when `folder` is empty. Every prompt must be there and may
  /// use the names that it gets, no others. kNotFound for a file that is missing; kParse with file
  /// and line for one that is wrong.
  [[nodiscard]] static Result<Prompts> Load(const std::string& folder);

  /// `file` is one of PromptFiles(), and every name in `values` one of its names.
  [[nodiscard]] std::string Render(std::string_view file, const PromptValues& values) const;

 private:
  std::map<std::string, std::string, std::less<>> texts_;
};

/// A prompt and the names it may use.
struct PromptFile {
  std::string_view file;
  std::vector<std::string_view> names;
};

[[nodiscard]] const std::vector<PromptFile>& PromptFiles();

}  // namespace kernelpro::agents
