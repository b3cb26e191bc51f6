// SPDX-License-Identifier: Apache-2.0
#include "sanitize.h"

#include <utility>

#include "device/cuda/gpu.h"
#include "evaluate/sanitizers.h"
#include "report/json.h"
#include "search/workbench.h"

namespace kernelpro::app {
namespace {

Sanitized EmulatorsOwn(const Evaluation& evaluation) {
  Sanitized sanitized;
  sanitized.line =
      "sanitizers: the emulator's own checks were on: bounds, races, uninitialised shared memory, "
      "barriers";
  sanitized.json.push_back(
      {{"tool", "emulator"},
       {"ran", true},
       {"errors", evaluation.faults.size()},
       {"message", evaluation.faults.empty() ? "" : evaluation.faults.front().message},
       {"ms", nullptr}});
  return sanitized;
}

}  // namespace

Result<Sanitized> Sanitize(Bench& bench, const Candidate& candidate, const std::stop_token& stop,
                           Evaluation* evaluation) {
  if (bench.device->gpu() == nullptr) {
    return EmulatorsOwn(*evaluation);
  }
  Sanitized sanitized;
  if (evaluation->verdict != Verdict::kOk) {
    sanitized.line = "sanitizers: not run, the kernel is not ok without them";
    return sanitized;
  }
  SanitizerRequest request;
  request.toolkit = bench.toolchain->toolkit();
  request.tool = FindComputeSanitizer(request.toolkit);
  if (request.tool.empty()) {
    sanitized.line =
        "sanitizers: compute-sanitizer was not found: the emulator's checks stand alone";
    return sanitized;
  }
  KP_ASSIGN_OR_RETURN(request.recipe, cuda::RunnerRecipe::Find(bench.device->gpu()->uuid()));
  KP_ASSIGN_OR_RETURN(
      const BuildOutcome build,
      bench.toolchain->Compile(
          search::MakeBuildRequest(bench.task, candidate, bench.device->info()), stop));
  if (!build.build) {
    return Fail(ErrorCode::kInternal, "a kernel that was evaluated does not compile again");
  }
  request.library = build.build->library;
  bench.evaluator.reset();  // Its processes and their memory would be on the GPU as well.
  KP_ASSIGN_OR_RETURN(const SanitizerReport report, RunSanitizers(bench.task, request, stop));
  sanitized.line = "sanitizers: " + Describe(report);
  sanitized.json = report::SanitizersJson(report);
  if (auto condemned = JudgeSanitizers(report)) {
    sanitized.condemned = true;
    evaluation->verdict = condemned->verdict;
    evaluation->reason = std::move(condemned->reason);
    evaluation->time_us = 0;
    evaluation->speedup.reset();  // A kernel that is not right has none.
  }
  return sanitized;
}

}  // namespace kernelpro::app
