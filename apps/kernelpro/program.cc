// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "device/emulated_launch.h"
#include "device/referee/program_run.h"
#include "process/process.h"
#include "profile/activity_run.h"
#include "profile/build_facts.h"
#include "profile/collect.h"
#include "profile/emulation_profile.h"
#include "profile/evidence.h"
#include "profile/ncu_csv.h"
#include "profile/nvidia_tool.h"
#include "profile/ptxas_log.h"
#include "profile/sass_profile.h"
#include "sass/listing.h"
#include "setup.h"
#include "toolchain/ptxas_figures.h"

namespace kernelpro::app {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kCompileLimit{300};
constexpr std::chrono::seconds kDisassembleLimit{60};
constexpr std::uint64_t kMostOutput = 256U << 20U;

/// A program made of the user's source, in a folder that goes when we do.
struct Built {
  fs::path program;
  std::string log;                 ///< of ptxas -v; empty: it was no source
  std::vector<std::string> flags;  ///< as given to nvcc
};

bool NamesTarget(const std::vector<std::string>& flags) {
  return std::ranges::any_of(flags, [](const std::string& flag) {
    return flag.starts_with("-arch") || flag.starts_with("-gencode") ||
           flag.starts_with("--gpu-") || flag.starts_with("--generate-code");
  });
}

class Session {
 public:
  Session(const ProgramOptions& options, fs::path folder, std::stop_token stop)
      : options_(options), folder_(std::move(folder)), stop_(std::move(stop)) {}

  Result<ProgramProfile> Run() {
    KP_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, OpenDevice(options_.device));
    info_ = device->info();
    device.reset();  // its context would stand beside the program's
    KP_ASSIGN_OR_RETURN(spec_, model::LoadSpec(info_.spec));
    const bool source = options_.file.extension() == ".cu";
    if (!source && info_.emulated) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} is no .cu file; the emulator needs the source of the program",
                              options_.file.string()));
    }
    built_.program = fs::absolute(options_.file);
    if (source) {
      KP_ASSIGN_OR_RETURN(built_, Compile(info_.emulated ? "emulated" : "program", info_.emulated));
    } else if (!fs::exists(options_.file)) {
      return Fail(ErrorCode::kNotFound, fmt::format("no file {}", options_.file.string()));
    }
    ProgramProfile result;
    KP_ASSIGN_OR_RETURN(result.profile, info_.emulated ? Emulated() : Measured(&result.passes));
    AddBuild(result.profile);
    KP_RETURN_IF_ERROR(KeepKernel(result.profile));
    result.hardware = info_.hardware;
    result.device = info_.id;
    return result;
  }

 private:
  /// For the emulator with CUDA's runtime as a library that ours can stand in for.
  Result<Built> Compile(const std::string& name, bool shared_runtime) {
    KP_ASSIGN_OR_RETURN(const std::unique_ptr<Toolchain> toolchain, FindToolchain());
    Built built;
    built.program = folder_ / name;
    built.flags = options_.flags;
    built.flags.emplace_back("-lineinfo");
    if (!NamesTarget(built.flags)) {
      const std::string number = info_.arch.substr(3);
      built.flags.push_back("-gencode");
      built.flags.push_back(fmt::format("arch=compute_{0},code=[compute_{0},sm_{0}]", number));
    }
    ProcessSpec spec;
    spec.argv = {toolchain->nvcc().string(), "-std=c++17", "-O3", "-Xptxas",
                 "-v,--warn-on-spills,--warn-on-local-memory-usage,--warn-on-double-precision-use"};
    if (shared_runtime) {
      spec.argv.insert(spec.argv.end(), {"-cudart", "shared", "-no-compress"});
    }
    spec.argv.insert(spec.argv.end(), built.flags.begin(), built.flags.end());
    spec.argv.insert(spec.argv.end(),
                     {fs::absolute(options_.file).string(), "-o", built.program.string()});
    spec.limits.wall = kCompileLimit;
    KP_ASSIGN_OR_RETURN(const ProcessResult result, RunProcess(spec, stop_));
    KP_RETURN_IF_ERROR(Cancelled());
    if (!result.Succeeded()) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{} does not compile:\n{}", options_.file.string(),
                              Printable(result.err + result.out, 16384)));
    }
    built.log = result.err + result.out;
    return built;
  }

  [[nodiscard]] Status Cancelled() const {
    return stop_.stop_requested() ? Status(Fail(ErrorCode::kCancelled, "stopped")) : Ok();
  }

  Result<Profile> Emulated() { return Emulate(built_); }

  Result<Profile> Emulate(const Built& built) {
    ProgramRequest request;
    request.argv = {built.program.string()};
    request.argv.insert(request.argv.end(), options_.arguments.begin(), options_.arguments.end());
    request.gpu = spec_.name;
    request.wall_limit = options_.limit;
    for (const auto& [name, figures] : ParsePtxasFigures(built.log)) {
      request.kernels[name] = ResourcesOf(figures);
    }
    KP_ASSIGN_OR_RETURN(const ProgramRun run, RunProgramOnEmulator(request, stop_));
    std::vector<Profile> sources;
    sources.push_back(FromEmulation(run.launches, EmulatorInfo(spec_), spec_, {}));
    Profile& emulated = sources.front();
    for (const simt::Fault& fault : run.faults) {
      emulated.notes.push_back("The emulator found: " + Printable(fault.message, 300) + ".");
    }
    if (run.launches_left_out > 0) {
      emulated.notes.push_back(
          fmt::format("{} further launches were not kept.", run.launches_left_out));
    }
    if (run.exit_code != 0) {
      emulated.notes.push_back(
          fmt::format("The program ended with {}: large grids are sampled on the emulator, so its "
                      "own checks of results may fail.",
                      run.exit_code));
    }
    for (auto& read : {ParsePtxasLog(built.log, "the compiler's log"), ReadSass(built.program)}) {
      if (read) {
        sources.push_back(*read);
      }
    }
    return MergeEvidence(std::move(sources));
  }

  Result<Profile> Measured(std::vector<std::string>* passes) {
    CollectOptions collect;
    collect.run.argv = {built_.program.string()};
    collect.run.argv.insert(collect.run.argv.end(), options_.arguments.begin(),
                            options_.arguments.end());
    collect.run.limit = options_.limit;
    collect.toolkit = Toolkit();
    collect.spec = spec_;
    collect.compute_capability = spec_.compute_capability;
    Result<ActivityRun> trace = Trace();
    collect.depth = options_.counters ? DepthFor(trace) : CollectOptions::Depth::kNone;
    collect.sampling = options_.samples;
    collect.run.kernel = options_.kernel;
    if (options_.kernel.empty() && trace && !trace->profile.kernels.empty()) {
      collect.run.kernel = trace->profile.kernels.front().mangled;  // the longest
    }
    AddTiers(collect, std::move(trace));
    KP_ASSIGN_OR_RETURN(Collection collection, CollectProfile(collect, stop_));
    for (const CollectPass& pass : collection.passes) {
      passes->push_back(fmt::format("{}: {:.1f} s{}", pass.packs,
                                    static_cast<double>(pass.wall.count()) / 1000,
                                    pass.error.empty() ? "" : " (" + pass.error + ")"));
    }
    for (KernelProfile& kernel : collection.profile.kernels) {
      for (const sass::Function& function : listing_.functions) {
        if (function.name == kernel.mangled || KernelIs(kernel, function.name)) {
          AttributeStalls(kernel, function);
        }
      }
    }
    return std::move(collection.profile);
  }

  /// Starting ncu takes longer than its passes over a short kernel, so one run with all counters is
  /// the cheapest (docs/measurements/h200_experts.md); over a long one the passes are what costs.
  static CollectOptions::Depth DepthFor(const Result<ActivityRun>& trace) {
    constexpr double kLongUs = 20'000;
    const auto median = trace && !trace->profile.kernels.empty()
                            ? trace->profile.kernels.front().Value("timeline.kernel_median_ns")
                            : std::nullopt;
    return median.value_or(0) / 1000 > kLongUs ? CollectOptions::Depth::kTargeted
                                               : CollectOptions::Depth::kEverything;
  }

  static bool KernelIs(const KernelProfile& kernel, const std::string& mangled) {
    const auto found = kernel.texts.find("sass.function");
    return found != kernel.texts.end() && found->second == mangled;
  }

  [[nodiscard]] static fs::path Toolkit() {
    const auto toolchain = FindToolchain();
    return toolchain ? (*toolchain)->toolkit() : fs::path();
  }

  Result<ActivityRun> Trace() {
    ActivityRunOptions options;
    options.argv = {built_.program.string()};
    options.argv.insert(options.argv.end(), options_.arguments.begin(), options_.arguments.end());
    options.wall = options_.limit;
    return RunWithActivity(options, stop_);
  }

  void AddTiers(CollectOptions& collect, Result<ActivityRun> trace) {
    using When = EvidenceTier::When;
    collect.tiers.push_back(
        {"the disassembly", When::kBefore, [this](const std::stop_token&) { return Code(); }});
    if (!built_.log.empty()) {
      collect.tiers.push_back({"the compiler's log", When::kBefore, [this](const std::stop_token&) {
                                 return ParsePtxasLog(built_.log, "the compiler's log");
                               }});
    }
    collect.tiers.push_back({"the activity trace", When::kAlways,
                             [run = std::make_shared<Result<ActivityRun>>(std::move(trace))](
                                 const std::stop_token&) -> Result<Profile> {
                               if (!*run) {
                                 return run->error();
                               }
                               return run->value().profile;
                             }});
    if (options_.file.extension() == ".cu") {
      collect.tiers.push_back(
          {"the emulator", When::kInstead, [this](const std::stop_token&) -> Result<Profile> {
             KP_ASSIGN_OR_RETURN(const Built emulated, Compile("emulated", true));
             return Emulate(emulated);
           }});
    }
  }

  /// With source lines where cuobjdump and nvdisasm are there; else what the binary itself says.
  Result<Profile> Code() {
    const fs::path toolkit = Toolkit();
    const NvidiaTool extractor = FindNvidiaTool("cuobjdump", toolkit);
    const NvidiaTool disassembler = FindNvidiaTool("nvdisasm", toolkit);
    if (!extractor.found() || !disassembler.found()) {
      return ReadSass(built_.program);
    }
    ProcessSpec spec;
    spec.folder = folder_;
    spec.limits.wall = kDisassembleLimit;
    spec.limits.output_bytes = kMostOutput;
    spec.argv = {extractor.path.string(), "-xelf", "all", built_.program.string()};
    KP_ASSIGN_OR_RETURN(const ProcessResult extracted, RunProcess(spec, stop_));
    std::string text;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".cubin") {
        spec.argv = {disassembler.path.string(), "-g", "-c", entry.path().string()};
        KP_ASSIGN_OR_RETURN(const ProcessResult listed, RunProcess(spec, stop_));
        text += listed.out;
      }
    }
    if (!extracted.Succeeded() || text.empty()) {
      return ReadSass(built_.program);
    }
    if (auto listing = sass::ParseListing(text, "nvdisasm"); listing) {
      listing_ = std::move(listing).value();
    }
    return ParseSass(text, "nvdisasm");
  }

  void AddBuild(Profile& profile) const {
    if (!built_.flags.empty()) {
      for (auto& [name, metric] : BuildFacts(built_.flags)) {
        profile.system[name] = metric;
      }
    }
    profile.system["build.device_arch"] = {static_cast<double>(spec_.compute_capability), "",
                                           Provenance::kCounted};
  }

  /// Only what was asked for, and what ran.
  Status KeepKernel(Profile& profile) const {
    std::vector<std::string> names;
    for (const KernelProfile& kernel : profile.kernels) {
      names.push_back(kernel.name);
    }
    const bool timed =
        std::ranges::any_of(profile.kernels, [](const KernelProfile& k) { return k.time_us > 0; });
    std::erase_if(profile.kernels, [&](const KernelProfile& k) {
      const bool asked = options_.kernel.empty() || k.name == options_.kernel ||
                         k.mangled == options_.kernel ||
                         k.name.substr(0, k.name.find('<')) == options_.kernel ||
                         options_.kernel.starts_with("regex:");
      return !asked || (timed && k.time_us <= 0);
    });
    if (profile.kernels.empty()) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("no kernel '{}' ran; there are: {}", options_.kernel,
                              fmt::join(names, ", ")));
    }
    double total = 0;
    for (const KernelProfile& kernel : profile.kernels) {
      total += kernel.time_us;
    }
    for (KernelProfile& kernel : profile.kernels) {
      kernel.time_share = total > 0 ? kernel.time_us / total : 1;
    }
    return Ok();
  }

  const ProgramOptions& options_;
  fs::path folder_;
  std::stop_token stop_;
  DeviceInfo info_;
  model::GpuSpec spec_;
  Built built_;
  sass::Listing listing_;
};

}  // namespace

Result<ProgramProfile> ProfileProgram(const ProgramOptions& options, const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create("kernelpro-program"));
  return Session(options, folder.path(), stop).Run();
}

}  // namespace kernelpro::app
