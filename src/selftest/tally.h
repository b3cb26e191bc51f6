// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "evaluate/evaluation.h"

namespace kernelpro::selftest {

/// What one fixture showed on one device.
struct FixtureResult {
  std::string name, attack;
  std::vector<Verdict> expected;  ///< on this device
  bool possible = true;           ///< false: the attack needs another device, nothing was run
  Verdict got = Verdict::kInfrastructureError;
  std::string reason;  ///< of the hostile candidate's verdict
  Verdict twin = Verdict::kInfrastructureError;
  std::string twin_reason;
  double ms = 0;  ///< to evaluate both, without compiling

  [[nodiscard]] bool HostileRight() const;

  [[nodiscard]] bool TwinRight() const { return twin == Verdict::kOk; }
};

struct Tally {
  std::size_t total = 0;  ///< fixtures that are possible on the device
  std::size_t hostile_right = 0, twins_right = 0, not_possible = 0;

  /// Nothing to run is no success.
  [[nodiscard]] bool AllRight() const {
    return total > 0 && hostile_right == total && twins_right == total;
  }
};

[[nodiscard]] Tally Count(const std::vector<FixtureResult>& results);

/// "12 of 12 hostile fixtures got their verdict, 12 of 12 twins pass (3 not possible here)"
[[nodiscard]] std::string Summary(const Tally& tally);

/// Names of verdicts, " or " between them.
[[nodiscard]] std::string Names(const std::vector<Verdict>& verdicts);

/// The rows of the table and the line above them. `width` is that of the longest name.
[[nodiscard]] std::string TableHead(std::size_t width);
/// One row, and below it the reasons where something came out otherwise than it must.
[[nodiscard]] std::string TableRow(const FixtureResult& result, std::size_t width);

/// {device, fixtures: [{name, attack, expected, got, reason, twin, twin_reason, ms}],
/// hostile_right, twins_right, total}; `got` and `twin` of a fixture that is not possible are null.
[[nodiscard]] nlohmann::ordered_json ResultsJson(const std::string& device,
                                                 const std::vector<FixtureResult>& results);

}  // namespace kernelpro::selftest
