// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.h"
#include "emulator/model/model.h"
#include "evaluate/evaluator.h"
#include "search/driver.h"
#include "task/task.h"
#include "toolchain/toolchain.h"

namespace kernelpro::search {

/// The real Assessor: toolchain, referee, profile, diagnosis. Everything it is given must outlive
/// it.
class Workbench final : public Assessor {
 public:
  Workbench(const Task& task, const Device& device, Toolchain& toolchain, Evaluator& evaluator,
            model::GpuSpec spec)
      : task_(task),
        device_(device),
        toolchain_(toolchain),
        evaluator_(evaluator),
        spec_(std::move(spec)) {}

  [[nodiscard]] Result<Assessment> Assess(const Candidate& candidate,
                                          const std::stop_token& stop) override;

 private:
  const Task& task_;
  const Device& device_;
  Toolchain& toolchain_;
  Evaluator& evaluator_;
  model::GpuSpec spec_;
};

/// What the compiler is asked for a candidate of a task.
[[nodiscard]] BuildRequest MakeBuildRequest(const Task& task, const Candidate& candidate,
                                            const DeviceInfo& device);

}  // namespace kernelpro::search
