// SPDX-License-Identifier: Apache-2.0
// evaluate, profile and diagnose: one candidate of a task, or a profile that somebody else made.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "device/emulated_launch.h"
#include "diagnose/diagnose.h"
#include "profile/ncu_csv.h"
#include "profile/profile_json.h"
#include "report/json.h"
#include "report/text.h"
#include "sanitize.h"
#include "search/record.h"
#include "search/workbench.h"
#include "setup.h"

namespace kernelpro::app {
namespace {

using report::Json;

struct Examined {
  std::unique_ptr<Bench> bench;  ///< null for a profile from a file
  Candidate candidate;
  search::Assessment assessment;
  double seed_us = 0;  ///< 0 when the seed has no time
};

Result<search::Assessment> Assess(Bench& bench, const Candidate& candidate,
                                  const std::stop_token& stop) {
  search::Workbench workbench = bench.MakeWorkbench();
  Result<search::Assessment> assessment = workbench.Assess(candidate, stop);
  if (stop.stop_requested()) {
    return Fail(ErrorCode::kCancelled, "stopped");
  }
  return assessment;
}

Result<Examined> ExamineCandidate(const CandidateOptions& options, bool against_seed,
                                  const std::stop_token& stop) {
  Examined examined;
  KP_ASSIGN_OR_RETURN(examined.bench,
                      OpenBench(options.task, options.device, std::nullopt, !options.no_filter));
  Bench& bench = *examined.bench;
  const std::filesystem::path file = options.source.empty() ? bench.task.seed : options.source;
  if (file.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "no FILE given and the task has no seed.cu");
  }
  Candidate& candidate = examined.candidate;
  candidate.flags = options.flags;
  KP_ASSIGN_OR_RETURN(candidate.source, ReadSource(file));
  KP_ASSIGN_OR_RETURN(examined.assessment, Assess(bench, candidate, stop));
  if (const auto& baseline = examined.assessment.evaluation.baseline) {
    examined.seed_us = baseline->median_us;
  } else if (against_seed && bench.device->info().emulated && !bench.task.seed.empty()) {
    Candidate seed;
    KP_ASSIGN_OR_RETURN(seed.source, ReadSource(bench.task.seed));
    KP_ASSIGN_OR_RETURN(const search::Assessment of_seed, Assess(bench, seed, stop));
    examined.seed_us = of_seed.evaluation.time_us;
  }
  return examined;
}

/// The profile of a candidate, or of an ncu file; a candidate that is not ok has none.
Result<Examined> Examine(const CandidateOptions& options, const std::stop_token& stop) {
  if (options.ncu_csv.empty()) {
    return ExamineCandidate(options, false, stop);
  }
  if (!options.task.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "give either TASK [FILE] or --ncu FILE, not both");
  }
  Examined examined;
  KP_ASSIGN_OR_RETURN(const Profile launches, ReadNcuCsv(options.ncu_csv));
  examined.assessment.profile = MergeLaunches(launches);
  KP_ASSIGN_OR_RETURN(const model::GpuSpec spec, model::LoadSpec(options.gpu));
  examined.assessment.diagnosis = Diagnose(examined.assessment.profile, HardwareOf(spec));
  examined.assessment.evaluation.verdict = Verdict::kOk;
  return examined;
}

/// Prints the verdict of a candidate that cannot be profiled.
int SayVerdict(const Evaluation& evaluation, bool json) {
  if (json) {
    fmt::print("{}\n", search::Dump(search::EvaluationJson(evaluation)));
  } else {
    fmt::print("{}", report::EvaluationText(evaluation, 0));
  }
  return 1;
}

}  // namespace

int Evaluate(const CandidateOptions& options) {
  const Interrupt interrupt;
  Result<Examined> examined = ExamineCandidate(options, true, interrupt.token());
  if (!examined) {
    return Complain(examined.error(), options.json);
  }
  Evaluation& evaluation = examined->assessment.evaluation;
  Sanitized sanitized;
  if (options.sanitize) {
    Result<Sanitized> ran =
        Sanitize(*examined->bench, examined->candidate, interrupt.token(), &evaluation);
    if (!ran) {
      return Complain(ran.error(), options.json);
    }
    sanitized = std::move(ran).value();
  }
  if (options.json) {
    report::Json json =
        report::EvaluationReport(evaluation, examined->seed_us, examined->bench->device->info());
    if (options.sanitize) {
      json["sanitizers"] = std::move(sanitized.json);
      json["sanitizers_text"] = sanitized.line;
    }
    fmt::print("{}\n", search::Dump(json));
  } else {
    fmt::print("{}", report::EvaluationText(evaluation, examined->seed_us));
    fmt::print("{}{}", sanitized.line, options.sanitize ? "\n" : "");
  }
  return evaluation.verdict == Verdict::kOk ? 0 : 1;
}

int ShowProfile(const CandidateOptions& options) {
  const Interrupt interrupt;
  const Result<Examined> examined = Examine(options, interrupt.token());
  if (!examined) {
    return Complain(examined.error(), options.json);
  }
  const search::Assessment& a = examined->assessment;
  if (a.evaluation.verdict != Verdict::kOk) {
    return SayVerdict(a.evaluation, options.json);
  }
  if (options.json) {
    fmt::print("{}\n", ProfileJson(a.profile));
  } else {
    fmt::print("{}", report::ProfileText(a.profile));
  }
  return 0;
}

int ShowDiagnosis(const CandidateOptions& options) {
  const Interrupt interrupt;
  const Result<Examined> examined = Examine(options, interrupt.token());
  if (!examined) {
    return Complain(examined.error(), options.json);
  }
  const search::Assessment& a = examined->assessment;
  if (a.evaluation.verdict != Verdict::kOk) {
    return SayVerdict(a.evaluation, options.json);
  }
  if (options.json) {
    Json json = report::DiagnosisJson(a.diagnosis);
    json["kernels"] = report::KernelsJson(a.profile);
    json["feedback"] = FeedbackText(a.diagnosis, a.profile);
    fmt::print("{}\n", search::Dump(json));
  } else {
    fmt::print("{}", report::DiagnosisText(a.diagnosis));
  }
  return 0;
}

}  // namespace kernelpro::app
