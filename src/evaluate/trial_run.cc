// SPDX-License-Identifier: Apache-2.0
#include "evaluate/trial_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/rng.h"
#include "evaluate/fill.h"

namespace kernelpro {

Result<TrialRun> TrialRun::Create(const Task& task, const Workload& workload, Session& session,
                                  GpuTrials* copies) {
  TrialRun run(task, session);
  run.copies_ = copies;
  KP_ASSIGN_OR_RETURN(run.call_.arguments, TaskArgsImage(task, workload.axes));
  const ArgsLayout layout = TaskArgsLayout(task);
  std::size_t next = 0;
  for (const ArgsField& field : layout.fields) {
    if (field.kind != ArgsField::Kind::kTensor) {
      continue;
    }
    const TensorSpec& tensor = task.tensors[next++];
    KP_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(tensor, workload.axes));
    Buffer buffer;
    buffer.bytes = static_cast<std::uint64_t>(count) * SizeOf(tensor.dtype);
    KP_ASSIGN_OR_RETURN(buffer.id, session.Allocate({.name = tensor.name,
                                                     .bytes = buffer.bytes,
                                                     .read_only = tensor.role == Role::kInput}));
    run.call_.pointers.push_back({field.offset, buffer.id});
    run.buffers_.push_back(std::move(buffer));
  }
  return run;
}

Status TrialRun::Release() {
  for (const Buffer& buffer : buffers_) {
    KP_RETURN_IF_ERROR(session_->Free(buffer.id));
  }
  buffers_.clear();
  return Ok();
}

Status TrialRun::Prepare(const Trial& trial, std::uint64_t poison_seed) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const TensorSpec& tensor = task_->tensors[i];
    Buffer& buffer = buffers_[i];
    if (tensor.role == Role::kInput) {
      KP_RETURN_IF_ERROR(session_->Write(buffer.id, 0, trial.inputs.at(tensor.name)));
    } else {
      buffer.poison.resize(buffer.bytes);
      Poison(buffer.poison, Rng(poison_seed).Fork(i).Next());
      KP_RETURN_IF_ERROR(session_->Write(buffer.id, 0, buffer.poison));
    }
  }
  return Ok();
}

Result<std::optional<Condemnation>> TrialRun::CheckBuffers(const Trial& trial) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const TensorSpec& tensor = task_->tensors[i];
    KP_ASSIGN_OR_RETURN(const bool intact, session_->GuardsIntact(buffers_[i].id));
    if (!intact) {
      return std::optional(Condemnation{
          Verdict::kOutOfBounds,
          fmt::format("memory in front of or behind tensor '{}' was overwritten", tensor.name)});
    }
    if (tensor.role == Role::kInput) {
      std::vector<std::byte> now(buffers_[i].bytes);
      KP_RETURN_IF_ERROR(session_->Read(buffers_[i].id, 0, now));
      const std::vector<std::byte>& before = trial.inputs.at(tensor.name);
      if (Hash64(std::span<const std::byte>(now)) != Hash64(std::span<const std::byte>(before))) {
        return std::optional(Condemnation{
            Verdict::kInputModified, fmt::format("input tensor '{}' was changed", tensor.name)});
      }
    }
  }
  return std::optional<Condemnation>();
}

Status TrialRun::CompareOutputs(const Trial& trial, CallMode mode, Ruling* ruling) {
  const Judge judge = mode == CallMode::kCheck ? Judge::kAll : Judge::kWrittenOnly;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const TensorSpec& tensor = task_->tensors[i];
    if (tensor.role != Role::kOutput) {
      continue;
    }
    std::vector<std::byte> got(buffers_[i].bytes);
    KP_RETURN_IF_ERROR(session_->Read(buffers_[i].id, 0, got));
    const auto magnitude = trial.magnitude.find(tensor.name);
    ruling->errors.push_back(CompareOutput(
        tensor, got, trial.expected.at(tensor.name), buffers_[i].poison, task_->tolerance, judge,
        magnitude == trial.magnitude.end() ? std::span<const double>() : magnitude->second));
    ruling->written_elements +=
        ruling->errors.back().elements - ruling->errors.back().unwritten_elements;
    ruling->output_elements += buffers_[i].bytes / SizeOf(tensor.dtype);
  }
  return Ok();
}

Result<TrialRun::Ruling> TrialRun::Run(const Trial& trial, std::uint64_t poison_seed, CallMode mode,
                                       std::chrono::milliseconds limit,
                                       const std::stop_token& stop) {
  KP_RETURN_IF_ERROR(copies_ != nullptr ? PrepareOnGpu(trial, poison_seed)
                                        : Prepare(trial, poison_seed));
  call_.mode = mode;
  call_.wall_limit = limit;
  Ruling ruling;
  KP_ASSIGN_OR_RETURN(ruling.outcome, session_->Call(call_, stop));
  ruling.condemned = JudgeCall(ruling.outcome);
  if (ruling.condemned) {
    return ruling;
  }
  if (copies_ != nullptr) {
    KP_ASSIGN_OR_RETURN(ruling.condemned, CheckBuffersOnGpu(trial));
  } else {
    KP_ASSIGN_OR_RETURN(ruling.condemned, CheckBuffers(trial));
  }
  if (!ruling.condemned) {
    KP_RETURN_IF_ERROR(copies_ != nullptr ? CompareOnGpu(trial, &ruling)
                                          : CompareOutputs(trial, mode, &ruling));
  }
  return ruling;
}

std::optional<Condemnation> JudgeOutputs(const Workload& workload,
                                         const std::vector<OutputError>& errors) {
  for (const OutputError& e : errors) {
    if (e.failed_elements == 0) {
      continue;
    }
    const std::string where = workload.kind == Workload::Kind::kHidden
                                  ? "a hidden workload"
                                  : fmt::format("workload '{}'", workload.name);
    // Poison can meet a wrong value by chance in narrow integers, so a few are no evidence.
    if (e.unwritten_elements * 2 >= e.failed_elements) {
      return Condemnation{
          Verdict::kUnwrittenOutput,
          fmt::format("{} of {} elements of '{}' were never written on {} (first: element {})",
                      e.unwritten_elements, e.elements, e.tensor, where, e.first_failed)};
    }
    return Condemnation{
        Verdict::kWrongResult,
        fmt::format(
            "{} of {} elements of '{}' are wrong on {} (first: element {}; worst error {:.3g}, "
            "{:.3g} times what is allowed)",
            e.failed_elements, e.elements, e.tensor, where, e.first_failed, e.max_absolute,
            e.worst_ratio)};
  }
  return std::nullopt;
}

}  // namespace kernelpro
