// SPDX-License-Identifier: Apache-2.0
#include "selftest/suite.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/file.h"
#include "evaluate/evaluator.h"
#include "search/workbench.h"
#include "task/candidate.h"
#include "task/task.h"

namespace kernelpro::selftest {
namespace {

using Build = Result<BuildOutcome>;

/// Verdicts need fewer samples than speedups do.
constexpr std::uint32_t kTimingPairs = 8;

struct Source {
  std::filesystem::path file;
  std::vector<std::string> flags;
  const Task* task = nullptr;
};

Build CompileFile(const Source& source, Toolchain& toolchain, const DeviceInfo& device,
                  const std::stop_token& stop) {
  Candidate candidate;
  candidate.flags = source.flags;
  KP_ASSIGN_OR_RETURN(candidate.source, ReadFile(source.file));
  return toolchain.Compile(search::MakeBuildRequest(*source.task, candidate, device), stop);
}

/// Compiles sources with several threads, in order; Wait gives each as soon as it is there.
class Builder {
 public:
  Builder(std::vector<Source> sources, Toolchain& toolchain, DeviceInfo device, unsigned jobs,
          const std::stop_token& stop)
      : sources_(std::move(sources)),
        toolchain_(toolchain),
        device_(std::move(device)),
        outcomes_(sources_.size()) {
    on_stop_.emplace(stop, [this] { cancel_.request_stop(); });
    for (unsigned i = 0; i < std::max(1U, jobs); ++i) {
      threads_.emplace_back([this] { Work(); });
    }
  }

  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  ~Builder() { cancel_.request_stop(); }

  [[nodiscard]] std::size_t size() const { return sources_.size(); }

  [[nodiscard]] Build Wait(std::size_t index) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return outcomes_[index].has_value(); });
    return *outcomes_[index];
  }

 private:
  void Work() {
    for (std::size_t i = next_++; i < sources_.size(); i = next_++) {
      Build outcome = CompileFile(sources_[i], toolchain_, device_, cancel_.get_token());
      const std::lock_guard lock(mutex_);
      outcomes_[i].emplace(std::move(outcome));
      arrived_.notify_all();
    }
  }

  const std::vector<Source> sources_;
  Toolchain& toolchain_;
  const DeviceInfo device_;
  std::stop_source cancel_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::optional<Build>> outcomes_;
  std::vector<std::jthread> threads_;  ///< last: they use what is above
};

/// The referee of one task; the next task's replaces it, because inputs and expected outputs of
/// large workloads are kept in it.
class Judge {
 public:
  Judge(Device& device, Toolchain& toolchain, const SuiteOptions& options)
      : device_(device), toolchain_(toolchain), options_(options) {}

  [[nodiscard]] Result<Evaluation> Evaluate(const Task& task, const Build& build,
                                            const std::stop_token& stop) {
    KP_RETURN_IF_ERROR(Status(build ? Ok() : Status(build.error())));
    if (task_ != &task) {
      KP_RETURN_IF_ERROR(Open(task, stop));
    }
    return evaluator_->Evaluate(*build, stop);
  }

 private:
  [[nodiscard]] Status Open(const Task& task, const std::stop_token& stop) {
    task_ = nullptr;
    evaluator_.reset();
    EvaluatorOptions options;
    options.call_limit = options_.call_limit;
    options.timing_pairs = kTimingPairs;
    options.cache_folder = options_.cache_folder;
    if (!device_.info().emulated && !task.seed.empty()) {
      KP_ASSIGN_OR_RETURN(BuildOutcome seed,
                          CompileFile({task.seed, {}, &task}, toolchain_, device_.info(), stop));
      options.baseline = std::move(seed.build);
    }
    KP_ASSIGN_OR_RETURN(evaluator_, Evaluator::Create(task, device_, options));
    task_ = &task;
    return Ok();
  }

  Device& device_;
  Toolchain& toolchain_;
  const SuiteOptions& options_;
  const Task* task_ = nullptr;
  std::unique_ptr<Evaluator> evaluator_;
};

/// A failure of ours does not end the run: it is shown as what it is.
void Take(const Result<Evaluation>& evaluation, Verdict* verdict, std::string* reason, double* ms) {
  if (evaluation) {
    *verdict = evaluation->verdict;
    *reason = evaluation->reason;
    *ms += evaluation->evaluate_ms;
  } else {
    *verdict = Verdict::kInfrastructureError;
    *reason = evaluation.error().message;
  }
}

FixtureResult Start(const Fixture& fixture, bool emulated) {
  FixtureResult result;
  result.name = fixture.name;
  result.attack = fixture.attack;
  result.expected = fixture.ExpectedOn(emulated);
  result.possible = fixture.PossibleOn(emulated);
  return result;
}

using Tasks = std::map<std::string, Task>;

Result<Tasks> LoadTasks(const std::vector<Fixture>& fixtures, const std::filesystem::path& suite) {
  Tasks tasks;
  for (const Fixture& fixture : fixtures) {
    if (!tasks.contains(fixture.task)) {
      KP_ASSIGN_OR_RETURN(Task task, LoadTask(suite / "tasks" / fixture.task));
      tasks.emplace(fixture.task, std::move(task));
    }
  }
  return tasks;
}

std::vector<Source> SourcesOf(const std::vector<Fixture>& fixtures, const Tasks& tasks,
                              bool emulated) {
  std::vector<Source> sources;
  for (const Fixture& fixture : fixtures) {
    if (fixture.PossibleOn(emulated)) {
      const Task* task = &tasks.at(fixture.task);
      sources.push_back({fixture.folder / "hostile.cu", fixture.flags, task});
      sources.push_back({fixture.folder / "twin.cu", fixture.twin_flags, task});
    }
  }
  return sources;
}

}  // namespace

Result<std::vector<FixtureResult>> RunSuite(std::vector<Fixture> fixtures, Device& device,
                                            Toolchain& toolchain, const SuiteOptions& options,
                                            const OnResult& on_result,
                                            const std::stop_token& stop) {
  std::ranges::stable_sort(fixtures, {}, &Fixture::task);
  const bool emulated = device.info().emulated;
  KP_ASSIGN_OR_RETURN(const Tasks tasks, LoadTasks(fixtures, options.suite));
  Builder builder(SourcesOf(fixtures, tasks, emulated), toolchain, device.info(), options.jobs,
                  stop);
  Judge judge(device, toolchain, options);
  // A clock beside sixteen compilers is a bad one: where time is measured, first everything is
  // built.
  for (std::size_t i = 0; !emulated && i < builder.size() && !stop.stop_requested(); ++i) {
    (void)builder.Wait(i);
  }
  std::vector<FixtureResult> results;
  std::size_t next_source = 0;
  for (const Fixture& fixture : fixtures) {
    FixtureResult result = Start(fixture, emulated);
    if (result.possible) {
      const Task& task = tasks.at(fixture.task);
      const Build hostile = builder.Wait(next_source++);
      Take(judge.Evaluate(task, hostile, stop), &result.got, &result.reason, &result.ms);
      const Build twin = builder.Wait(next_source++);
      Take(judge.Evaluate(task, twin, stop), &result.twin, &result.twin_reason, &result.ms);
    }
    if (stop.stop_requested()) {
      return Fail(ErrorCode::kCancelled, "stopped");
    }
    results.push_back(std::move(result));
    on_result(results.back(), results.size());
  }
  return results;
}

}  // namespace kernelpro::selftest
