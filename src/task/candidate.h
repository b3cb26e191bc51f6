// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

/// One complete source of a kernel with its build flags: a whole program, never a diff.
struct Candidate {
  std::string source;              ///< CUDA C++ that includes kernelpro_task.h
  std::vector<std::string> flags;  ///< extra nvcc flags, from the allowed list of toolchain/
};

}  // namespace kernelpro
