// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "process/process.h"

namespace kernelpro::e2e {

/// The real binary, run as a user runs it, with a build cache shared by all tests.
class Cli {
 public:
  struct Answer {
    int exit_code = -1;
    std::string out, err;

    /// The last line of standard output as JSON; discarded (is_discarded) when it is none.
    [[nodiscard]] nlohmann::json Json() const;
  };

  Cli();

  [[nodiscard]] Answer Run(std::vector<std::string> arguments,
                           std::chrono::seconds limit = std::chrono::seconds(300)) const;
  /// Not waited for.
  [[nodiscard]] Child Start(std::vector<std::string> arguments) const;

  /// A private folder of this test.
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

  /// A copy of an example task that the test may damage.
  [[nodiscard]] std::filesystem::path CopyTask(const std::string& name) const;

  /// Replaces text in a file; the test fails when it is not there.
  static void Edit(const std::filesystem::path& file, const std::string& from,
                   const std::string& to);

  std::vector<std::string> environment;  ///< NAME=VALUE, on top of ours

 private:
  [[nodiscard]] ProcessSpec Spec(std::vector<std::string> arguments) const;

  TemporaryFolder folder_;
};

/// Processes of ours that still run (kernelpro-runner, kernelpro-emulated-gpu,
/// kernelpro-reference).
[[nodiscard]] std::vector<std::string> LeftoverProcesses();

}  // namespace kernelpro::e2e
