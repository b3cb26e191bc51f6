// SPDX-License-Identifier: Apache-2.0
#include "run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <system_error>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "model.h"
#include "report/diff.h"

namespace kernelpro::app {
namespace {

namespace fs = std::filesystem;

fs::path DefaultRunFolder(const std::string& task, std::int64_t now) {
  const fs::path base =
      fs::path("kernelpro-runs") /
      fmt::format("{}-{:%Y%m%d-%H%M%S}", task, fmt::localtime(static_cast<std::time_t>(now)));
  fs::path folder = base;
  for (int i = 2; fs::exists(folder); ++i) {
    folder = fs::path(fmt::format("{}-{}", base.string(), i));
  }
  return folder;
}

Status CopyTask(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  for (const char* name : {"task.toml", "reference.cc", "seed.cu"}) {
    if (!error && fs::exists(from / name)) {
      fs::copy_file(from / name, to / name, fs::copy_options::overwrite_existing, error);
    }
  }
  if (error) {
    return Fail(ErrorCode::kIo,
                fmt::format("cannot copy the task to {}: {}", to.string(), error.message()));
  }
  return Ok();
}

std::uint64_t ParseSeed(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);  // Written by us with to_string.
}

}  // namespace

Result<Plan> NewPlan(std::string device, std::string proposer, std::string search,
                     std::optional<std::uint64_t> seed) {
  Plan plan{std::move(device), std::move(proposer), std::move(search), seed.value_or(1), 0, {}};
  if (seed) {
    plan.input_seed = Rng(*seed).Fork(0x696e70757473ULL).Next();
  } else {
    KP_ASSIGN_OR_RETURN(plan.input_seed, SecretSeed());
  }
  return plan;
}

Result<std::unique_ptr<store::RunStore>> StartRun(const fs::path& folder, const Plan& plan,
                                                  const Task& task, const std::string& device_id) {
  const fs::path where =
      folder.empty() ? DefaultRunFolder(task.name, SystemClock().UnixSeconds()) : folder;
  std::map<std::string, std::string> facts = plan.more;
  facts["task"] = task.name;
  facts["device"] = device_id;
  facts["proposer"] = plan.proposer;
  facts["search"] = plan.search;
  facts["search_seed"] = std::to_string(plan.search_seed);
  facts["input_seed"] = std::to_string(plan.input_seed);
  facts["version"] = KP_VERSION;
  KP_ASSIGN_OR_RETURN(std::unique_ptr<store::RunStore> store,
                      store::RunStore::Create(where, facts));
  KP_RETURN_IF_ERROR(CopyTask(task.folder, where / "task"));
  return store;
}

Result<Plan> StoredPlan(const store::RunStore& store) {
  Plan plan;
  for (const auto& [name, field] :
       {std::pair("device", &plan.device), std::pair("proposer", &plan.proposer),
        std::pair("search", &plan.search)}) {
    const std::optional<std::string> value = store.Fact(name);
    if (!value) {
      return Fail(ErrorCode::kInvalidArgument, fmt::format("{} is damaged: it does not say its {}",
                                                           store.folder().string(), name));
    }
    *field = *value;
  }
  plan.search_seed = ParseSeed(store.Fact("search_seed").value_or("1"));
  plan.input_seed = ParseSeed(store.Fact("input_seed").value_or("0"));
  for (const std::string& name : ModelFacts()) {
    if (const std::optional<std::string> value = store.Fact(name)) {
      plan.more[name] = *value;
    }
  }
  return plan;
}

Status WriteResults(const fs::path& folder, const Task& task, const search::SearchResult& result,
                    const std::string& text) {
  KP_RETURN_IF_ERROR(WriteFileAtomically(folder / "kernelpro_task.h", CandidateHeader(task)));
  KP_RETURN_IF_ERROR(WriteFileAtomically(folder / "best.cu", result.best.source));
  KP_RETURN_IF_ERROR(WriteFileAtomically(
      folder / "best.diff",
      report::UnifiedDiff(result.root.source, result.best.source, "seed.cu", "best.cu")));
  return WriteFileAtomically(folder / "result.txt", text);
}

}  // namespace kernelpro::app
