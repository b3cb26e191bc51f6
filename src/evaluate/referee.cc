// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "evaluate/binary_examination.h"
#include "evaluate/evaluator.h"
#include "evaluate/gpu_timing.h"
#include "evaluate/gpu_trials.h"
#include "evaluate/inputs.h"
#include "evaluate/outcome.h"
#include "evaluate/reference.h"
#include "evaluate/sanity_gate.h"
#include "evaluate/trial_run.h"
#include "toolchain/ptxas_figures.h"

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
        poison_(Rng(seed).Fork(0x706f69736f6eULL)) {
    if (device_.gpu() != nullptr) {
      MeasurePlan plan;
      plan.pairs = options_.timing_pairs;
      gpu_timing_.emplace(task_, device_, plan, seed);
      gpu_trials_.emplace(task_, *device_.gpu());
    }
  }

  /// Runs the reference on every input that candidates will be judged by: a broken one is found
  /// before any candidate is, and so is a task that cannot tell right from wrong.
  [[nodiscard]] Status Prove() {
    std::vector<GateTrial> judged;
    for (std::size_t w = 0; w < task_.workloads.size(); ++w) {
      for (std::uint32_t t = 0; !IsTimed(task_.workloads[w]) && t < seeds(); ++t) {
        KP_ASSIGN_OR_RETURN(const Trial* trial, trials_.Get(w, t, {}));
        judged.push_back({w, trial});
      }
    }
    if (judged.empty()) {
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("task '{}' has no workload of kind \"checked\" to judge candidates by",
                      task_.name));
    }
    const Trial& first = *judged.front().trial;
    KP_ASSIGN_OR_RETURN(
        const TensorDoubles again,
        reference_.Run(task_.workloads[judged.front().workload].axes, first.inputs, {}));
    std::string why = WhyUnrepeatable(first.expected, again);
    if (why.empty()) {
      why = WhyUnfit(task_, judged);
    }
    return why.empty() ? Ok()
                       : Status(Fail(ErrorCode::kInvalidArgument,
                                     fmt::format("task '{}' is refused: {}", task_.name, why)));
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
      KP_RETURN_IF_ERROR(EnsureBaseline(stop));
      KP_RETURN_IF_ERROR(Examine(*build.build, stop, &evaluation, nullptr));
    }
    evaluation.evaluate_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return evaluation;
  }

 private:
  [[nodiscard]] std::uint32_t seeds() const { return std::max(1U, options_.seeds_per_workload); }

  static void Condemn(Condemnation condemnation, Evaluation* evaluation) {
    evaluation->verdict = condemnation.verdict;
    evaluation->reason = std::move(condemnation.reason);
    evaluation->time_us = 0;
  }

  /// The baseline is judged like any candidate, and what candidates are timed against from then on.
  [[nodiscard]] Status EnsureBaseline(const std::stop_token& stop) {
    if (!gpu_timing_ || !options_.baseline || baseline_tried_) {
      return Ok();
    }
    baseline_tried_ = true;
    Evaluation evaluation;
    std::unique_ptr<Session> session;
    KP_RETURN_IF_ERROR(Examine(*options_.baseline, stop, &evaluation, &session));
    if (evaluation.verdict == Verdict::kOk) {
      gpu_timing_->SetBaseline(std::move(session));
    } else {
      baseline_flaw_ = fmt::format("no speedup: the baseline is {} ({})", Name(evaluation.verdict),
                                   evaluation.reason);
    }
    return Ok();
  }

  /// With `kept` the session goes there when the candidate is ok.
  [[nodiscard]] Status Examine(const Build& build, const std::stop_token& stop,
                               Evaluation* evaluation, std::unique_ptr<Session>* kept) {
    KP_ASSIGN_OR_RETURN(BinaryFindings found,
                        ExamineBinary(build, task_, options_.disassembler, stop));
    evaluation->precision = std::move(found.precision);
    evaluation->notes = std::move(found.notes);
    if (found.condemned) {
      Condemn(std::move(*found.condemned), evaluation);
      return Ok();
    }
    SessionRequest request;
    if (gpu_timing_) {
      KP_ASSIGN_OR_RETURN(request.device_memory_bytes, gpu_timing_->SessionBytes());
    }
    request.library = build.library;
    for (const auto& [name, figures] : build.kernels) {
      request.kernels[name] = ResourcesOf(figures);
    }
    Stopwatch watch;
    KP_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, device_.Open(request));
    evaluation->start_ms = watch.Lap();
    evaluation->sandbox = session->sandbox();
    evaluation->verdict = Verdict::kOk;
    KP_RETURN_IF_ERROR(ExamineSession(*session, stop, evaluation));
    if (kept != nullptr && evaluation->verdict == Verdict::kOk) {
      *kept = std::move(session);
    }
    return Ok();
  }

  [[nodiscard]] Status ExamineSession(Session& session, const std::stop_token& stop,
                                      Evaluation* evaluation) {
    Stopwatch watch;
    for (std::size_t w = 0; w < task_.workloads.size(); ++w) {
      // On a real GPU the timed shapes run whole, so they are checked whole as well.
      if (!IsTimed(task_.workloads[w]) || gpu_timing_) {
        KP_RETURN_IF_ERROR(Check(w, session, stop, evaluation));
        if (evaluation->verdict != Verdict::kOk) {
          return Ok();
        }
      }
    }
    evaluation->check_ms = watch.Lap();
    if (gpu_timing_) {
      KP_RETURN_IF_ERROR(TimeOnGpu(session, stop, evaluation));
      evaluation->time_ms = watch.Lap();
      return Ok();
    }
    for (std::size_t w = 0; w < task_.workloads.size(); ++w) {
      if (IsTimed(task_.workloads[w])) {
        KP_RETURN_IF_ERROR(Time(w, session, stop, evaluation));
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
    KP_ASSIGN_OR_RETURN(TrialRun run, TrialRun::Create(task_, workload, session,
                                                       gpu_trials_ ? &*gpu_trials_ : nullptr));
    WorkloadCheck check;
    check.workload = workload.name;
    check.hidden = workload.kind == Workload::Kind::kHidden;
    // The CPU's reference takes long on the timed shapes: one input is enough there.
    const std::uint32_t inputs = IsTimed(workload) ? 1 : seeds();
    for (std::uint32_t call = 0; call <= inputs; ++call) {
      const bool repeat = call == inputs;
      KP_ASSIGN_OR_RETURN(const Trial* trial, trials_.Get(w, repeat ? call - 1 : call, stop));
      KP_ASSIGN_OR_RETURN(TrialRun::Ruling ruling, run.Run(*trial, poison_.Next(), CallMode::kCheck,
                                                           options_.call_limit, stop));
      Keep(ruling.outcome.faults, evaluation);
      if (!ruling.condemned) {
        Merge(ruling.errors, &check.errors);
        ++evaluation->checked_calls;
        ruling.condemned = JudgeOutputs(workload, ruling.errors);
        if (ruling.condemned && trial->distribution != Distribution::kFill) {
          ruling.condemned->reason += fmt::format(" (inputs: {})", Name(trial->distribution));
        }
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
    if (!ruling.condemned) {
      ruling.condemned = JudgeTime(time);
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

  [[nodiscard]] Status TimeOnGpu(Session& session, const std::stop_token& stop,
                                 Evaluation* evaluation) {
    KP_RETURN_IF_ERROR(gpu_timing_->Time(session, trials_, stop, evaluation));
    if (!baseline_flaw_.empty()) {
      evaluation->notes.push_back(baseline_flaw_);
    }
    for (WorkloadTime& time : evaluation->times) {
      const auto workload = std::ranges::find(task_.workloads, time.workload, &Workload::name);
      KP_ASSIGN_OR_RETURN(time.floor_us, Floor(*workload));
      if (auto condemned = JudgeTime(time)) {
        Condemn(std::move(*condemned), evaluation);
      }
    }
    return Ok();
  }

  [[nodiscard]] static std::optional<Condemnation> JudgeTime(const WorkloadTime& time) {
    if (time.time_us >= kPossibleShareOfFloor * time.floor_us) {
      return std::nullopt;
    }
    return Condemnation{
        Verdict::kImpossibleTime,
        fmt::format("{:.3g} us on workload '{}' is below the floor of {:.3g} us that its bytes and "
                    "flops need on this device",
                    time.time_us, time.workload, time.floor_us)};
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
  std::optional<GpuTiming> gpu_timing_;  ///< on a real GPU
  std::optional<GpuTrials> gpu_trials_;  ///< likewise
  bool baseline_tried_ = false;
  std::string baseline_flaw_;
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
