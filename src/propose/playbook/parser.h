// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "propose/playbook/source_model.h"

namespace kernelpro::playbook {

/// Clang 19 behind our own tree. Keeps the headers precompiled between calls, so that a second
/// candidate with the same includes takes a tenth of the first one's time. Not for two threads at
/// once.
class Parser {
 public:
  /// `cuda_include_folder` is the toolkit's, e.g. /usr/local/cuda/include. kNotFound when
  /// cuda_runtime.h is not in it.
  [[nodiscard]] static Result<std::unique_ptr<Parser>> Create(
      const std::filesystem::path& cuda_include_folder,
      const std::vector<std::filesystem::path>& cpp_include_folders = {},
      const std::filesystem::path& clang_resource_folder = {});

  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser();

  /// Parses a candidate together with the text of its kernelpro_task.h. kParse with clang's first
  /// error and its line when it does not compile; kInvalidArgument when it is too large, has a
  /// zero byte or is nested too deeply.
  [[nodiscard]] Result<SourceModel> Parse(std::string_view source, std::string_view task_header);

 private:
  struct State;

  explicit Parser(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace kernelpro::playbook
