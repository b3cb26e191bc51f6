// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evaluate/precision.h"

/// What the scanners of PTX and SASS share.
namespace kernelpro {

/// "a.b.c" -> {"a", "b", "c"}.
[[nodiscard]] std::vector<std::string_view> Parts(std::string_view opcode);

/// "_Z6MatMulPKf" -> "MatMul"; other names as they are.
[[nodiscard]] std::string ShortKernelName(std::string_view mangled);

/// Collects the first use of each precision and rule.
class UseCollector {
 public:
  explicit UseCollector(const Task& task);

  void Add(Precision precision, std::string_view instruction, std::string_view kernel,
           std::string_view what = "computes");
  void AddApproximate(std::string_view instruction);

  /// A tensor core's operand type: exact when the task's inputs have it and the sums are fp32.
  void AddMatrix(Precision operand, bool wide_sums, std::string_view instruction,
                 std::string_view kernel);

  /// Whether a tensor of the task has this type.
  [[nodiscard]] bool Declares(Precision narrow) const;

  [[nodiscard]] ArithmeticUses Take() { return std::move(found_); }

 private:
  bool f16_ = false, bf16_ = false, integers_ = false;
  ArithmeticUses found_;
};

}  // namespace kernelpro
