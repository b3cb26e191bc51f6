// SPDX-License-Identifier: Apache-2.0
#include "agent_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "diagnose/diagnose.h"
#include "evaluate/clock_check.h"
#include "profile/profile_json.h"
#include "report/json.h"
#include "report/text.h"
#include "run_folder.h"
#include "search/memory.h"
#include "search/record.h"

namespace kernelpro::app {
namespace {

namespace fs = std::filesystem;
using report::AgentAnswer;

/// A run that an agent drives, opened.
struct Desk {
  std::unique_ptr<store::RunStore> store;
  Plan plan;
  std::unique_ptr<search::Policy> policy;
  std::unique_ptr<search::AgentRun> run;
};

Result<Desk> OpenDesk(Result<std::unique_ptr<store::RunStore>> opened) {
  if (!opened) {
    return std::move(opened).error();
  }
  Desk desk;
  desk.store = std::move(opened).value();
  KP_ASSIGN_OR_RETURN(desk.plan, StoredPlan(*desk.store));
  KP_ASSIGN_OR_RETURN(desk.policy, search::MakePolicy(desk.plan.search));
  desk.run = std::make_unique<search::AgentRun>(*desk.store, *desk.policy, desk.plan.search_seed);
  KP_RETURN_IF_ERROR(desk.run->Load());
  return desk;
}

Result<Desk> OpenToRead(const fs::path& run) {
  return OpenDesk(store::RunStore::OpenForReading(run));
}

/// Only an agent's run takes kernels from outside: another proposer's would no longer be
/// reproducible.
Result<Desk> OpenToWrite(const fs::path& run) {
  KP_ASSIGN_OR_RETURN(Desk desk, OpenDesk(store::RunStore::Open(run)));
  if (desk.plan.proposer != "agent") {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} is a run of the proposer '{}'; start one of your own with kernelpro "
                    "agent start",
                    run.string(), desk.plan.proposer));
  }
  return desk;
}

bool IsGpu(const std::string& device) {
  return device.starts_with("cuda");
}

/// The nodes that an evaluation is about, in order.
Result<std::vector<store::NodeId>> Wanted(const Desk& desk, const AgentEvaluation& what,
                                          const std::string& device, bool elsewhere) {
  std::set<store::NodeId> judged;
  if (elsewhere && !what.all) {
    KP_ASSIGN_OR_RETURN(const std::vector<store::MeasurementRecord> measurements,
                        desk.store->Measurements());
    for (const store::MeasurementRecord& m : measurements) {
      if (m.device == device) {
        judged.insert(m.node);
      }
    }
  }
  std::vector<store::NodeId> wanted;
  for (const store::NodeRecord& node : desk.run->state().nodes()) {
    const bool named = std::find(what.nodes.begin(), what.nodes.end(), node.id) != what.nodes.end();
    const bool fits =
        elsewhere ? node.done && node.verdict == "ok" && !judged.contains(node.id) : !node.done;
    if (named || (what.nodes.empty() && fits)) {
      wanted.push_back(node.id);
    }
  }
  for (const std::int64_t id : what.nodes) {
    if (desk.run->state().Find(id) == nullptr) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("there is no node {}", id));
    }
  }
  return wanted;
}

Result<AgentAnswer> StatusOf(const Desk& desk, const fs::path& run) {
  KP_ASSIGN_OR_RETURN(const std::vector<store::MeasurementRecord> measurements,
                      desk.store->Measurements());
  return report::StatusAnswer(desk.run->state(), measurements,
                              desk.store->Fact("task").value_or(""), desk.plan.device,
                              run.string());
}

/// What a kernel's author must know of the GPU, whether it is in this machine or not.
std::string DeviceLine(const std::string& device) {
  const Result<std::unique_ptr<Device>> opened = OpenDevice(IsGpu(device) ? "emulator" : device);
  if (!opened) {
    return device;
  }
  const DeviceInfo& info = (*opened)->info();
  if (IsGpu(device)) {
    return fmt::format("{} (figures below are of the emulator's {})", device, info.title);
  }
  const Hardware& h = info.hardware;
  return fmt::format(
      "{}, {}: {} SMs with {} warps, {} registers and {:.0f} KiB of shared memory each; {:.3g} "
      "TB/s "
      "achievable, {:.0f} MiB L2, {:.3g} TFLOP/s fp32",
      info.title, info.arch, h.sm_count, h.warps_per_sm, h.registers_per_sm,
      h.shared_per_sm_bytes / 1024, h.dram_bytes_per_s / 1e12,
      static_cast<double>(info.l2_bytes) / 1048576.0, h.fp32_flops_per_s / 1e12);
}

Result<AgentAnswer> NextOf(const Desk& desk, const search::NextParent& next, const fs::path& run) {
  KP_ASSIGN_OR_RETURN(const std::vector<Lesson> memory, desk.run->Memory());
  KP_ASSIGN_OR_RETURN(const Task task, LoadTask(desk.store->folder() / "task"));
  return report::NextAnswer(*desk.run, next, memory, task, DeviceLine(desk.plan.device),
                            run.string());
}

}  // namespace

Result<Bench*> AgentDesk::BenchFor(const store::RunStore& store, const std::string& device) {
  KP_ASSIGN_OR_RETURN(const Plan plan, StoredPlan(store));
  const std::string key = store.folder().string() + '\n' + device;
  if (key != bench_key_ || bench_ == nullptr) {
    bench_.reset();  // Two sets of processes on one GPU would disturb each other's times.
    // Only the run's own device works from the run's inputs; a second opinion draws its own.
    const bool own = device == plan.device;
    KP_ASSIGN_OR_RETURN(bench_, OpenBench(store.folder() / "task", device,
                                          own ? std::optional(plan.input_seed) : std::nullopt));
    bench_key_ = key;
  }
  return bench_.get();
}

Result<AgentAnswer> AgentDesk::Start(const AgentStart& start, const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(const Task task, LoadTask(start.task));
  if (task.seed.empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} has no seed.cu: an agent's run begins with one, be it ever so plain",
                    start.task.string()));
  }
  KP_ASSIGN_OR_RETURN([[maybe_unused]] const std::unique_ptr<search::Policy> policy,
                      search::MakePolicy(start.search));
  KP_ASSIGN_OR_RETURN(Plan plan, NewPlan(start.device, "agent", start.search, start.seed));
  Result<std::unique_ptr<Device>> device = OpenDevice(start.device);
  const bool here = device.ok();
  if (!here && !(IsGpu(start.device) && device.error().code == ErrorCode::kUnavailable)) {
    return std::move(device).error();
  }
  plan.device = here ? (*device)->info().id : start.device;
  search::Submission seed;
  KP_ASSIGN_OR_RETURN(seed.candidate.source, ReadSource(task.seed));
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<store::RunStore> store,
                      StartRun(start.run, plan, task, plan.device));
  store::NodeRecord root;
  root.action = "seed";
  root.source = seed.candidate.source;
  root.content = search::ContentKey(seed.candidate);
  KP_RETURN_IF_ERROR(store->AddNode(root, std::nullopt));
  const fs::path folder = store->folder();
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<search::Policy> chosen,
                      search::MakePolicy(plan.search));
  search::AgentRun run(*store, *chosen, plan.search_seed);
  KP_RETURN_IF_ERROR(run.Load());
  if (here) {
    KP_ASSIGN_OR_RETURN(Bench * bench, BenchFor(*store, plan.device));
    search::Workbench workbench = bench->MakeWorkbench();
    KP_RETURN_IF_ERROR(run.Evaluate(store::kRoot, workbench, stop));
  }
  AgentAnswer answer = report::SubmitAnswer(run, store::kRoot, folder.string());
  answer.text =
      fmt::format("run {}\n{}{}", folder.string(),
                  here ? "" : "note: " + device.error().message + "; kernels wait\n", answer.text);
  return answer;
}

Result<AgentAnswer> AgentDesk::Next(const fs::path& run, std::optional<std::int64_t> node) {
  KP_ASSIGN_OR_RETURN(const Desk desk, OpenToRead(run));
  KP_ASSIGN_OR_RETURN(search::NextParent next, desk.run->Next());
  if (node) {
    const store::NodeRecord* const wanted = desk.run->state().Find(*node);
    if (wanted == nullptr || !wanted->done) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("there is no node {} with a result", *node));
    }
    next.node = *node;
    next.repair = search::IsWrong(*wanted);
  }
  return NextOf(desk, next, run);
}

Result<AgentAnswer> AgentDesk::Submit(const fs::path& run, const search::Submission& submission,
                                      bool defer, bool* ok, const std::stop_token& stop) {
  KP_RETURN_IF_ERROR(search::CheckIsWhole(submission.candidate));
  KP_ASSIGN_OR_RETURN(const Desk desk, OpenToWrite(run));
  KP_ASSIGN_OR_RETURN(const store::NodeId node, desk.run->Submit(submission));
  *ok = true;
  if (!defer) {
    Result<Bench*> bench = BenchFor(*desk.store, desk.plan.device);
    if (!bench && !(IsGpu(desk.plan.device) && bench.error().code == ErrorCode::kUnavailable)) {
      return std::move(bench).error();
    }
    if (bench) {
      search::Workbench workbench = (*bench)->MakeWorkbench();
      KP_RETURN_IF_ERROR(desk.run->Evaluate(node, workbench, stop));
      *ok = desk.run->state().Find(node)->verdict == "ok";
    }
  }
  return report::SubmitAnswer(*desk.run, node, run.string());
}

Result<AgentAnswer> AgentDesk::Evaluate(const fs::path& run, const AgentEvaluation& what,
                                        const DeskProgress& progress, const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(const Desk desk, OpenToWrite(run));
  std::string device = desk.plan.device;
  if (!what.device.empty()) {
    KP_ASSIGN_OR_RETURN(const std::unique_ptr<Device> opened, OpenDevice(what.device));
    device = opened->info().id;
  }
  // "cuda" in a run that was made where there was no GPU becomes the GPU that judges it first.
  if (desk.plan.device == "cuda" && IsGpu(device)) {
    KP_ASSIGN_OR_RETURN(const std::unique_ptr<Device> opened, OpenDevice(device));
    device = opened->info().id;
    KP_RETURN_IF_ERROR(desk.store->SetFact("device", device));
  }
  KP_ASSIGN_OR_RETURN(const Plan plan, StoredPlan(*desk.store));
  const bool elsewhere = device != plan.device;
  KP_ASSIGN_OR_RETURN(const std::vector<store::NodeId> wanted,
                      Wanted(desk, what, device, elsewhere));
  if (!wanted.empty()) {
    KP_ASSIGN_OR_RETURN(Bench * bench, BenchFor(*desk.store, device));
    if (!bench->device->info().emulated) {
      progress(0, wanted.size(), "looking at the clock");
      KP_ASSIGN_OR_RETURN(const ClockCheck check,
                          CheckClock(*bench->device, *bench->toolchain, stop));
      KP_RETURN_IF_ERROR(desk.store->SetFact("clock_check", check.text));
    }
    search::Workbench workbench = bench->MakeWorkbench();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      progress(i, wanted.size(), fmt::format("node {}", wanted[i]));
      KP_RETURN_IF_ERROR(elsewhere
                             ? desk.run->Measure(wanted[i], workbench, bench->device->info(), stop)
                             : desk.run->Evaluate(wanted[i], workbench, stop));
    }
    progress(wanted.size(), wanted.size(), "");
  }
  return StatusOf(desk, run);
}

Result<AgentAnswer> AgentDesk::Diagnose(const fs::path& run, std::int64_t node) {
  KP_ASSIGN_OR_RETURN(const Desk desk, OpenToRead(run));
  const store::NodeRecord* const record = desk.run->state().Find(node);
  if (record == nullptr || record->profile.empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("there is no node {} with a profile: only kernels that are ok have one", node));
  }
  KP_ASSIGN_OR_RETURN(const Profile profile,
                      ParseProfileJson(record->profile, fmt::format("profile of node {}", node)));
  KP_ASSIGN_OR_RETURN(
      const std::unique_ptr<Device> emulator,
      OpenDevice(profile.device.starts_with("emulator") ? profile.device : "emulator"));
  const Diagnosis diagnosis = kernelpro::Diagnose(profile, emulator->info().hardware);
  AgentAnswer answer;
  answer.text =
      report::NodeLine(*record, desk.run->state()) + "\n\n" + report::DiagnosisText(diagnosis);
  report::Json json = report::DiagnosisJson(diagnosis);
  json["node"] = node;
  answer.json = search::Dump(json);
  return answer;
}

Result<AgentAnswer> AgentDesk::Source(const fs::path& run, std::int64_t node) {
  KP_ASSIGN_OR_RETURN(const Desk desk, OpenToRead(run));
  const store::NodeRecord* const record = desk.run->state().Find(node);
  if (record == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("there is no node {}", node));
  }
  return AgentAnswer{record->source, ""};
}

Result<AgentAnswer> AgentDesk::Memory(const fs::path& run, const std::string& query,
                                      std::size_t most) {
  KP_ASSIGN_OR_RETURN(const Desk desk, OpenToRead(run));
  KP_ASSIGN_OR_RETURN(const std::vector<Lesson> memory, desk.run->Memory());
  return report::MemoryAnswer(search::SearchMemory(memory, query, most));
}

Result<AgentAnswer> AgentDesk::Note(const fs::path& run, const Lesson& lesson) {
  KP_ASSIGN_OR_RETURN(const Desk desk, OpenToWrite(run));
  KP_RETURN_IF_ERROR(desk.run->Note(lesson));
  return report::MemoryAnswer({lesson});
}

Result<AgentAnswer> AgentDesk::Status(const fs::path& run) {
  KP_ASSIGN_OR_RETURN(const Desk desk, OpenToRead(run));
  return StatusOf(desk, run);
}

Result<AgentAnswer> AgentDesk::Report(const fs::path& run) {
  KP_ASSIGN_OR_RETURN(const Desk desk, OpenToRead(run));
  const search::SearchResult result = search::Summarize(desk.run->state());
  if (!result.root.done) {
    return Fail(ErrorCode::kUnavailable, "the seed has no result yet: there is nothing to report");
  }
  KP_ASSIGN_OR_RETURN(const Task task, LoadTask(desk.store->folder() / "task"));
  DeviceInfo device;
  device.id = device.title = desk.plan.device;
  KP_ASSIGN_OR_RETURN(AgentAnswer answer, StatusOf(desk, run));
  KP_ASSIGN_OR_RETURN(const std::vector<store::MeasurementRecord> measurements,
                      desk.store->Measurements());
  answer.text = report::SearchText(
      result, report::PathTo(desk.run->state().nodes(), result.best.id), task.name, device);
  if (!measurements.empty()) {
    answer.text += "\njudged elsewhere (never in one ranking with the above)\n" +
                   report::MeasurementsText(desk.run->state(), measurements);
  }
  KP_RETURN_IF_ERROR(WriteResults(desk.store->folder(), task, result, answer.text));
  answer.text += fmt::format("\nbest kernel  {}\n", (desk.store->folder() / "best.cu").string());
  return answer;
}

}  // namespace kernelpro::app
