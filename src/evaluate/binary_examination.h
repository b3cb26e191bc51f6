// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "evaluate/evaluation.h"
#include "evaluate/outcome.h"
#include "task/task.h"
#include "toolchain/toolchain.h"

namespace kernelpro {

/// What a build says about a candidate before any of it runs.
struct BinaryFindings {
  std::optional<Condemnation> condemned;  ///< kPolicyViolation
  PrecisionClass precision;
  std::vector<std::string> notes;  ///< what could not be looked at, a sentence each
};

/// Looks at the library (policy_check.h), then at PTX and SASS (precision.h). Files that a build
/// does not name are not looked at, and a note says so. An Error only for what is ours: a file of
/// the build cache that cannot be read.
[[nodiscard]] Result<BinaryFindings> ExamineBinary(const Build& build, const Task& task,
                                                   const std::filesystem::path& disassembler,
                                                   const std::stop_token& stop);

}  // namespace kernelpro
