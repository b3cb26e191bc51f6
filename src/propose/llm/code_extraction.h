// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kernelpro::agents {

/// A kernel out of a model's answer, or why there is none. The sentence is for the model as well as
/// for a person: it says what to do otherwise.
struct Extraction {
  std::string source;  ///< ends with a line end; empty when `why` is not
  std::string why;

  [[nodiscard]] bool ok() const { return why.empty(); }
};

/// Longer answers are not looked at: 64k tokens of code are less.
inline constexpr std::size_t kLongestAnswer = 256U << 10U;

/// The one block of an answer that defines kernelpro_run. Fences of ``` and ~~~, with or without a
/// language, indented or nested; text before and after; or a plain source without any fence. What
/// is no whole file is refused and never completed: two different files, several files that need
/// each other, patches, "rest unchanged", a block without an end. Sources whose < > & were escaped
/// as HTML are repaired when all of them were.
[[nodiscard]] Extraction ExtractKernel(std::string_view answer);

}  // namespace kernelpro::agents
