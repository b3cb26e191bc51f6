// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "evaluate/evaluation.h"
#include "task/task.h"

namespace kernelpro {

/// Which elements of the output are judged.
enum class Judge : std::uint8_t {
  kAll,          ///< every element
  kWrittenOnly,  ///< those that differ from the poison (sampled runs write a part of the output)
};

/// Compares an output with the double-precision reference. An element is right when
///   |got - want| <= tolerance.absolute * rms(want) + tolerance.relative * |want|
/// with rms over the finite wanted elements of the tensor, so that the absolute part scales with
/// the answer instead of swallowing it. The test is written so that a NaN fails. Where `want` is
/// not finite, `got` must be the same infinity, or a NaN for a NaN. Integer outputs must be equal.
/// A wrong element that still holds its poison counts as unwritten as well.
[[nodiscard]] OutputError CompareOutput(const TensorSpec& tensor, std::span<const std::byte> got,
                                        std::span<const double> want,
                                        std::span<const std::byte> poison,
                                        const Tolerance& tolerance, Judge judge);

}  // namespace kernelpro
