// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "device/cuda/gpu.h"
#include "evaluate/contestant.h"
#include "evaluate/outcome.h"

namespace kernelpro {

/// What each call of one row works on, in order of the calls (see Contestant::Fill).
using Contents = std::vector<std::uint64_t>;

/// Looks at what timed calls left behind.
class TimedOutputs {
 public:
  /// For rows of at most `most_calls`. The baseline may be null.
  [[nodiscard]] static Result<TimedOutputs> Create(cuda::Gpu& gpu, Contestant& candidate,
                                                   Contestant* baseline, const Masters& masters,
                                                   std::uint32_t most_calls);

  /// Of each call two counts: input elements that were changed, output elements that hold poison.
  [[nodiscard]] Result<std::vector<std::uint64_t>> Flaws(const Contents& contents);

  /// Every call of the row: inputs and guard bands as they were, every output written.
  [[nodiscard]] Result<std::optional<Condemnation>> Written(const Contents& contents);

  /// The baseline's call j worked on the contents of the candidate's call chosen[j]: their outputs
  /// agree within twice the task's tolerance.
  [[nodiscard]] Result<std::optional<Condemnation>> Agree(const Contents& contents,
                                                          const std::vector<std::size_t>& chosen);

 private:
  TimedOutputs(cuda::Gpu& gpu, Contestant& candidate, Contestant* baseline, const Masters& masters)
      : gpu_(&gpu), candidate_(&candidate), baseline_(baseline), masters_(&masters) {}

  [[nodiscard]] Result<double> RmsOf(cuda::DevicePointer data, std::uint64_t count, DType dtype);
  [[nodiscard]] Result<cuda::CompareRule> RuleOf(std::size_t tensor);
  [[nodiscard]] Result<std::optional<Condemnation>> AgreeOn(const Contents& contents,
                                                            const std::vector<std::size_t>& chosen,
                                                            std::size_t tensor);

  cuda::Gpu* gpu_;
  Contestant* candidate_;
  Contestant* baseline_;
  const Masters* masters_;
  cuda::Memory results_;
};

}  // namespace kernelpro
