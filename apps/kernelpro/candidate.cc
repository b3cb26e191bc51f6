// SPDX-License-Identifier: Apache-2.0
// evaluate: one candidate of a task.
#include "candidate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "profile/profile_json.h"
#include "report/json.h"
#include "report/text.h"
#include "sanitize.h"
#include "search/record.h"
#include "search/workbench.h"
#include "setup.h"

namespace kernelpro::app {
namespace {

Result<search::Assessment> Assess(Bench& bench, const Candidate& candidate,
                                  const std::stop_token& stop) {
  search::Workbench workbench = bench.MakeWorkbench();
  Result<search::Assessment> assessment = workbench.Assess(candidate, stop);
  if (stop.stop_requested()) {
    return Fail(ErrorCode::kCancelled, "stopped");
  }
  return assessment;
}

}  // namespace

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

}  // namespace kernelpro::app
