// SPDX-License-Identifier: Apache-2.0
#include "optimize_parts.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "propose/llm/prompts.h"
#include "propose/playbook/playbook.h"
#include "propose/replay/replay_proposer.h"
#include "search/replay.h"

namespace kernelpro::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReplay = "replay:";

/// What a run of this proposer keeps about it. Checked before a run folder is made: what cannot be
/// searched with leaves nothing behind.
Result<Facts> ProposerFacts(const OptimizeOptions& options) {
  if (options.proposer == "llm") {
    return PlanModel(options.model);
  }
  if (options.proposer != "playbook") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("there is no proposer '{}'; choose from playbook, llm, replay:RUN; an "
                            "outside agent uses kernelpro agent",
                            Printable(options.proposer, 80)));
  }
  return Facts();
}

Result<Parts> OpenToResume(const OptimizeOptions& options) {
  Parts parts;
  KP_ASSIGN_OR_RETURN(parts.store, store::RunStore::Open(options.resume));
  KP_ASSIGN_OR_RETURN(parts.plan, StoredPlan(*parts.store));
  if (parts.plan.proposer != "playbook" && parts.plan.proposer != "llm") {
    return Fail(ErrorCode::kInvalidArgument,
                parts.plan.proposer == "agent"
                    ? fmt::format("{} is driven by an outside agent: kernelpro agent next {}",
                                  options.resume.string(), options.resume.string())
                    : fmt::format("{} is a {}: it is not continued but made again",
                                  options.resume.string(), parts.plan.proposer));
  }
  KP_ASSIGN_OR_RETURN(parts.bench,
                      OpenBench(options.resume / "task", parts.plan.device, parts.plan.input_seed));
  return parts;
}

/// A new run with everything as the recorded one was started, but for a device that the user names.
Result<Parts> OpenToReplay(const OptimizeOptions& options) {
  Parts parts;
  Recorded recorded;
  recorded.folder = options.proposer.substr(kReplay.size());
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<store::RunStore> old,
                      store::RunStore::OpenCopy(recorded.folder));
  KP_ASSIGN_OR_RETURN(parts.plan, StoredPlan(*old));
  KP_ASSIGN_OR_RETURN(recorded.nodes, old->Nodes());
  KP_ASSIGN_OR_RETURN(recorded.exchanges, old->Exchanges());
  if (recorded.nodes.empty() || !recorded.nodes.front().done) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} holds nothing to replay", recorded.folder.string()));
  }
  recorded.device = parts.plan.device;
  if (options.device != "auto") {
    parts.plan.device = options.device;
  }
  const fs::path task = options.task.empty() ? recorded.folder / "task" : options.task;
  KP_ASSIGN_OR_RETURN(parts.bench, OpenBench(task, parts.plan.device, parts.plan.input_seed));
  if (const auto name = old->Fact("task"); name && *name != parts.bench->task.name) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is a run of the task {}, not of {}", recorded.folder.string(),
                            Printable(*name, 80), parts.bench->task.name));
  }
  parts.plan.device = parts.bench->device->info().id;
  parts.plan.proposer = "replay";
  KP_ASSIGN_OR_RETURN(parts.store,
                      StartRun(options.run, parts.plan, parts.bench->task, parts.plan.device));
  parts.recorded = std::move(recorded);
  return parts;
}

/// Before a run folder is made, too.
Status CheckFolders(const ModelOptions& model) {
  KP_ASSIGN_OR_RETURN([[maybe_unused]] const agents::Prompts prompts,
                      agents::Prompts::Load(model.prompts.string()));
  std::error_code error;
  if (!model.code.empty() && !fs::is_directory(model.code, error)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--code {} is not a folder", model.code.string()));
  }
  return Ok();
}

Result<Parts> OpenNew(const OptimizeOptions& options) {
  Parts parts;
  KP_ASSIGN_OR_RETURN(parts.plan,
                      NewPlan(options.device, options.proposer, options.search, options.seed));
  KP_ASSIGN_OR_RETURN(parts.plan.more, ProposerFacts(options));
  KP_ASSIGN_OR_RETURN([[maybe_unused]] const std::unique_ptr<search::Policy> policy,
                      search::MakePolicy(parts.plan.search));
  if (options.proposer ==
      "llm") {  // Before anything is built: without a key or a price there is no run.
    KP_RETURN_IF_ERROR(CheckModel(parts.plan.more, options.model));
    KP_RETURN_IF_ERROR(CheckFolders(options.model));
  }
  KP_ASSIGN_OR_RETURN(parts.bench,
                      OpenBench(options.task, parts.plan.device, parts.plan.input_seed));
  if (parts.bench->task.seed.empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} has no seed.cu: a search needs a kernel to start from, be it ever so "
                    "plain",
                    options.task.string()));
  }
  KP_ASSIGN_OR_RETURN(parts.store, StartRun(options.run, parts.plan, parts.bench->task,
                                            parts.bench->device->info().id));
  if (!options.model.prompts.empty()) {  // A resumed or replayed run is to find the same prompts.
    std::error_code error;
    fs::copy(options.model.prompts, parts.store->folder() / "prompts", fs::copy_options::recursive,
             error);
    if (error) {
      return Fail(ErrorCode::kIo, fmt::format("cannot copy the prompts: {}", error.message()));
    }
  }
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

}  // namespace

Result<Parts> OpenParts(const OptimizeOptions& options) {
  if (!options.resume.empty()) {
    return OpenToResume(options);
  }
  return options.proposer.starts_with(kReplay) ? OpenToReplay(options) : OpenNew(options);
}

Result<Chosen> Choose(const OptimizeOptions& options, Parts& parts, const Clock& clock) {
  Chosen chosen;
  KP_ASSIGN_OR_RETURN(chosen.policy, search::MakePolicy(parts.plan.search));
  if (parts.recorded && parts.recorded->exchanges.empty()) {
    chosen.own = MakeReplay(parts.recorded->nodes);
    chosen.policy = search::MakeRecordedOrder(parts.recorded->nodes);
  } else if (parts.recorded) {
    fs::path prompts = options.model.prompts;  // To see where other prompts would part ways.
    if (prompts.empty() && fs::exists(parts.recorded->folder / "prompts")) {
      prompts = parts.recorded->folder / "prompts";
    }
    KP_ASSIGN_OR_RETURN(chosen.model,
                        ModelProposer::Replay(parts.plan.more, prompts, *parts.bench, *parts.store,
                                              parts.recorded->exchanges));
  } else if (parts.plan.proposer == "llm") {
    KP_ASSIGN_OR_RETURN(chosen.model,
                        ModelProposer::Open(parts.plan.more, options.model, options.minutes,
                                            *parts.bench, *parts.store, clock));
  } else {
    chosen.own = MakePlaybook({.cuda_include_folder = parts.bench->toolchain->toolkit() / "include",
                               .cpp_include_folders = parts.bench->toolchain->cpp_include_folders(),
                               .clang_resource_folder = CarriedClang()});
  }
  return chosen;
}

std::uint32_t FirstChildrenOf(const Parts& parts) {
  const bool kernels = parts.recorded && parts.recorded->exchanges.empty();
  const auto temperatures = parts.plan.more.find("seed_temperatures");
  const auto rounds = parts.plan.more.find("seed_rounds");
  long long times = 1;
  if (kernels || temperatures == parts.plan.more.end() || temperatures->second.empty() ||
      (rounds != parts.plan.more.end() && !ParseInteger(rounds->second, &times))) {
    return 0;
  }
  return static_cast<std::uint32_t>(Split(temperatures->second, ',').size()) *
         static_cast<std::uint32_t>(times);
}

std::uint32_t RepairsOf(const Parts& parts) {
  long long repairs = 2;
  const auto fact = parts.plan.more.find("repairs");
  const bool stated = fact != parts.plan.more.end() && ParseInteger(fact->second, &repairs);
  // In a replay of kernels, mending is in the record.
  const bool kernels = parts.recorded && parts.recorded->exchanges.empty();
  return kernels ? 0 : stated ? static_cast<std::uint32_t>(repairs) : 2;
}

}  // namespace kernelpro::app
