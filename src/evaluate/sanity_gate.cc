// SPDX-License-Identifier: Apache-2.0
#include "evaluate/sanity_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "evaluate/compare.h"
#include "evaluate/fill.h"
#include "evaluate/numeric.h"

namespace kernelpro {
namespace {

/// What a kernel that does not compute leaves in an output.
using Fake = std::function<std::vector<std::byte>(const GateTrial&)>;

std::vector<std::byte> Store(DType dtype, std::span<const double> values) {
  const std::size_t size = SizeOf(dtype);
  std::vector<std::byte> bytes(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    StoreElement(dtype, values[i], bytes.data() + i * size);
  }
  return bytes;
}

/// One output of a task under the trials.
class OutputGate {
 public:
  OutputGate(const Task& task, const TensorSpec& output, std::span<const GateTrial> trials)
      : task_(task), output_(output), trials_(trials) {}

  [[nodiscard]] std::string WhyUnfit() const {
    if (std::string why = WhyMagnitudeIsWrong(); !why.empty()) {
      return why;
    }
    if (Passes([this](const GateTrial& t) { return PoisonOf(t); })) {
      return Untold("writes nothing", "the reference's answer is never a finite number");
    }
    if (Passes([this](const GateTrial& t) {
          return Store(output_.dtype, std::vector<double>(Want(t).size(), 0.0));
        })) {
      return Untold("writes zeros", "the tolerance is too wide or the output is always about zero");
    }
    if (Passes([this](const GateTrial& t) { return FirstPercent(t); })) {
      return Untold("computes the first 1 % of it and writes zeros elsewhere",
                    "the tolerance is too wide or the rest is always about zero");
    }
    const std::map<std::size_t, double> means = MeanByWorkload();
    if (Passes([&](const GateTrial& t) {
          return Store(output_.dtype, std::vector<double>(Want(t).size(), means.at(t.workload)));
        })) {
      return Untold("writes one constant",
                    "the tolerance is too wide or the output does not depend on the inputs");
    }
    return WhyACopyPasses();
  }

 private:
  [[nodiscard]] const std::vector<double>& Want(const GateTrial& t) const {
    return t.trial->expected.at(output_.name);
  }

  [[nodiscard]] std::vector<std::byte> PoisonOf(const GateTrial& t) const {
    std::vector<std::byte> poison(Want(t).size() * SizeOf(output_.dtype));
    Poison(poison, 1);
    return poison;
  }

  /// Whether every trial takes it for right.
  [[nodiscard]] bool Passes(const Fake& fake) const {
    return std::ranges::all_of(trials_, [&](const GateTrial& t) {
      const auto magnitude = t.trial->magnitude.find(output_.name);
      return CompareOutput(output_, fake(t), Want(t), PoisonOf(t), task_.tolerance, Judge::kAll,
                           magnitude == t.trial->magnitude.end() ? std::span<const double>()
                                                                 : magnitude->second)
                 .failed_elements == 0;
    });
  }

  [[nodiscard]] std::vector<std::byte> FirstPercent(const GateTrial& t) const {
    std::vector<double> values = Want(t);
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(values.size() / 100), values.end(), 0.0);
    return Store(output_.dtype, values);
  }

  [[nodiscard]] std::map<std::size_t, double> MeanByWorkload() const {
    std::map<std::size_t, double> sums;
    std::map<std::size_t, double> counts;
    for (const GateTrial& t : trials_) {
      for (const double value : Want(t)) {
        const bool finite = std::isfinite(value);
        sums[t.workload] += finite ? value : 0;
        counts[t.workload] += finite ? 1 : 0;
      }
    }
    for (auto& [workload, sum] : sums) {
      sum /= std::max(1.0, counts[workload]);
    }
    return sums;
  }

  [[nodiscard]] std::string WhyACopyPasses() const {
    for (const TensorSpec& input : task_.tensors) {
      const auto bytes = [&input](const GateTrial& t) -> const std::vector<std::byte>& {
        return t.trial->inputs.at(input.name);
      };
      const bool fits = input.role == Role::kInput && input.dtype == output_.dtype &&
                        std::ranges::all_of(trials_, [&](const GateTrial& t) {
                          return bytes(t).size() == Want(t).size() * SizeOf(output_.dtype);
                        });
      if (!fits || !Passes(bytes)) {
        continue;
      }
      const bool is_the_answer = std::ranges::all_of(
          trials_, [&](const GateTrial& t) { return Store(output_.dtype, Want(t)) == bytes(t); });
      if (!is_the_answer) {
        return Untold(fmt::format("copies the input '{}'", input.name),
                      "the tolerance is too wide or the output hardly differs from the input");
      }
    }
    return {};
  }

  [[nodiscard]] std::string WhyMagnitudeIsWrong() const {
    for (const GateTrial& t : trials_) {
      const auto magnitude = t.trial->magnitude.find(output_.name);
      if (magnitude == t.trial->magnitude.end()) {
        continue;
      }
      for (std::size_t i = 0; i < Want(t).size(); ++i) {
        const double want = Want(t)[i];
        // The sum of the absolute terms bounds the sum; the rest is rounding of the reference.
        if (std::isfinite(want) &&
            !(std::fabs(magnitude->second[i]) * (1 + 1e-9) >= std::fabs(want))) {
          return fmt::format(
              "error_scale = \"magnitude\" does not fit output '{}': for the inputs' absolute "
              "values the reference gives {:.6g} in element {}, which is less than its answer "
              "{:.6g}, so the output is no sum of products of inputs; leave error_scale out",
              output_.name, magnitude->second[i], i, want);
        }
      }
    }
    return {};
  }

  [[nodiscard]] std::string Untold(std::string_view what, std::string_view why) const {
    return fmt::format(
        "it cannot tell a right kernel from one that {} in output '{}' on any checked workload: {} "
        "(tolerance: absolute {:g}, relative {:g})",
        what, output_.name, why, task_.tolerance.absolute, task_.tolerance.relative);
  }

  const Task& task_;
  const TensorSpec& output_;
  std::span<const GateTrial> trials_;
};

}  // namespace

std::string WhyUnfit(const Task& task, std::span<const GateTrial> trials) {
  for (const TensorSpec& tensor : task.tensors) {
    if (tensor.role == Role::kOutput) {
      if (std::string why = OutputGate(task, tensor, trials).WhyUnfit(); !why.empty()) {
        return why;
      }
    }
  }
  return {};
}

std::string WhyUnrepeatable(const TensorDoubles& first, const TensorDoubles& second) {
  for (const auto& [name, values] : first) {
    const std::vector<double>& again = second.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::bit_cast<std::uint64_t>(values[i]) != std::bit_cast<std::uint64_t>(again[i])) {
        return fmt::format(
            "two runs of the reference on the same inputs differ: element {} of '{}' is {:.17g} in "
            "one and {:.17g} in the other",
            i, name, values[i], again[i]);
      }
    }
  }
  return {};
}

}  // namespace kernelpro
