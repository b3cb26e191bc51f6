// SPDX-License-Identifier: Apache-2.0
#include "setup.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "toolchain/disassemble.h"

namespace kernelpro::app {
namespace {

namespace fs = std::filesystem;

int ExitCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kParse:
      return 2;
    case ErrorCode::kUnavailable:
      return 3;
    case ErrorCode::kTimeout:
    case ErrorCode::kCancelled:
    case ErrorCode::kIo:
    case ErrorCode::kToolFailed:
    case ErrorCode::kBudget:
    case ErrorCode::kInternal:
      return 1;
  }
  return 1;
}

sigset_t StopSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGUSR1);  // How the destructor wakes the waiting thread.
  return set;
}

const char* Environment(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets variables here
}

}  // namespace

fs::path CacheFolder() {
  if (const char* folder = Environment("KERNELPRO_CACHE"); folder != nullptr && *folder != '\0') {
    return folder;
  }
  if (const char* folder = Environment("XDG_CACHE_HOME"); folder != nullptr && *folder != '\0') {
    return fs::path(folder) / "kernelpro";
  }
  const char* const home = Environment("HOME");
  return home != nullptr ? fs::path(home) / ".cache" / "kernelpro"
                         : fs::temp_directory_path() / "kernelpro-cache";
}

int Complain(const Error& error, bool json) {
  const std::string message = Printable(error.message, 20000);
  if (json) {
    const nlohmann::ordered_json object = {{"error", message}};
    fmt::print("{}\n", object.dump());
  }
  fmt::print(stderr, "kernelpro: {}\n", message);
  return ExitCode(error.code);
}

Interrupt::Interrupt() {
  const sigset_t set = StopSignals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::jthread([this](const std::stop_token& ended) {
    const sigset_t waited = StopSignals();
    int signal = 0;
    while (::sigwait(&waited, &signal) == 0 && !ended.stop_requested()) {
      if (signal == SIGUSR1) {
        continue;
      }
      if (source_.stop_requested()) {
        ::_exit(130);  // Children die with us: see process/.
      }
      fmt::print(stderr, "\nstopping; interrupt once more to end at once\n");
      source_.request_stop();
    }
  });
}

Interrupt::~Interrupt() {
  thread_.request_stop();
  ::pthread_kill(thread_.native_handle(), SIGUSR1);
}

Result<std::unique_ptr<Toolchain>> FindToolchain() {
  Result<std::unique_ptr<Toolchain>> toolchain = Toolchain::Find(CacheFolder());
  if (!toolchain && toolchain.error().code == ErrorCode::kUnavailable) {
    // Without a compiler no input can be right: exit code 2, as docs/command_line.md says.
    return Fail(ErrorCode::kInvalidArgument, toolchain.error().message);
  }
  return toolchain;
}

Result<std::unique_ptr<Bench>> OpenBench(const fs::path& task, const std::string& device,
                                         std::optional<std::uint64_t> input_seed, bool filter) {
  auto bench = std::make_unique<Bench>();
  if (task.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "no task given: name a folder with a task.toml, for example examples/tasks/matmul");
  }
  KP_ASSIGN_OR_RETURN(bench->task, LoadTask(task));
  KP_ASSIGN_OR_RETURN(bench->device, OpenDevice(device));
  KP_ASSIGN_OR_RETURN(bench->spec, model::LoadSpec(bench->device->info().spec));
  KP_ASSIGN_OR_RETURN(bench->toolchain, FindToolchain());
  EvaluatorOptions options;
  options.seed = input_seed;
  options.cache_folder = CacheFolder();
  options.disassembler = FindDisassembler(bench->toolchain->toolkit());
  if (filter && !bench->device->info().emulated) {
    KP_ASSIGN_OR_RETURN(bench->filter_device, OpenDevice("emulator:" + bench->spec.name));
    KP_ASSIGN_OR_RETURN(bench->filter,
                        Evaluator::Create(bench->task, *bench->filter_device, options));
  }
  if (!bench->device->info().emulated && !bench->task.seed.empty()) {
    bench->device->Prepare();
    Candidate seed;
    KP_ASSIGN_OR_RETURN(seed.source, ReadSource(bench->task.seed));
    KP_ASSIGN_OR_RETURN(
        BuildOutcome build,
        bench->toolchain->Compile(
            search::MakeBuildRequest(bench->task, seed, bench->device->info()), {}));
    options.baseline = std::move(build.build);
  }
  KP_ASSIGN_OR_RETURN(bench->evaluator, Evaluator::Create(bench->task, *bench->device, options));
  return bench;
}

search::Workbench Bench::MakeWorkbench() {
  return {
      task,       *device,
      *toolchain, *evaluator,
      spec,       filter ? std::optional(search::Filter{*filter_device, *filter}) : std::nullopt};
}

Result<std::string> ReadSource(const fs::path& path) {
  KP_ASSIGN_OR_RETURN(std::string source, ReadFile(path, 4U << 20U));
  if (source.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is not a source file: it holds binary data", path.string()));
  }
  return source;
}

}  // namespace kernelpro::app
