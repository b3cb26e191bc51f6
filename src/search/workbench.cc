// SPDX-License-Identifier: Apache-2.0
#include "search/workbench.h"

#include <algorithm>

#include "diagnose/diagnose.h"
#include "profile/emulation_profile.h"

namespace kernelpro::search {
namespace {

/// The workload that weighs most in the score: its profile is the one that is explained.
const WorkloadTime& Dominant(const Evaluation& evaluation) {
  return *std::max_element(evaluation.times.begin(), evaluation.times.end(),
                           [](const WorkloadTime& a, const WorkloadTime& b) {
                             return a.weight * a.time_us < b.weight * b.time_us;
                           });
}

const AxisValues& AxesOf(const Task& task, const std::string& workload) {
  return std::find_if(task.workloads.begin(), task.workloads.end(),
                      [&workload](const Workload& w) { return w.name == workload; })
      ->axes;
}

Result<TaskNeeds> Needs(const Task& task, const AxisValues& axes) {
  TaskNeeds needs;
  KP_ASSIGN_OR_RETURN(needs.flops, FlopCount(task, axes));
  KP_ASSIGN_OR_RETURN(needs.compulsory_bytes, CompulsoryBytes(task, axes));
  for (const TensorSpec& tensor : task.tensors) {
    const bool is_float = tensor.dtype == DType::kF64 || tensor.dtype == DType::kF32 ||
                          tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
    if (is_float) {
      needs.widest_float_bytes =
          std::max<double>(needs.widest_float_bytes.value_or(0), SizeOf(tensor.dtype));
    }
  }
  return needs;
}

}  // namespace

BuildRequest MakeBuildRequest(const Task& task, const Candidate& candidate,
                              const DeviceInfo& device) {
  BuildRequest request;
  request.source = candidate.source;
  request.headers = {{"kernelpro_task.h", CandidateHeader(task)}};
  request.flags = candidate.flags;
  request.libraries = task.policy.libraries;
  request.arch = device.arch;
  return request;
}

namespace {

/// Verdicts of the emulator that say nothing about the candidate on a real GPU.
bool LetsPass(Verdict verdict) {
  return verdict == Verdict::kOk || verdict == Verdict::kUnsupported ||
         verdict == Verdict::kInfrastructureError || verdict == Verdict::kImpossibleTime;
}

}  // namespace

Result<Assessment> Workbench::Assess(const Candidate& candidate, const std::stop_token& stop) {
  device_.Prepare();
  KP_ASSIGN_OR_RETURN(const BuildOutcome build,
                      toolchain_.Compile(MakeBuildRequest(task_, candidate, device_.info()), stop));
  Assessment assessment;
  Evaluation emulated;
  if (filter_ && build.build) {
    KP_ASSIGN_OR_RETURN(emulated, filter_->evaluator.Evaluate(build, stop));
    if (!LetsPass(emulated.verdict)) {
      emulated.notes.emplace_back("found by the emulator; the GPU was not asked");
      assessment.evaluation = std::move(emulated);
      return assessment;
    }
  }
  KP_ASSIGN_OR_RETURN(assessment.evaluation, evaluator_.Evaluate(build, stop));
  Evaluation& evaluation = assessment.evaluation;
  if (filter_ && build.build) {
    if (emulated.verdict == Verdict::kOk) {
      evaluation.modelled_us = emulated.time_us;
    } else {
      evaluation.notes.push_back("the emulator in front of the GPU could not judge it: " +
                                 emulated.reason);
    }
  }
  if (evaluation.verdict != Verdict::kOk) {
    return assessment;
  }
  if (device_.info().emulated) {
    KP_RETURN_IF_ERROR(Explain(evaluation, device_.info(), &assessment));
  } else if (emulated.verdict == Verdict::kOk && filter_) {
    KP_RETURN_IF_ERROR(Explain(emulated, filter_->device.info(), &assessment));
  }
  return assessment;
}

Diagnosis Workbench::Rediagnose(const Profile& profile) const {
  return Diagnose(profile, (filter_ ? filter_->device : device_).info().hardware);
}

Status Workbench::Explain(const Evaluation& emulated, const DeviceInfo& emulator,
                          Assessment* assessment) const {
  const WorkloadTime& dominant = Dominant(emulated);
  KP_ASSIGN_OR_RETURN(const TaskNeeds needs, Needs(task_, AxesOf(task_, dominant.workload)));
  assessment->profile = FromEmulation(dominant.launches, emulator, spec_, needs);
  assessment->diagnosis = Diagnose(assessment->profile, emulator.hardware);
  assessment->feedback = FeedbackText(assessment->diagnosis, assessment->profile);
  return Ok();
}

}  // namespace kernelpro::search
