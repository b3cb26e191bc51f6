// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "kernelpro_reference.h"

extern "C" void kernelpro_reference(const ReferenceArgs* args) {
  for (int64_t segment = 0; segment < args->segments; ++segment) {
    const double* in = args->in + segment * args->length;
    args->out[segment] = std::accumulate(in, in + args->length, 0.0);
  }
}
