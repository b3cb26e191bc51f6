// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/rng.h"
#include "evaluate/evaluator.h"
#include "evaluate/inputs.h"
#include "evaluate/outcome.h"
#include "evaluate/reference.h"
#include "evaluate/trial_run.h"

namespace kernelpro {
namespace {

/// A modelled or measured time below this share of the floor cannot be: something was not computed.
constexpr double kPossibleShareOfFloor = 0.9;

bool IsTimed(const Workload& w) {
  return w.kind == Workload::Kind::kTimed;
}

/// Keeps the worst of two errors of one tensor.
void Merge(const std::vector<OutputError>& from, std::vector<OutputError>* into) {
  if (into->empty()) {
    *into = from;
    return;
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    OutputError& kept = (*into)[i];
    const OutputError& e = from[i];
    if (e.worst_ratio > kept.worst_ratio || e.failed_elements > kept.failed_elements) {
      const double absolute = std::max(kept.max_absolute, e.max_absolute);
      const double relative = std::max(kept.max_relative, e.max_relative);
      kept = e;
      kept.max_absolute = absolute;
      kept.max_relative = relative;
    }
  }
}

class Referee final : public Evaluator {
 public:
  Referee(const Task& task, Device& device, EvaluatorOptions options, std::uint64_t seed,
          std::filesystem::path library, std::filesystem::path program)
      : task_(task),
        device_(device),
        options_(std::move(options)),
        reference_(task_, std::move(library), std::move(program)),
        trials_(task_, reference_, seed),
        poison_(Rng(seed).Fork(0x706f69736f6eULL)) {}

  /// Runs the reference once, so that a broken one is found before any candidate is.
  [[nodiscard]] Status Prove() {
    for (std::size_t w = 0; w < task_.workloads.size(); ++w) {
      if (!IsTimed(task_.workloads[w])) {
        KP_ASSIGN_OR_RETURN([[maybe_unused]] const Trial* trial, trials_.Get(w, 0, {}));
        return Ok();
      }
    }
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("task '{}' has no workload of kind \"checked\" to judge candidates by",
                            task_.name));
  }

  [[nodiscard]] Result<Evaluation> Evaluate(const BuildOutcome& build,
                                            const std::stop_token& stop) override {
    const auto start = std::chrono::steady_clock::now();
    Evaluation evaluation;
    evaluation.time_provenance =
        device_.info().emulated ? Provenance::kModelled : Provenance::kMeasured;
    if (build.failure) {
      Condemn(JudgeCompileFailure(*build.failure), &evaluation);
    } else {
      KP_RETURN_IF_ERROR(Examine(*build.build, stop, &evaluation));
    }
    evaluation.evaluate_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return evaluation;
  }

 private:
  static void Condemn(Condemnation condemnation, Evaluation* evaluation) {
    evaluation->verdict = condemnation.verdict;
    evaluation->reason = std::move(condemnation.reason);
    evaluation->time_us = 0;
  }

  [[nodiscard]] Status Examine(const Build& build, const std::stop_token& stop,
                               Evaluation* evaluation) {
    SessionRequest request;
    request.library = build.library;
    for (const auto& [name, figures] : build.kernels) {
      request.kernels[name] = {.registers_per_thread = figures.registers,
                               .static_shared_bytes = figures.shared_bytes,
                               .local_bytes_per_thread = figures.stack_bytes,
                               .spill_store_bytes = figures.spill_store_bytes,
                               .spill_load_bytes = figures.spill_load_bytes};
    }
    KP_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, device_.Open(request));
    evaluation->verdict = Verdict::kOk;
    for (std::size_t w = 0; w < task_.workloads.size(); ++w) {
      if (!IsTimed(task_.workloads[w])) {
        KP_RETURN_IF_ERROR(Check(w, *session, stop, evaluation));
        if (evaluation->verdict != Verdict::kOk) {
          return Ok();
        }
      }
    }
    for (std::size_t w = 0; w < task_.workloads.size(); ++w) {
      if (IsTimed(task_.workloads[w])) {
        KP_RETURN_IF_ERROR(Time(w, *session, stop, evaluation));
        if (evaluation->verdict != Verdict::kOk) {
          return Ok();
        }
      }
    }
    return Ok();
  }

  /// Independent inputs, then the last once more: a right answer must also be right when asked
  /// again.
  [[nodiscard]] Status Check(std::size_t w, Session& session, const std::stop_token& stop,
                             Evaluation* evaluation) {
    const Workload& workload = task_.workloads[w];
    KP_ASSIGN_OR_RETURN(TrialRun run, TrialRun::Create(task_, workload, session));
    WorkloadCheck check;
    check.workload = workload.name;
    check.hidden = workload.kind == Workload::Kind::kHidden;
    const std::uint32_t seeds = std::max(1U, options_.seeds_per_workload);
    for (std::uint32_t call = 0; call <= seeds; ++call) {
      const bool repeat = call == seeds;
      KP_ASSIGN_OR_RETURN(const Trial* trial, trials_.Get(w, repeat ? seeds - 1 : call, stop));
      KP_ASSIGN_OR_RETURN(TrialRun::Ruling ruling, run.Run(*trial, poison_.Next(), CallMode::kCheck,
                                                           options_.call_limit, stop));
      Keep(ruling.outcome.faults, evaluation);
      if (!ruling.condemned) {
        Merge(ruling.errors, &check.errors);
        ruling.condemned = JudgeOutputs(workload, ruling.errors);
        if (ruling.condemned && repeat) {
          ruling.condemned = Condemnation{
              Verdict::kNondeterministic,
              "right at first, but with the same inputs once more: " + ruling.condemned->reason};
        }
      }
      if (ruling.condemned) {
        evaluation->checks.push_back(std::move(check));
        Condemn(std::move(*ruling.condemned), evaluation);
        return Ok();
      }
      check.seeds += repeat ? 0 : 1;
    }
    evaluation->checks.push_back(std::move(check));
    return run.Release();
  }

  [[nodiscard]] Status Time(std::size_t w, Session& session, const std::stop_token& stop,
                            Evaluation* evaluation) {
    const Workload& workload = task_.workloads[w];
    KP_ASSIGN_OR_RETURN(TrialRun run, TrialRun::Create(task_, workload, session));
    KP_ASSIGN_OR_RETURN(const Trial* trial, trials_.Get(w, 0, stop));
    KP_ASSIGN_OR_RETURN(TrialRun::Ruling ruling, run.Run(*trial, poison_.Next(), CallMode::kTime,
                                                         options_.call_limit, stop));
    Keep(ruling.outcome.faults, evaluation);
    if (!ruling.condemned) {
      ruling.condemned = JudgeTimedOutputs(workload, ruling);
    }
    WorkloadTime time;
    time.workload = workload.name;
    time.weight = workload.weight;
    time.time_us = ruling.outcome.device_us;
    KP_ASSIGN_OR_RETURN(time.floor_us, Floor(workload));
    if (!ruling.condemned && !(time.time_us >= kPossibleShareOfFloor * time.floor_us)) {
      ruling.condemned = Condemnation{
          Verdict::kImpossibleTime,
          fmt::format(
              "{:.3g} us on workload '{}' is below the floor of {:.3g} us that its bytes and "
              "flops need on this device",
              time.time_us, workload.name, time.floor_us)};
    }
    time.launches = std::move(ruling.outcome.launches);
    evaluation->times.push_back(std::move(time));
    if (ruling.condemned) {
      Condemn(std::move(*ruling.condemned), evaluation);
      return Ok();
    }
    evaluation->time_us += workload.weight * evaluation->times.back().time_us;
    return run.Release();
  }

  /// A timed call on the emulator executes a sample of the blocks. What they wrote must be right,
  /// or a candidate could be honest on the small shapes only. A call of several launches, of a
  /// launch and fills or copies (which are not sampled), or with atomics or in-place passes between
  /// blocks, works on partial data when sampled: there only "wrote something" can be asked.
  [[nodiscard]] std::optional<Condemnation> JudgeTimedOutputs(
      const Workload& workload, const TrialRun::Ruling& ruling) const {
    if (ruling.written_elements == 0) {
      return Condemnation{Verdict::kUnwrittenOutput,
                          fmt::format("nothing was written on workload '{}'", workload.name)};
    }
    const auto& launches = ruling.outcome.launches;
    // Fills and copies take time too: where one launch took all of it there were none.
    constexpr double kRounding = 1e-6;
    const bool independent = launches.size() == 1 && launches[0].report.atomics.operations == 0 &&
                             ruling.outcome.device_us <= launches[0].time.time_us * (1 + kRounding);
    return independent ? JudgeOutputs(workload, ruling.errors) : std::nullopt;
  }

  [[nodiscard]] Result<double> Floor(const Workload& workload) const {
    const Hardware& hardware = device_.info().hardware;
    KP_ASSIGN_OR_RETURN(const double bytes, CompulsoryBytes(task_, workload.axes));
    KP_ASSIGN_OR_RETURN(const double flops, FlopCount(task_, workload.axes));
    // What fits in the L2 cache may have been there: only data beyond it must come from DRAM.
    const double cached = static_cast<double>(device_.info().l2_bytes);
    const double memory_s = hardware.dram_peak_bytes_per_s > 0
                                ? std::max(0.0, bytes - cached) / hardware.dram_peak_bytes_per_s
                                : 0;
    // Policy may allow tensor cores, whose peak is not known here; then flops give no floor.
    const double compute_s =
        task_.policy.lowest_precision == "fp32" && hardware.fp32_flops_per_s > 0
            ? flops / hardware.fp32_flops_per_s
            : 0;
    return std::max(memory_s, compute_s) * 1e6;
  }

  static void Keep(const std::vector<simt::Fault>& faults, Evaluation* evaluation) {
    constexpr std::size_t kMost = 16;
    for (const simt::Fault& fault : faults) {
      const auto same = [&fault](const simt::Fault& kept) {
        return kept.kind == fault.kind && kept.kernel == fault.kernel &&
               kept.instruction == fault.instruction;
      };
      if (evaluation->faults.size() < kMost && std::ranges::none_of(evaluation->faults, same)) {
        evaluation->faults.push_back(fault);
      }
    }
  }

  Task task_;
  Device& device_;
  EvaluatorOptions options_;
  Reference reference_;
  Trials trials_;
  Rng poison_;
};

Result<std::filesystem::path> ReferenceLibrary(const Task& task,
                                               const std::filesystem::path& cache_folder) {
  ReferenceRequest request;
  KP_ASSIGN_OR_RETURN(request.source, ReadFile(task.reference));
  request.header = ReferenceHeader(task);
  request.file_name = task.reference.string();
  KP_ASSIGN_OR_RETURN(const BuildOutcome outcome,
                      CompileReference(request, cache_folder, ToolchainLimits{}, {}));
  if (outcome.failure) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the reference of task '{}' does not compile: {}", task.name,
                            JudgeCompileFailure(*outcome.failure).reason));
  }
  return outcome.build->library;
}

}  // namespace

Result<std::unique_ptr<Evaluator>> Evaluator::Create(const Task& task, Device& device,
                                                     const EvaluatorOptions& options) {
  std::uint64_t seed = 0;
  if (options.seed) {
    seed = *options.seed;
  } else {
    KP_ASSIGN_OR_RETURN(seed, SecretSeed());
  }
  KP_ASSIGN_OR_RETURN(std::filesystem::path library, ReferenceLibrary(task, options.cache_folder));
  auto referee = std::make_unique<Referee>(task, device, options, seed, std::move(library),
                                           ExecutableFolder() / "kernelpro-reference");
  KP_RETURN_IF_ERROR(referee->Prove());
  return std::unique_ptr<Evaluator>(std::move(referee));
}

}  // namespace kernelpro
