// SPDX-License-Identifier: Apache-2.0
#include "evaluate/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "evaluate/numeric.h"

namespace kernelpro {
namespace {

/// What rounds to infinity in the type is at or above this.
double Overflow(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0x1.ffffffp127;
    case DType::kF16:
      return 65520;
    case DType::kBF16:
      return 0x1.ffp127;
    default:
      return std::numeric_limits<double>::infinity();
  }
}

/// Of the values that the type holds: one that overflows it would make any error look small.
double Rms(std::span<const double> values, double overflow) {
  double sum = 0;
  std::size_t count = 0;
  for (const double v : values) {
    if (std::fabs(v) < overflow) {
      sum += v * v;
      ++count;
    }
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

/// Error as a multiple of what is allowed: <= 1 is right, anything else (NaN too) is wrong.
double ErrorRatio(double got, double want, double allowed, double overflow) {
  if (std::isnan(want)) {
    return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  }
  if (std::isinf(want)) {
    return got == want ? 0 : std::numeric_limits<double>::infinity();
  }
  if (got == want) {
    return 0;
  }
  if (std::fabs(want) >= overflow && std::isinf(got) && std::signbit(got) == std::signbit(want)) {
    return 0;
  }
  const double error = std::fabs(got - want);
  return error <= allowed                      ? error / allowed
         : std::isfinite(error) && allowed > 0 ? error / allowed
                                               : std::numeric_limits<double>::infinity();
}

void NoteError(double got, double want, double floor, OutputError* result) {
  const double error = std::fabs(got - want);
  if (!std::isfinite(error)) {
    return;
  }
  result->max_absolute = std::max(result->max_absolute, error);
  if (std::fabs(want) > floor) {
    result->max_relative = std::max(result->max_relative, error / std::fabs(want));
  }
}

}  // namespace

OutputError CompareOutput(const TensorSpec& tensor, std::span<const std::byte> got,
                          std::span<const double> want, std::span<const std::byte> poison,
                          const Tolerance& tolerance, Judge judge,
                          std::span<const double> magnitude) {
  const std::size_t size = SizeOf(tensor.dtype);
  KP_CHECK(got.size() == want.size() * size && poison.size() == got.size()) << tensor.name;
  KP_CHECK(magnitude.empty() || magnitude.size() == want.size()) << tensor.name;
  OutputError result;
  result.tensor = tensor.name;
  const bool exact = !IsFloat(tensor.dtype);
  const double overflow = Overflow(tensor.dtype);
  const double rms = exact || !magnitude.empty() ? 0 : Rms(want, overflow);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const bool untouched = std::memcmp(got.data() + i * size, poison.data() + i * size, size) == 0;
    if (untouched && judge == Judge::kWrittenOnly) {
      continue;
    }
    ++result.elements;
    const double value = LoadElement(tensor.dtype, got.data() + i * size);
    const double floor =
        exact ? 0 : tolerance.absolute * (magnitude.empty() ? rms : std::fabs(magnitude[i]));
    const double allowed = exact ? 0 : floor + tolerance.relative * std::fabs(want[i]);
    const double ratio = ErrorRatio(value, want[i], allowed, overflow);
    if (ratio > result.worst_ratio) {
      result.worst_ratio = ratio;
      result.worst = static_cast<std::int64_t>(i);
    }
    NoteError(value, want[i], floor, &result);
    if (!(ratio <= 1)) {
      ++result.failed_elements;
      result.unwritten_elements += untouched ? 1 : 0;
      if (result.first_failed < 0) {
        result.first_failed = static_cast<std::int64_t>(i);
      }
    }
  }
  return result;
}

double RmsForTolerance(const TensorSpec& tensor, std::span<const double> want) {
  return IsFloat(tensor.dtype) ? Rms(want, Overflow(tensor.dtype)) : 0;
}

double OverflowOf(DType dtype) {
  return Overflow(dtype);
}

}  // namespace kernelpro
