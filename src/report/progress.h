// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "search/driver.h"

namespace kernelpro::report {

/// One line of where a search stands: "12/40 evaluated  best 104 us (2.71x)  11 ok, 1 race  4:12
/// left".
[[nodiscard]] std::string ProgressLine(const search::Progress& progress);

/// Rewrites that line in place on a terminal; silent when `stream` is not one.
class TerminalProgress final : public search::ProgressObserver {
 public:
  explicit TerminalProgress(std::FILE* stream);
  void OnProgress(const search::Progress& progress) override;
  /// Clears the line, so that what is printed next starts clean.
  void Finish();

 private:
  std::FILE* stream_;
  bool terminal_;
};

}  // namespace kernelpro::report
