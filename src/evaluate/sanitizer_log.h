// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kernelpro {

/// What one of compute-sanitizer's tools wrote into its log. The text may be forged by the
/// candidate that it watched; here it is only read.
struct SanitizerLog {
  /// The tool came to its end and counted ("ERROR SUMMARY", "RACECHECK SUMMARY").
  bool complete = false;
  /// Counted by the tool, or printed when it did not come to its end. Warnings are not among them.
  std::uint64_t errors = 0;
  std::uint64_t warnings = 0;  ///< racecheck

  /// The first finding: "Invalid __global__ write of size 4 bytes". Empty: none was printed.
  std::string kind;
  std::string kernel;       ///< "Scale(const float *, float *)"; empty: not told
  std::string source;       ///< "candidate.cu:12"; empty: not told
  bool misaligned = false;  ///< it is about alignment, not bounds
  std::string trouble;      ///< the first thing that the tool says about itself failing
};

/// Of the text of a log as compute-sanitizer writes it with --log-file. Any text is taken.
[[nodiscard]] SanitizerLog ParseSanitizerLog(std::string_view text);

/// "Invalid __global__ write of size 4 bytes in Scale(const float *, float *) (candidate.cu:12)".
[[nodiscard]] std::string DescribeFinding(const SanitizerLog& log);

}  // namespace kernelpro
