// SPDX-License-Identifier: Apache-2.0
#include "evaluate/sanitizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "device/protocol/once.h"
#include "evaluate/fill.h"
#include "evaluate/inputs.h"
#include "process/process.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> kTools = {"memcheck", "racecheck", "initcheck", "synccheck"};
constexpr std::uint64_t kLargestWorkload = 64ULL << 20U;
/// All workloads together, so that a task with many stays a small file.
constexpr std::uint64_t kLargestCallFile = 512ULL << 20U;
constexpr std::uint64_t kLargestLog = 16ULL << 20U;
/// Of any file: more than the driver and the tool need, less than fills a disk.
constexpr std::uint64_t kLargestFile = 1ULL << 30U;
/// --error-exitcode: nothing else that runs here ends with it.
constexpr int kFoundExit = 99;

/// What is written for the runner, and how much of the task it covers.
struct CallFile {
  std::vector<std::byte> bytes;
  std::uint32_t calls = 0, left_out = 0;
};

Result<std::uint64_t> TensorBytesOf(const Task& task, const Workload& workload) {
  std::uint64_t bytes = 0;
  for (const TensorSpec& tensor : task.tensors) {
    KP_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(tensor, workload.axes));
    bytes += static_cast<std::uint64_t>(count) * SizeOf(tensor.dtype);
  }
  return bytes;
}

Status AddCall(const Task& task, std::size_t w, Rng rng, protocol::ByteWriter* out) {
  const Workload& workload = task.workloads[w];
  protocol::OnceCall call;
  KP_ASSIGN_OR_RETURN(call.image, TaskArgsImage(task, workload.axes));
  std::vector<std::vector<std::byte>> inputs(task.tensors.size());
  std::size_t next = 0;
  for (const ArgsField& field : TaskArgsLayout(task).fields) {
    if (field.kind != ArgsField::Kind::kTensor) {
      continue;
    }
    const std::size_t i = next++;
    const TensorSpec& tensor = task.tensors[i];
    KP_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(tensor, workload.axes));
    const auto elements = static_cast<std::uint64_t>(count);
    if (tensor.role == Role::kInput) {
      inputs[i] = MakeInput(tensor, elements, rng.Next(), DistributionOf(task, w, 0));
    }
    call.tensors.push_back({.offset = field.offset,
                            .bytes = elements * SizeOf(tensor.dtype),
                            .output = tensor.role == Role::kOutput,
                            .contents = inputs[i]});
  }
  protocol::EncodeOnceCall(call, *out);
  return Ok();
}

Result<CallFile> MakeCallFile(const Task& task) {
  KP_ASSIGN_OR_RETURN(const std::uint64_t secret, SecretSeed());
  CallFile file;
  protocol::ByteWriter calls;
  for (std::size_t w = 0; w < task.workloads.size(); ++w) {
    if (task.workloads[w].kind == Workload::Kind::kTimed) {
      continue;
    }
    KP_ASSIGN_OR_RETURN(const std::uint64_t bytes, TensorBytesOf(task, task.workloads[w]));
    if (bytes > kLargestWorkload || calls.bytes().size() + bytes > kLargestCallFile) {
      ++file.left_out;
      continue;
    }
    KP_RETURN_IF_ERROR(AddCall(task, w, Rng(secret).Fork(w), &calls));
    ++file.calls;
  }
  protocol::ByteWriter all;
  protocol::EncodeOnceStart(file.calls, all);
  all.Raw(calls.bytes());
  file.bytes = all.Take();
  return file;
}

/// All that keeps the tool and the candidate in, in one place. The network stays reachable: the
/// tool talks to the process that it watches over local sockets. The driver names its threads in
/// /proc/<its own number>/task and does not start where it cannot; that number is not known here.
std::optional<Confinement> ConfinementOf(const SanitizerRequest& request, const fs::path& folder) {
  if (!request.confine) {
    return std::nullopt;
  }
  std::error_code error;
  Confinement confinement = SystemConfinement();
  // In a toolkit bin/compute-sanitizer is a script that starts the one in compute-sanitizer/.
  const fs::path place = fs::canonical(request.tool, error).parent_path();
  for (const fs::path& path :
       {request.toolkit, place, request.tool.parent_path(),
        place.parent_path() / "compute-sanitizer", request.recipe.runtime.parent_path(),
        request.recipe.runner, request.library, folder}) {
    if (path.has_relative_path()) {
      confinement.read_only.push_back(path);
    }
  }
  confinement.read_only.insert(
      confinement.read_only.end(),
      {"/proc", "/sys/devices", "/sys/module", "/sys/bus/pci", "/sys/class", "/sys/kernel/mm"});
  confinement.read_write = {folder / "private"};
  confinement.devices.emplace_back("/proc");
  for (const auto& entry : fs::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("nvidia") || name == "dxg") {
      confinement.devices.push_back(entry.path());
    }
  }
  confinement.network = true;
  confinement.new_user_namespace = false;  // The GPU's devices may not be a stranger's to open.
  return confinement;
}

/// Nothing of ours but where libraries are: the candidate sees it.
std::vector<std::string> EnvironmentOf(const SanitizerRequest& request, const fs::path& home) {
  std::string libraries = request.recipe.runtime.parent_path().string();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): never set by us
  if (const char* ours = std::getenv("LD_LIBRARY_PATH"); ours != nullptr && *ours != '\0') {
    libraries += fmt::format(":{}", ours);
  }
  return {"LC_ALL=C",
          "PATH=/usr/local/bin:/usr/bin:/bin",
          "LD_LIBRARY_PATH=" + libraries,
          "HOME=" + home.string(),
          "TMPDIR=" + home.string(),
          "CUDA_VISIBLE_DEVICES=" + request.recipe.gpu_uuid,
          "CUDA_CACHE_DISABLE=1"};
}

ProcessSpec SpecOf(const SanitizerRequest& request, const std::string& tool,
                   const fs::path& folder) {
  const fs::path home = folder / "private";
  ProcessSpec spec;
  spec.argv = {request.tool.string(),
               "--tool",
               tool,
               "--error-exitcode",
               std::to_string(kFoundExit),
               "--log-file",
               (home / (tool + ".log")).string(),
               "--print-limit",
               "5",
               "--target-processes",
               "application-only"};
  if (tool == "memcheck") {
    // A call that fails is the candidate's to answer; here it is about memory.
    spec.argv.insert(spec.argv.end(), {"--report-api-errors", "no"});
  } else if (tool == "racecheck") {
    // Warnings would use up the limit of what is printed and counted.
    spec.argv.insert(spec.argv.end(), {"--racecheck-detect-level", "error"});
  }
  spec.argv.insert(spec.argv.end(), {request.recipe.runner.string(), protocol::kOnceMode,
                                     request.library.string(), (folder / "calls").string()});
  spec.environment = EnvironmentOf(request, home);
  spec.folder = home;
  spec.limits.wall = request.limit;
  spec.limits.file_bytes = kLargestFile;
  spec.confinement = ConfinementOf(request, folder);
  return spec;
}

/// The log, or nothing where the candidate left something else in its place.
std::string ReadLog(const fs::path& path) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::regular) {
    return {};
  }
  Result<std::string> text = ReadFile(path, kLargestLog);
  return text ? std::move(text).value() : std::string();
}

std::string LastLine(std::string_view text) {
  const std::vector<std::string_view> lines = Lines(text);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (const std::string_view kept = Trim(*line); !kept.empty()) {
      return Printable(kept, 300);
    }
  }
  return {};
}

bool SaysDone(std::string_view text) {
  const std::vector<std::string_view> lines = Lines(text);
  return std::ranges::find(lines, protocol::kOnceDone) != lines.end();
}

}  // namespace

bool SanitizerReport::Clean() const {
  return !runs.empty() && std::ranges::all_of(runs, [](const SanitizerRun& run) {
    return run.ran && run.errors == 0;
  });
}

fs::path FindComputeSanitizer(const fs::path& toolkit) {
  for (const char* place : {"bin/compute-sanitizer", "compute-sanitizer/compute-sanitizer"}) {
    std::error_code error;
    const fs::path tool = toolkit / place;
    if (!toolkit.empty() && fs::is_regular_file(tool, error)) {
      return tool;
    }
  }
  return FindOnPath("compute-sanitizer");
}

SanitizerRun JudgeSanitizerRun(std::string tool, const SanitizerLog& log,
                               const ProcessResult& ended, const ProcessLimits& limits) {
  SanitizerRun run;
  run.tool = std::move(tool);
  run.elapsed = ended.elapsed;
  run.errors = log.errors;
  if (log.errors != 0) {
    run.ran = true;
    run.misaligned = log.misaligned;
    run.first_message =
        log.kind.empty() ? "errors that its log does not describe" : DescribeFinding(log);
    return run;
  }
  // Clean is what all three say: the tool's exit code, its own count, and that every call came to
  // its end.
  if (ended.Succeeded() && log.complete && SaysDone(ended.out)) {
    run.ran = true;
    return run;
  }
  run.first_message = DescribeEnd(ended, limits);
  if (ended.Succeeded()) {
    run.first_message = log.complete ? "the candidate ended the process before its calls were over"
                                     : "it wrote no count of errors";
  }
  for (const std::string& more : {log.trouble, LastLine(ended.err), LastLine(ended.out)}) {
    if (!more.empty() && !ended.Succeeded()) {
      run.first_message += ": " + more;
      break;
    }
  }
  return run;
}

Result<SanitizerReport> RunSanitizers(const Task& task, const SanitizerRequest& request,
                                      const std::stop_token& stop) {
  SanitizerReport report;
  KP_ASSIGN_OR_RETURN(const CallFile calls, MakeCallFile(task));
  report.workloads = calls.calls;
  report.left_out = calls.left_out;
  if (calls.calls == 0) {
    return report;
  }
  KP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create("kp-sanitizer"));
  KP_RETURN_IF_ERROR(
      WriteFileAtomically(folder.path() / "calls",
                          {reinterpret_cast<const char*>(calls.bytes.data()), calls.bytes.size()}));
  for (const char* const tool : kTools) {
    // Fresh for each: what a candidate left there is not the next tool's.
    std::error_code error;
    fs::remove_all(folder.path() / "private", error);
    if (!fs::create_directory(folder.path() / "private", error)) {
      return Fail(ErrorCode::kIo,
                  fmt::format("cannot make a folder for {}: {}", tool, error.message()));
    }
    const ProcessSpec spec = SpecOf(request, tool, folder.path());
    KP_ASSIGN_OR_RETURN(const ProcessResult ended, RunProcess(spec, stop));
    if (ended.end == ProcessResult::End::kCancelled) {
      return Fail(ErrorCode::kCancelled, "stopped while the sanitizers ran");
    }
    const SanitizerLog log =
        ParseSanitizerLog(ReadLog(folder.path() / "private" / fmt::format("{}.log", tool)));
    report.runs.push_back(JudgeSanitizerRun(tool, log, ended, spec.limits));
    report.confinement = ended.confinement;
  }
  return report;
}

std::optional<Condemnation> JudgeSanitizers(const SanitizerReport& report) {
  for (const SanitizerRun& run : report.runs) {
    if (run.errors == 0) {
      continue;
    }
    Verdict verdict = Verdict::kRuntimeError;  // synccheck
    if (run.tool == "memcheck" && !run.misaligned) {
      verdict = Verdict::kOutOfBounds;
    } else if (run.tool == "racecheck") {
      verdict = Verdict::kRace;
    } else if (run.tool == "initcheck") {
      verdict = Verdict::kNondeterministic;
    }
    return Condemnation{
        verdict, fmt::format("compute-sanitizer's {} found {} error{}: {}", run.tool, run.errors,
                             run.errors == 1 ? "" : "s", run.first_message)};
  }
  return std::nullopt;
}

std::string Describe(const SanitizerReport& report) {
  if (report.runs.empty()) {
    return "nothing was run: every checked workload has more than 64 MiB of tensors";
  }
  std::string clean;
  std::string others;
  for (const SanitizerRun& run : report.runs) {
    if (run.ran && run.errors == 0) {
      clean += fmt::format("{}{}", clean.empty() ? "" : ", ", run.tool);
    } else if (run.ran) {
      others += fmt::format("; {} FOUND {} error{}: {}", run.tool, run.errors,
                            run.errors == 1 ? "" : "s", run.first_message);
    } else {
      others += fmt::format("; {} did not run: {}", run.tool, run.first_message);
    }
  }
  std::string text = clean.empty() ? "" : clean + " clean";
  text += clean.empty() ? others.substr(2) : others;
  text += fmt::format(" ({} workload{}", report.workloads, report.workloads == 1 ? "" : "s");
  return text + (report.left_out == 0 ? ")" : fmt::format(", {} too large)", report.left_out));
}

}  // namespace kernelpro
