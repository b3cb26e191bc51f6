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
///   |got - want| <= tolerance.absolute * scale + tolerance.relative * |want|
/// where scale is |magnitude[i]| when `magnitude` is given (ErrorScale::kMagnitude), else the root
/// mean square of the wanted elements that the type holds, so that the absolute part scales with
/// the answer instead of swallowing it. The test is written so that a NaN fails. Where `want` is
/// not finite, `got` must be the same infinity, or a NaN for a NaN; where `want` is finite and too
/// large for the type, the infinity of its sign is right as well. Integer outputs must be equal.
/// A wrong element that still holds its poison counts as unwritten as well.
[[nodiscard]] OutputError CompareOutput(const TensorSpec& tensor, std::span<const std::byte> got,
                                        std::span<const double> want,
                                        std::span<const std::byte> poison,
                                        const Tolerance& tolerance, Judge judge,
                                        std::span<const double> magnitude = {});

/// The rms(want) above: over the finite elements that the type can hold; 0 for integers.
[[nodiscard]] double RmsForTolerance(const TensorSpec& tensor, std::span<const double> want);

/// Beyond this a result of the type rounds to infinity, and then the infinity of its sign is right.
[[nodiscard]] double OverflowOf(DType dtype);

}  // namespace kernelpro
