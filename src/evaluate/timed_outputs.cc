// SPDX-License-Identifier: Apache-2.0
#include "evaluate/timed_outputs.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <span>
#include <thread>
#include <utility>

#include "evaluate/compare.h"

namespace kernelpro {
namespace {

/// How long outputs that are not there are given to come: then they were late, not missing.
constexpr std::chrono::milliseconds kLateness{60};
/// Both sides may be off by the task's tolerance.
constexpr double kTwoSides = 2;
constexpr std::size_t kCountsBytes = 2 * sizeof(std::uint64_t);

using Ruling = std::optional<Condemnation>;

}  // namespace

Result<TimedOutputs> TimedOutputs::Create(cuda::Gpu& gpu, Contestant& candidate,
                                          Contestant* baseline, const Masters& masters,
                                          std::uint32_t most_calls) {
  TimedOutputs outputs(gpu, candidate, baseline, masters);
  KP_ASSIGN_OR_RETURN(outputs.results_,
                      gpu.Allocate(most_calls * (kCountsBytes + sizeof(cuda::Comparison))));
  return outputs;
}

Result<std::vector<std::uint64_t>> TimedOutputs::Flaws(const Contents& contents) {
  KP_RETURN_IF_ERROR(gpu_->Zero(results_.address(), contents.size() * kCountsBytes));
  // The last call first: it is the one that would not be done yet.
  for (std::size_t i = contents.size(); i-- > 0;) {
    KP_RETURN_IF_ERROR(
        candidate_->CountFlaws(i, *masters_, contents[i], results_.address() + i * kCountsBytes));
  }
  std::vector<std::uint64_t> counts(contents.size() * 2);
  KP_RETURN_IF_ERROR(gpu_->Download(std::as_writable_bytes(std::span(counts)), results_.address()));
  return counts;
}

Result<Ruling> TimedOutputs::Written(const Contents& contents) {
  KP_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> counts, Flaws(contents));
  for (std::size_t i = 0; i < contents.size(); ++i) {
    if (counts[2 * i] != 0) {
      return Ruling(
          {Verdict::kInputModified,
           fmt::format("{} input elements were changed by timed call {}", counts[2 * i], i)});
    }
  }
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const std::uint64_t missing = counts[2 * i + 1];
    if (missing == 0) {
      continue;
    }
    std::this_thread::sleep_for(kLateness);
    KP_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> later, Flaws(contents));
    if (later[2 * i + 1] < missing) {
      return Ruling({Verdict::kTimingEscape,
                     fmt::format("timed call {} was said to be over while {} output elements were "
                                 "still to be written",
                                 i, missing)});
    }
    return Ruling({Verdict::kUnwrittenOutput,
                   fmt::format("{} output elements were never written by timed call {} of {}",
                               missing, i, contents.size())});
  }
  KP_ASSIGN_OR_RETURN(const std::string guard, candidate_->BrokenGuard(contents.size()));
  if (!guard.empty()) {
    return Ruling(
        {Verdict::kOutOfBounds,
         fmt::format("memory in front of or behind tensor '{}' was overwritten by a timed call",
                     guard)});
  }
  return Ruling();
}

Result<Ruling> TimedOutputs::Agree(const Contents& contents,
                                   const std::vector<std::size_t>& chosen) {
  const Task& task = candidate_->task();
  for (std::size_t t = 0; t < task.tensors.size(); ++t) {
    if (task.tensors[t].role == Role::kOutput) {
      KP_ASSIGN_OR_RETURN(Ruling ruling, AgreeOn(contents, chosen, t));
      if (ruling) {
        return ruling;
      }
    }
  }
  return Ruling();
}

Result<double> TimedOutputs::RmsOf(cuda::DevicePointer data, std::uint64_t count, DType dtype) {
  struct {
    double sum = 0;
    std::uint64_t finite = 0;
  } total;

  KP_RETURN_IF_ERROR(gpu_->Zero(results_.address(), sizeof total));
  gpu_->kernels().SumOfSquares(data, count, dtype, results_.address(), results_.address() + 8);
  KP_RETURN_IF_ERROR(
      gpu_->Download(std::as_writable_bytes(std::span(&total, 1)), results_.address()));
  return total.finite == 0 ? 0 : std::sqrt(total.sum / static_cast<double>(total.finite));
}

Result<cuda::CompareRule> TimedOutputs::RuleOf(std::size_t t) {
  const Task& task = candidate_->task();
  const TensorSpec& tensor = task.tensors[t];
  KP_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(tensor, candidate_->workload().axes));
  cuda::CompareRule rule;
  rule.dtype = tensor.dtype;
  rule.want_dtype = tensor.dtype;
  rule.count = static_cast<std::uint64_t>(count);
  rule.overflow = OverflowOf(tensor.dtype);
  if (IsFloat(tensor.dtype)) {
    KP_ASSIGN_OR_RETURN(const cuda::DevicePointer first, baseline_->Address(0, t));
    KP_ASSIGN_OR_RETURN(const double rms, RmsOf(first, rule.count, tensor.dtype));
    // Where errors are measured by the magnitude of what is summed, that of one trial stands for
    // all: the fills are alike.
    const auto magnitude = masters_->magnitude.find(tensor.name);
    rule.absolute = kTwoSides * task.tolerance.absolute *
                    (magnitude == masters_->magnitude.end() ? rms : magnitude->second);
    rule.relative = kTwoSides * task.tolerance.relative;
  }
  return rule;
}

Result<Ruling> TimedOutputs::AgreeOn(const Contents& contents,
                                     const std::vector<std::size_t>& chosen, std::size_t t) {
  KP_ASSIGN_OR_RETURN(cuda::CompareRule rule, RuleOf(t));
  std::vector<cuda::Comparison> found(chosen.size());
  KP_RETURN_IF_ERROR(gpu_->Upload(results_.address(), std::as_bytes(std::span(found))));
  for (std::size_t j = 0; j < chosen.size(); ++j) {
    KP_ASSIGN_OR_RETURN(const cuda::DevicePointer got, candidate_->Address(chosen[j], t));
    KP_ASSIGN_OR_RETURN(const cuda::DevicePointer want, baseline_->Address(j, t));
    rule.poison = candidate_->PoisonSeed(chosen[j], t, contents[chosen[j]]);
    gpu_->kernels().Compare(got, want, rule, results_.address() + j * sizeof found[0]);
  }
  KP_RETURN_IF_ERROR(gpu_->Download(std::as_writable_bytes(std::span(found)), results_.address()));
  for (std::size_t j = 0; j < chosen.size(); ++j) {
    if (found[j].failed != 0) {
      return Ruling(
          {Verdict::kWrongResult,
           fmt::format("timed call {} of {}: {} of {} elements of '{}' differ from what the "
                       "baseline computes from the same inputs (first: element {}; worst {:.3g} "
                       "times what is allowed)",
                       chosen[j], contents.size(), found[j].failed, rule.count,
                       candidate_->task().tensors[t].name, found[j].first_failed,
                       found[j].worst_ratio)});
    }
  }
  return Ruling();
}

}  // namespace kernelpro
