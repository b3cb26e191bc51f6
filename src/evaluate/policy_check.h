// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "task/task.h"
#include "toolchain/binary_facts.h"

namespace kernelpro {

/// Why a candidate's library breaks the policy before any of its code runs; empty when it does not:
/// - it needs a library other than the CUDA runtime, the C and C++ runtimes and what the task's
///   policy allows;
/// - it imports a function that loads code, starts or reads processes, changes page protection, or
///   resets or shares the GPU's context. cudaGetDriverEntryPoint gives any function of the driver;
///   it is let pass when cuTensorMapEncode... (TMA descriptors) is all that its data ask for by
///   name;
/// - it defines a function that belongs to the C library, the CUDA runtime or the driver, which
///   code that judges it might call by mistake.
/// These are facts about the binary, which macros and aliases in the source do not hide. They are
/// the first line; what holds against code that is written into memory by hand is the sandbox.
[[nodiscard]] std::string WhyForbiddenBinary(const BinaryFacts& facts, const Policy& policy);

}  // namespace kernelpro
