// SPDX-License-Identifier: Apache-2.0
#include "evaluate/precision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
#include "evaluate/precision_scan.h"

namespace kernelpro {
namespace {

constexpr std::array<std::string_view, 9> kNames = {"exact", "fp64", "fp32", "tf32", "bf16",
                                                    "fp16",  "fp8",  "fp4",  "int8"};
constexpr std::size_t kMostApproximate = 6;

std::optional<Precision> Parse(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  return found == kNames.end() ? std::nullopt
                               : std::optional(static_cast<Precision>(found - kNames.begin()));
}

const ArithmeticUse* Narrowest(const ArithmeticUses& found) {
  const auto worst = std::ranges::max_element(found.uses, {}, &ArithmeticUse::precision);
  return worst == found.uses.end() ? nullptr : &*worst;
}

}  // namespace

std::string_view Name(Precision precision) {
  return kNames.at(static_cast<std::size_t>(precision));
}

std::vector<std::string_view> Parts(std::string_view opcode) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t dot = opcode.find('.');
    parts.push_back(opcode.substr(0, dot));
    if (dot == opcode.npos) {
      return parts;
    }
    opcode.remove_prefix(dot + 1);
  }
}

std::string ShortKernelName(std::string_view mangled) {
  std::string_view rest = mangled;
  if (rest.starts_with("_Z")) {
    rest.remove_prefix(rest.starts_with("_ZN") ? 3 : 2);
    std::string_view last;
    while (!rest.empty() && rest[0] >= '1' && rest[0] <= '9') {
      std::size_t length = 0;
      while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9' && length < 10000) {
        length = length * 10 + static_cast<std::size_t>(rest[0] - '0');
        rest.remove_prefix(1);
      }
      last = rest.substr(0, length);
      rest.remove_prefix(last.size());
    }
    if (!last.empty()) {
      return Printable(last, 64);
    }
  }
  return Printable(mangled, 64);
}

UseCollector::UseCollector(const Task& task) {
  for (const TensorSpec& tensor : task.tensors) {
    f16_ = f16_ || tensor.dtype == DType::kF16;
    bf16_ = bf16_ || tensor.dtype == DType::kBF16;
    integers_ = integers_ || !IsFloat(tensor.dtype);
  }
}

bool UseCollector::Declares(Precision narrow) const {
  return (narrow == Precision::kFp16 && f16_) || (narrow == Precision::kBf16 && bf16_);
}

void UseCollector::Add(Precision precision, std::string_view instruction, std::string_view kernel,
                       std::string_view what) {
  // A task on integers says itself that its data are integers.
  if (precision == Precision::kInt8 && integers_) {
    return;
  }
  const bool known = std::ranges::any_of(
      found_.uses, [precision](const ArithmeticUse& use) { return use.precision == precision; });
  if (!known) {
    found_.uses.push_back({precision, Printable(instruction, 100), ShortKernelName(kernel), what});
  }
}

void UseCollector::AddApproximate(std::string_view instruction) {
  const std::string name = Printable(instruction, 40);
  if (found_.approximate.size() < kMostApproximate &&
      std::ranges::find(found_.approximate, name) == found_.approximate.end()) {
    found_.approximate.push_back(name);
  }
}

void UseCollector::AddMatrix(Precision operand, bool wide_sums, std::string_view instruction,
                             std::string_view kernel) {
  Add(Declares(operand) && wide_sums ? Precision::kFp32 : operand, instruction, kernel);
}

PrecisionClass Classify(std::string_view ptx, std::string_view sass, const Task& task) {
  const ArithmeticUses in_ptx = FindInPtx(ptx, task);
  const ArithmeticUses in_sass = FindInSass(sass, task);
  const ArithmeticUse* worst = Narrowest(in_ptx);
  const ArithmeticUse* machine = Narrowest(in_sass);
  // Where both say the same, the machine's own instruction is the better witness.
  const bool by_sass =
      machine != nullptr && (worst == nullptr || machine->precision >= worst->precision);
  if (by_sass) {
    worst = machine;
  }
  const std::string_view looked_at = sass.empty() ? "PTX" : "PTX and SASS";
  PrecisionClass result;
  if (worst == nullptr) {
    result.name = Name(Precision::kExact);
    result.evidence = fmt::format("no floating-point arithmetic in {}", looked_at);
  } else {
    result.name = Name(worst->precision);
    result.evidence = fmt::format("{} in {}: {} ({})", worst->instruction, worst->kernel,
                                  worst->what, by_sass ? "SASS" : looked_at);
  }
  if (!in_ptx.approximate.empty()) {
    result.evidence += fmt::format("; approximate: {}", fmt::join(in_ptx.approximate, ", "));
  }
  return result;
}

std::string WhyTooNarrow(const PrecisionClass& precision, const Policy& policy) {
  const std::optional<Precision> used = Parse(precision.name);
  const std::optional<Precision> lowest = Parse(policy.lowest_precision);
  if (!used || !lowest || *used <= *lowest) {
    return {};
  }
  return fmt::format("it computes in {} ({}); the task's policy asks for {}", precision.name,
                     precision.evidence, policy.lowest_precision);
}

}  // namespace kernelpro
