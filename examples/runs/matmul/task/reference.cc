// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernelpro_reference.h"

extern "C" void kernelpro_reference(const ReferenceArgs* args) {
  std::fill(args->c, args->c + args->m * args->n, 0.0);
  // The middle loop over k keeps the accesses to b and c sequential.
  for (int64_t row = 0; row < args->m; ++row) {
    double* c = args->c + row * args->n;
    for (int64_t k = 0; k < args->k; ++k) {
      const double a = args->a[row * args->k + k];
      const double* b = args->b + k * args->n;
      for (int64_t col = 0; col < args->n; ++col) {
        c[col] += a * b[col];
      }
    }
  }
}
