// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>

#include "evaluate/evaluation.h"

namespace kernelpro {
namespace {

constexpr std::array<std::string_view, 17> kNames = {"ok",
                                                     "compile_error",
                                                     "policy_violation",
                                                     "launch_error",
                                                     "runtime_error",
                                                     "wrong_result",
                                                     "unwritten_output",
                                                     "nondeterministic",
                                                     "out_of_bounds",
                                                     "input_modified",
                                                     "race",
                                                     "timeout",
                                                     "out_of_memory",
                                                     "timing_escape",
                                                     "impossible_time",
                                                     "unsupported",
                                                     "infrastructure_error"};

}  // namespace

std::string_view Name(Verdict verdict) {
  return kNames.at(static_cast<std::size_t>(verdict));
}

std::optional<Verdict> ParseVerdict(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames.at(i) == name) {
      return static_cast<Verdict>(i);
    }
  }
  return std::nullopt;
}

}  // namespace kernelpro
