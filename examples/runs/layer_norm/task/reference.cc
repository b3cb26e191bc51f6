// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernelpro_reference.h"

extern "C" void kernelpro_reference(const ReferenceArgs* args) {
  const auto cols = static_cast<double>(args->cols);
  for (int64_t row = 0; row < args->rows; ++row) {
    const double* x = args->x + row * args->cols;
    double* y = args->y + row * args->cols;
    double mean = 0;
    for (int64_t col = 0; col < args->cols; ++col) {
      mean += x[col];
    }
    mean /= cols;
    double variance = 0;
    for (int64_t col = 0; col < args->cols; ++col) {
      variance += (x[col] - mean) * (x[col] - mean);
    }
    variance /= cols;
    const double scale = 1 / std::sqrt(variance + 1e-5);
    for (int64_t col = 0; col < args->cols; ++col) {
      y[col] = (x[col] - mean) * scale * args->gain[col] + args->bias[col];
    }
  }
}
