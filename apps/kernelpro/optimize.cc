// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "commands.h"
#include "diagnose/diagnose.h"
#include "evaluate/clock_check.h"
#include "propose/playbook/playbook.h"
#include "report/json.h"
#include "report/model_check.h"
#include "report/progress.h"
#include "report/text.h"
#include "run_folder.h"
#include "sanitize.h"
#include "search/driver.h"
#include "search/record.h"
#include "search/workbench.h"
#include "setup.h"

namespace kernelpro::app {
namespace {

namespace fs = std::filesystem;

/// Before a run folder is made: what cannot be searched with leaves nothing behind.
Status CheckPlan(const Plan& plan) {
  if (plan.proposer != "playbook") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("there is no proposer '{}'; choose from playbook", plan.proposer));
  }
  KP_ASSIGN_OR_RETURN([[maybe_unused]] const std::unique_ptr<search::Policy> policy,
                      search::MakePolicy(plan.search));
  return Ok();
}

struct Parts {
  Plan plan;
  std::unique_ptr<Bench> bench;
  std::unique_ptr<store::RunStore> store;
};

Result<Parts> Open(const OptimizeOptions& options) {
  Parts parts;
  if (!options.resume.empty()) {
    KP_ASSIGN_OR_RETURN(parts.store, store::RunStore::Open(options.resume));
    KP_ASSIGN_OR_RETURN(parts.plan, StoredPlan(*parts.store));
    KP_ASSIGN_OR_RETURN(
        parts.bench, OpenBench(options.resume / "task", parts.plan.device, parts.plan.input_seed));
    return parts;
  }
  KP_ASSIGN_OR_RETURN(parts.plan,
                      NewPlan(options.device, options.proposer, options.search, options.seed));
  KP_RETURN_IF_ERROR(CheckPlan(parts.plan));
  KP_ASSIGN_OR_RETURN(parts.bench,
                      OpenBench(options.task, parts.plan.device, parts.plan.input_seed));
  if (parts.bench->task.seed.empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} has no seed.cu: the playbook proposer changes a kernel and needs one "
                    "to start from",
                    options.task.string()));
  }
  KP_ASSIGN_OR_RETURN(parts.store, StartRun(options.run, parts.plan, parts.bench->task,
                                            parts.bench->device->info().id));
  return parts;
}

/// lib/clang/VERSION beside the programs of a bundle; empty where there is none.
fs::path CarriedClang() {
  std::error_code error;
  for (const auto& version :
       fs::directory_iterator(ExecutableFolder().parent_path() / "lib" / "clang", error)) {
    return version.path();
  }
  return {};
}

Result<search::SearchResult> Search(const OptimizeOptions& options, Parts& parts,
                                    search::ProgressObserver& observer,
                                    const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<search::Policy> policy,
                      search::MakePolicy(parts.plan.search));
  const std::unique_ptr<Proposer> proposer =
      MakePlaybook({.cuda_include_folder = parts.bench->toolchain->toolkit() / "include",
                    .cpp_include_folders = parts.bench->toolchain->cpp_include_folders(),
                    .clang_resource_folder = CarriedClang()});
  Candidate seed;
  KP_ASSIGN_OR_RETURN(seed.source, ReadSource(parts.bench->task.seed));
  search::Workbench workbench = parts.bench->MakeWorkbench();
  const SystemClock clock;
  return search::RunSearch(
      {parts.bench->task, *parts.store, workbench, *proposer, *policy, clock, observer}, seed,
      {.evaluations = options.evaluations,
       .time = std::chrono::milliseconds(static_cast<std::int64_t>(options.minutes * 60000)),
       .seed = parts.plan.search_seed},
      stop);
}

/// On a real GPU nothing is timed before the clock has shown that it can be trusted here.
Status CheckClockFirst(Parts& parts, const std::stop_token& stop) {
  if (parts.bench->device->info().emulated) {
    return Ok();
  }
  KP_ASSIGN_OR_RETURN(const ClockCheck check,
                      CheckClock(*parts.bench->device, *parts.bench->toolchain, stop));
  fmt::print(stderr, "{}\n", check.text);
  return parts.store->SetFact("clock_check", check.text);
}

struct Winner {
  std::string text;        ///< empty on the emulator, where a second time is the same
  bool condemned = false;  ///< a sanitizer found something
};

/// The best of many is partly the luckiest: it is examined once more, alone with the seed, in fresh
/// processes and with inputs of a fresh secret, then by compute-sanitizer.
Result<Winner> ExamineWinner(Parts& parts, const search::SearchResult& result,
                             const std::stop_token& stop) {
  if (parts.bench->device->info().emulated) {
    return Winner();
  }
  parts.bench->evaluator.reset();  // Its processes would be on the GPU as well.
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<Bench> bench,
                      OpenBench(parts.store->folder() / "task", parts.plan.device, std::nullopt,
                                /*filter=*/false));
  search::Workbench workbench = bench->MakeWorkbench();
  Candidate best;
  best.source = result.best.source;
  best.flags = result.best.flags;
  KP_ASSIGN_OR_RETURN(search::Assessment assessment, workbench.Assess(best, stop));
  Evaluation& e = assessment.evaluation;
  KP_ASSIGN_OR_RETURN(const Sanitized sanitized, Sanitize(*bench, best, stop, &e));
  KP_RETURN_IF_ERROR(parts.store->SetFact("winner", search::Dump(search::EvaluationJson(e))));
  KP_RETURN_IF_ERROR(parts.store->SetFact(
      "sanitizers",
      search::Dump(report::Json{{"text", sanitized.line}, {"tools", sanitized.json}})));
  Winner winner;
  winner.condemned = sanitized.condemned;
  winner.text = fmt::format(
      "\nthe best kernel once more, in fresh processes with fresh inputs:\n{}{}\n{}",
      report::EvaluationText(e, 0), sanitized.line,
      winner.condemned ? "DO NOT USE THIS KERNEL: a sanitizer found a fault in it\n" : "");
  if (winner.condemned) {
    fmt::print(stderr, "kernelpro: the best kernel is condemned: {}\n", e.reason);
  }
  return winner;
}

Result<int> Run(const OptimizeOptions& options, const std::stop_token& stop) {
  if (options.task.empty() == options.resume.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "give either a TASK folder to start a run or --resume DIR to continue one");
  }
  KP_ASSIGN_OR_RETURN(Parts parts, Open(options));
  KP_RETURN_IF_ERROR(CheckClockFirst(parts, stop));
  report::TerminalProgress progress(stderr);
  Result<search::SearchResult> searched = Search(options, parts, progress, stop);
  progress.Finish();
  if (!searched) {
    return std::move(searched).error();
  }
  const search::SearchResult& result = *searched;
  const fs::path folder = parts.store->folder();
  if (!result.root.done) {
    return Fail(
        ErrorCode::kCancelled,
        fmt::format("stopped before the seed was evaluated; continue with: kernelpro optimize "
                    "--resume {}",
                    folder.string()));
  }
  KP_ASSIGN_OR_RETURN(const std::vector<store::NodeRecord> nodes, parts.store->Nodes());
  std::string text = report::SearchText(result, report::PathTo(nodes, result.best.id),
                                        parts.bench->task.name, parts.bench->device->info());
  const report::ModelCheck model = report::CheckModel(nodes);
  text += report::ModelCheckText(model);
  KP_ASSIGN_OR_RETURN(const Winner winner, ExamineWinner(parts, result, stop));
  text += winner.text;
  if (const auto clock = parts.store->Fact("clock_check")) {
    text += *clock + '\n';
  }
  KP_RETURN_IF_ERROR(WriteResults(folder, parts.bench->task, result, text));
  if (options.json) {
    report::Json json =
        report::SearchJson(result, parts.bench->task.name, parts.bench->device->info());
    json["run"] = folder.string();
    if (!model.nodes.empty()) {
      json["model"] = report::ModelCheckJson(model);
    }
    if (const auto fact = parts.store->Fact("winner")) {
      json["winner"] = report::Json::parse(*fact);
    }
    if (const auto fact = parts.store->Fact("sanitizers")) {
      json["sanitizers"] = report::Json::parse(*fact);
    }
    if (const auto fact = parts.store->Fact("clock_check")) {
      json["clock_check"] = *fact;
    }
    fmt::print("{}\n", search::Dump(json));
  } else {
    fmt::print("{}\nrun          {}\nbest kernel  {}\n", text, folder.string(),
               (folder / "best.cu").string());
    if (result.stopped != search::Stopped::kExhausted) {
      fmt::print("continue     kernelpro optimize --resume {} --evaluations {}\n", folder.string(),
                 result.evaluated + 40);
    }
  }
  return winner.condemned || result.stopped == search::Stopped::kRequested ? 1 : 0;
}

}  // namespace

int Optimize(const OptimizeOptions& options) {
  const Interrupt interrupt;
  const Result<int> code = Run(options, interrupt.token());
  return code ? *code : Complain(code.error(), options.json);
}

}  // namespace kernelpro::app
