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

double Rms(std::span<const double> values) {
  double sum = 0;
  std::size_t count = 0;
  for (const double v : values) {
    if (std::isfinite(v)) {
      sum += v * v;
      ++count;
    }
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

/// Error as a multiple of what is allowed: <= 1 is right, anything else (NaN too) is wrong.
double ErrorRatio(double got, double want, double allowed) {
  if (std::isnan(want)) {
    return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  }
  if (std::isinf(want)) {
    return got == want ? 0 : std::numeric_limits<double>::infinity();
  }
  if (got == want) {
    return 0;
  }
  const double error = std::fabs(got - want);
  return error <= allowed                      ? error / allowed
         : std::isfinite(error) && allowed > 0 ? error / allowed
                                               : std::numeric_limits<double>::infinity();
}

}  // namespace

OutputError CompareOutput(const TensorSpec& tensor, std::span<const std::byte> got,
                          std::span<const double> want, std::span<const std::byte> poison,
                          const Tolerance& tolerance, Judge judge) {
  const std::size_t size = SizeOf(tensor.dtype);
  KP_CHECK(got.size() == want.size() * size && poison.size() == got.size()) << tensor.name;
  OutputError result;
  result.tensor = tensor.name;
  const bool exact = !IsFloat(tensor.dtype);
  const double floor = exact ? 0 : tolerance.absolute * Rms(want);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const bool untouched = std::memcmp(got.data() + i * size, poison.data() + i * size, size) == 0;
    if (untouched && judge == Judge::kWrittenOnly) {
      continue;
    }
    ++result.elements;
    const double value = LoadElement(tensor.dtype, got.data() + i * size);
    const double allowed = exact ? 0 : floor + tolerance.relative * std::fabs(want[i]);
    const double ratio = ErrorRatio(value, want[i], allowed);
    result.worst_ratio = std::max(result.worst_ratio, ratio);
    const double error = std::fabs(value - want[i]);
    if (std::isfinite(error)) {
      result.max_absolute = std::max(result.max_absolute, error);
      if (std::fabs(want[i]) > floor) {
        result.max_relative = std::max(result.max_relative, error / std::fabs(want[i]));
      }
    }
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

}  // namespace kernelpro
