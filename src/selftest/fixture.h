// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evaluate/evaluation.h"

namespace kernelpro::selftest {

/// One way to fool an evaluation: a hostile candidate, its honest twin, and what must come out.
/// A folder with fixture.toml, hostile.cu and twin.cu.
struct Fixture {
  std::string name;              ///< of the folder
  std::filesystem::path folder;  ///< empty when parsed from text
  std::string task;              ///< name of a folder under tasks/
  std::string attack;            ///< one sentence
  std::vector<Verdict> expected;
  std::vector<Verdict> expected_emulator;  ///< where it differs; else empty
  bool on_emulator = false, on_cuda = false;
  std::vector<std::string> flags;       ///< of the hostile candidate
  std::vector<std::string> twin_flags;  ///< of its twin
  bool quick = false;                   ///< one of the subset for every build

  [[nodiscard]] bool PossibleOn(bool emulated) const { return emulated ? on_emulator : on_cuda; }

  /// The verdicts of which the hostile candidate must get one. The twin must be ok.
  [[nodiscard]] const std::vector<Verdict>& ExpectedOn(bool emulated) const {
    return emulated && !expected_emulator.empty() ? expected_emulator : expected;
  }
};

/// The text of a fixture.toml. Errors (kParse, kInvalidArgument) name file and line.
[[nodiscard]] Result<Fixture> ParseFixture(std::string_view toml, std::string_view shown_path);

/// All fixtures of `suite` (a folder that holds fixtures/ and tasks/), by name. kNotFound when the
/// folder, a source file or a task is missing.
[[nodiscard]] Result<std::vector<Fixture>> LoadFixtures(const std::filesystem::path& suite);

/// Those whose name matches the shell pattern `only` (empty: all), and are quick if `quick`.
[[nodiscard]] std::vector<Fixture> Select(const std::vector<Fixture>& fixtures,
                                          const std::string& only, bool quick);

/// The folder of the suite: `given` unless empty, else ../share/kernelpro/exploits from the
/// executable, else the source tree that this was built from. kNotFound says where it was looked
/// for.
[[nodiscard]] Result<std::filesystem::path> FindSuite(const std::filesystem::path& given);

}  // namespace kernelpro::selftest
