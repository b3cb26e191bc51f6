// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "device/device.h"
#include "evaluate/evaluation.h"
#include "toolchain/toolchain.h"

namespace kernelpro {

/// A verdict other than ok, with its sentence.
struct Condemnation {
  Verdict verdict = Verdict::kInfrastructureError;
  std::string reason;
};

[[nodiscard]] Condemnation JudgeCompileFailure(const CompileFailure& failure);

/// What the way a call ended says; nothing when it returned cudaSuccess without a fault that
/// counts. A read of uninitialised shared memory alone does not condemn: the value may never be
/// used.
[[nodiscard]] std::optional<Condemnation> JudgeCall(const CallOutcome& outcome);

}  // namespace kernelpro
