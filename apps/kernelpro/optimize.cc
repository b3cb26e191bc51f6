// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "commands.h"
#include "diagnose/diagnose.h"
#include "evaluate/clock_check.h"
#include "optimize_parts.h"
#include "report/json.h"
#include "report/model_check.h"
#include "report/progress.h"
#include "report/text.h"
#include "sanitize.h"
#include "search/driver.h"
#include "search/record.h"
#include "search/replay.h"
#include "search/workbench.h"
#include "setup.h"

namespace kernelpro::app {
namespace {

namespace fs = std::filesystem;

Result<search::SearchResult> Search(const OptimizeOptions& options, Parts& parts,
                                    search::ProgressObserver& observer, llm::Spent* spent,
                                    const std::stop_token& stop) {
  const SystemClock clock;
  KP_ASSIGN_OR_RETURN(const Chosen chosen, Choose(options, parts, clock));
  Candidate seed;
  KP_ASSIGN_OR_RETURN(seed.source, ReadSource(parts.bench->task.seed));
  search::Workbench workbench = parts.bench->MakeWorkbench();
  const std::uint32_t recorded =
      parts.recorded ? static_cast<std::uint32_t>(parts.recorded->nodes.size()) : 0;
  Result<search::SearchResult> result = search::RunSearch(
      {parts.bench->task, *parts.store, workbench, chosen.proposer(), *chosen.policy, clock,
       observer},
      seed,
      {.evaluations = parts.recorded ? recorded : options.evaluations,
       .time = std::chrono::milliseconds(static_cast<std::int64_t>(options.minutes * 60000)),
       .seed = parts.plan.search_seed,
       .repairs = RepairsOf(parts),
       .first_children = FirstChildrenOf(parts),
       .gpu = parts.bench->device->info().title},
      stop);
  if (chosen.model && !parts.recorded) {
    *spent = chosen.model->spent();
  }
  return result;
}

/// What became of a replay; `same` tells whether it is the recorded tree.
Result<std::string> CompareWithRecord(const Parts& parts, bool* same) {
  KP_ASSIGN_OR_RETURN(const std::vector<store::NodeRecord> nodes, parts.store->Nodes());
  const bool same_device =
      parts.recorded->device == parts.plan.device && parts.bench->device->info().emulated;
  const std::vector<std::string> differences =
      search::CompareTrees(parts.recorded->nodes, nodes, same_device);
  *same = differences.empty();
  if (*same) {
    return fmt::format("replay: the same tree as {}: {} nodes{}\n", parts.recorded->folder.string(),
                       nodes.size(),
                       same_device ? ", verdicts and times alike"
                                   : ", verdicts alike (times are another device's)");
  }
  std::string text = fmt::format("replay: it differs from {}:\n", parts.recorded->folder.string());
  for (const std::string& difference : differences) {
    text += "  " + Printable(difference, 500) + '\n';
  }
  return text;
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

Result<int> DryRunOnly(const OptimizeOptions& options, const std::stop_token& stop) {
  if (options.proposer != "llm" || options.task.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "--dry-run shows what a model would be asked: give a TASK and --model");
  }
  KP_ASSIGN_OR_RETURN(const Facts facts, PlanModel(options.model));
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<Bench> bench,
                      OpenBench(options.task, options.device, options.seed));
  KP_ASSIGN_OR_RETURN(const std::string text,
                      DryRun(facts, options.model, options.evaluations, *bench, stop));
  fmt::print("{}", options.json ? search::Dump(report::Json{{"text", text}}) + '\n' : text);
  return 0;
}

Result<int> Run(const OptimizeOptions& options, const std::stop_token& stop) {
  const bool replays = options.proposer.starts_with("replay:");
  if (options.task.empty() == options.resume.empty() && !(options.task.empty() && replays)) {
    return Fail(ErrorCode::kInvalidArgument,
                "give either a TASK folder to start a run or --resume DIR to continue one");
  }
  if (options.model.dry_run) {
    return DryRunOnly(options, stop);
  }
  KP_ASSIGN_OR_RETURN(Parts parts, OpenParts(options));
  KP_RETURN_IF_ERROR(CheckClockFirst(parts, stop));
  report::TerminalProgress progress(stderr);
  llm::Spent spent;
  Result<search::SearchResult> searched = Search(options, parts, progress, &spent, stop);
  progress.Finish();
  if (!searched) {
    Error error = std::move(searched).error();
    if (parts.recorded) {
      return error;
    }
    error.message += fmt::format(
        "; the run keeps what it has: continue with --resume {}, or see "
        "kernelpro agent report {}",
        parts.store->folder().string(), parts.store->folder().string());
    return error;
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
  if (parts.plan.proposer == "llm") {
    text += "model    " + SpentText(spent) + '\n';
  }
  bool same = true;
  if (parts.recorded) {
    KP_ASSIGN_OR_RETURN(const std::string comparison, CompareWithRecord(parts, &same));
    text += comparison;
  }
  KP_RETURN_IF_ERROR(WriteResults(folder, parts.bench->task, result, text));
  if (options.json) {
    report::Json json =
        report::SearchJson(result, parts.bench->task.name, parts.bench->device->info());
    json["run"] = folder.string();
    if (parts.plan.proposer == "llm") {
      json["spent"] = {{"dollars", spent.dollars},
                       {"input_tokens", spent.input_tokens},
                       {"output_tokens", spent.output_tokens},
                       {"requests", spent.requests},
                       {"charged_at_upper_bound", spent.estimated}};
    }
    if (parts.recorded) {
      json["replay"] = {{"of", parts.recorded->folder.string()}, {"same", same}};
    }
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
    if (result.stopped != search::Stopped::kExhausted && !parts.recorded) {
      const bool cap = result.stopped == search::Stopped::kBudget;
      fmt::print("continue     kernelpro optimize --resume {} {}\n", folder.string(),
                 cap ? std::string("with a higher --max-cost, --max-tokens or --minutes")
                     : fmt::format("--evaluations {}", result.evaluated + 40));
    }
  }
  return winner.condemned || !same || result.stopped == search::Stopped::kRequested ? 1 : 0;
}

}  // namespace

int Optimize(const OptimizeOptions& options) {
  const Interrupt interrupt;
  const Result<int> code = Run(options, interrupt.token());
  return code ? *code : Complain(code.error(), options.json);
}

}  // namespace kernelpro::app
