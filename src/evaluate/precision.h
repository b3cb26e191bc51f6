// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evaluate/evaluation.h"
#include "task/task.h"

namespace kernelpro {

/// Kinds of arithmetic, widest first; the order of the policy's words.
enum class Precision : std::uint8_t {
  kExact,  ///< no floating-point arithmetic: a copy
  kFp64,
  kFp32,
  kTf32,
  kBf16,
  kFp16,
  kFp8,
  kFp4,
  kInt8,  ///< floats quantised to small integers
};

/// "exact", "fp64", "fp32", ...
[[nodiscard]] std::string_view Name(Precision precision);

/// One instruction that says how a kernel computes.
struct ArithmeticUse {
  Precision precision = Precision::kFp32;
  std::string instruction;  ///< "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
  std::string kernel;
  std::string_view what = "computes";  ///< or "rounds values in between"
};

/// What was found in one listing: the first use of each precision, and the approximate functions
/// ("ex2.approx.ftz.f32"), which do not change the class.
struct ArithmeticUses {
  std::vector<ArithmeticUse> uses;
  std::vector<std::string> approximate;
};

/// Tensor types of the task decide what is a mere conversion: reading declared f16 inputs and
/// storing declared f16 outputs is none of the kernel's choice, and products of declared f16 or
/// bf16 inputs that a tensor core adds up in fp32 are exact. Everything else that is rounded to a
/// narrow type counts. What goes through global memory and back is not followed.
[[nodiscard]] ArithmeticUses FindInPtx(std::string_view ptx, const Task& task);

/// From cuobjdump -sass or nvdisasm: classes below fp32, and fp64.
[[nodiscard]] ArithmeticUses FindInSass(std::string_view sass, const Task& task);

/// The narrowest precision used. `sass` is empty where no disassembler is at hand; the evidence
/// says what was looked at.
[[nodiscard]] PrecisionClass Classify(std::string_view ptx, std::string_view sass,
                                      const Task& task);

/// The sentence of a policy violation when the class is below policy.lowest_precision; else empty.
[[nodiscard]] std::string WhyTooNarrow(const PrecisionClass& precision, const Policy& policy);

}  // namespace kernelpro
