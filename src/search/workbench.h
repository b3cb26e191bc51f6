// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "device/device.h"
#include "emulator/model/model.h"
#include "evaluate/evaluator.h"
#include "search/assessor.h"
#include "task/task.h"
#include "toolchain/toolchain.h"

namespace kernelpro::search {

/// The emulator in front of a real GPU: it rejects what it finds wrong, and its counters make the
/// profile. It never rejects for a modelled time.
struct Filter {
  const Device& device;
  Evaluator& evaluator;
};

/// The real Assessor: toolchain, referee, profile, diagnosis. Everything it is given must outlive
/// it.
class Workbench final : public Assessor {
 public:
  Workbench(const Task& task, Device& device, Toolchain& toolchain, Evaluator& evaluator,
            model::GpuSpec spec, std::optional<Filter> filter = std::nullopt)
      : task_(task),
        device_(device),
        toolchain_(toolchain),
        evaluator_(evaluator),
        spec_(std::move(spec)),
        filter_(filter) {}

  [[nodiscard]] Result<Assessment> Assess(const Candidate& candidate,
                                          const std::stop_token& stop) override;
  [[nodiscard]] Diagnosis Rediagnose(const Profile& profile) const override;

 private:
  /// Profile, diagnosis and feedback from an evaluation of the emulator.
  [[nodiscard]] Status Explain(const Evaluation& emulated, const DeviceInfo& emulator,
                               Assessment* assessment) const;

  const Task& task_;
  Device& device_;
  Toolchain& toolchain_;
  Evaluator& evaluator_;
  model::GpuSpec spec_;
  std::optional<Filter> filter_;
};

/// What the compiler is asked for a candidate of a task.
[[nodiscard]] BuildRequest MakeBuildRequest(const Task& task, const Candidate& candidate,
                                            const DeviceInfo& device);

}  // namespace kernelpro::search
