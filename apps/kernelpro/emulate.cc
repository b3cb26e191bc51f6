// SPDX-License-Identifier: Apache-2.0
// emulate: one kernel, its arguments from the command line. PTX is interpreted, so no sandbox is
// needed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "commands.h"
#include "device/emulated_launch.h"
#include "diagnose/diagnose.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/engine.h"
#include "profile/emulation_profile.h"
#include "profile/kernel_name.h"
#include "report/format.h"
#include "report/json.h"
#include "report/text.h"
#include "search/record.h"
#include "setup.h"
#include "toolchain/ptxas_figures.h"

namespace kernelpro::app {
namespace {

using report::Json;

/// Launches of more threads than this are sampled unless --full is given.
constexpr std::uint64_t kMostThreadsInFull = 1ULL << 22U;
constexpr std::uint64_t kDataSeed = 1;

Error BadUsage(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

Result<simt::Dim3> ParseDim3(const std::string& text, std::string_view option) {
  const auto parts = Split(text, ',');
  std::array<std::uint32_t, 3> sides = {1, 1, 1};
  for (std::size_t i = 0; i < parts.size() && i < 3; ++i) {
    long long value = 0;
    if (!ParseInteger(Trim(parts[i]), &value) || value < 1 || value > 0x7fffffff) {
      return BadUsage(
          fmt::format("{} {}: each of X[,Y[,Z]] is a whole number of at least 1", option, text));
    }
    sides.at(i) = static_cast<std::uint32_t>(value);
  }
  if (parts.size() > 3) {
    return BadUsage(fmt::format("{} {}: at most three sides", option, text));
  }
  return simt::Dim3{sides[0], sides[1], sides[2]};
}

/// The module, and what the assembler said of its kernels (empty for a .ptx file).
struct Source {
  std::shared_ptr<const ptx::Module> module;
  std::map<std::string, model::KernelResources> resources;
};

Result<Source> Load(const EmulateOptions& options, const std::stop_token& stop) {
  Source loaded;
  std::filesystem::path ptx_file = options.source;
  if (options.source.extension() != ".ptx") {
    KP_ASSIGN_OR_RETURN(const std::unique_ptr<Toolchain> toolchain, FindToolchain());
    BuildRequest request;
    KP_ASSIGN_OR_RETURN(request.source, ReadSource(options.source));
    request.file_name = options.source.filename().string();
    KP_ASSIGN_OR_RETURN(const BuildOutcome outcome, toolchain->Compile(request, stop));
    if (outcome.failure) {
      return BadUsage(
          fmt::format("{} does not compile:\n{}", options.source.string(), outcome.failure->log));
    }
    ptx_file = outcome.build->ptx;
    for (const auto& [name, figures] : outcome.build->kernels) {
      loaded.resources[name] = ResourcesOf(figures);
    }
  }
  KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(ptx_file));
  KP_ASSIGN_OR_RETURN(ptx::Module module, ptx::Parse(text, options.source.string()));
  loaded.module = std::make_shared<const ptx::Module>(std::move(module));
  return loaded;
}

/// "copy" of "_Z4copyPKfPfi", "ns::copy" of "ns::copy<float>(...)".
std::string BareName(const std::string& name) {
  std::string qualified = PartsOfKernelName(name).qualified;
  return qualified.empty() ? name : qualified;
}

Result<const ptx::Function*> FindKernel(const ptx::Module& module, const std::string& name) {
  std::vector<std::string> known;
  const ptx::Function* found = nullptr;
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry) {
      continue;
    }
    known.push_back(function.name);
    if (function.name == name) {
      return &function;
    }
    if (BareName(function.name) == name) {
      if (found != nullptr) {
        return BadUsage(
            fmt::format("kernel '{}' is ambiguous: give one of {}", name, fmt::join(known, ", ")));
      }
      found = &function;
    }
  }
  if (found == nullptr) {
    return BadUsage(
        fmt::format("no kernel '{}'; there are: {}", name,
                    known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
  }
  return found;
}

Status FillBuffer(std::span<std::byte> bytes, std::string_view how) {
  Rng rng(kDataSeed);
  for (std::size_t i = 0; i + 4 <= bytes.size() && how != "zero"; i += 4) {
    const auto value = static_cast<float>(2 * rng.Uniform() - 1);
    const auto index = static_cast<std::int32_t>(i / 4);
    std::memcpy(bytes.data() + i, how == "iota" ? static_cast<const void*>(&index) : &value, 4);
  }
  return Ok();
}

template <class T>
std::vector<std::byte> Bytes(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

Result<std::vector<std::byte>> MakeBuffer(const std::vector<std::string_view>& parts,
                                          const std::string& text, std::size_t index,
                                          simt::DeviceMemory& memory) {
  long long size = 0;
  const std::string_view how = parts.size() > 2 ? parts[2] : "zero";
  if (parts.size() > 3 || !ParseInteger(parts[1], &size) || size < 1 ||
      (how != "zero" && how != "random" && how != "iota")) {
    return BadUsage(
        fmt::format("--arg {}: a buffer is buf:BYTES or buf:BYTES:zero|random|iota", text));
  }
  const auto bytes = static_cast<std::uint64_t>(size);
  KP_ASSIGN_OR_RETURN(const std::uint64_t address,
                      memory.Allocate(bytes, fmt::format("argument {}", index)));
  KP_ASSIGN_OR_RETURN(const std::span<std::byte> view, memory.View(address, bytes));
  KP_RETURN_IF_ERROR(FillBuffer(view, how));
  return Bytes(address);
}

/// One --arg as parameter bytes.
Result<std::vector<std::byte>> MakeArgument(const std::string& text, std::size_t index,
                                            simt::DeviceMemory& memory) {
  const auto parts = Split(text, ':');
  if (parts.size() >= 2 && parts[0] == "buf") {
    return MakeBuffer(parts, text, index, memory);
  }
  long long integer = 0;
  double real = 0;
  if (parts.size() == 2 && ParseInteger(parts[1], &integer)) {
    if (parts[0] == "i32" || parts[0] == "u32") {
      const bool fits = parts[0] == "i32" ? integer >= INT32_MIN && integer <= INT32_MAX
                                          : integer >= 0 && integer <= UINT32_MAX;
      if (!fits) {
        return BadUsage(fmt::format("--arg {}: out of range", text));
      }
      return Bytes(static_cast<std::uint32_t>(integer));
    }
    if (parts[0] == "i64" || parts[0] == "u64") {
      return Bytes(static_cast<std::int64_t>(integer));
    }
  }
  if (parts.size() == 2 && ParseDouble(parts[1], &real)) {
    if (parts[0] == "f32") {
      return Bytes(static_cast<float>(real));
    }
    if (parts[0] == "f64") {
      return Bytes(real);
    }
  }
  return BadUsage(
      fmt::format("--arg {}: use buf:BYTES[:zero|random|iota], i32:N, u32:N, i64:N, u64:N, "
                  "f32:X or f64:X",
                  text));
}

Result<std::vector<std::byte>> MakeParameters(const EmulateOptions& options,
                                              const ptx::Function& kernel,
                                              simt::DeviceMemory& memory) {
  if (options.arguments.size() != kernel.parameters.size()) {
    return BadUsage(fmt::format("kernel '{}' has {} parameters, {} --arg were given", kernel.name,
                                kernel.parameters.size(), options.arguments.size()));
  }
  std::vector<std::byte> block;
  for (std::size_t i = 0; i < options.arguments.size(); ++i) {
    const ptx::Parameter& parameter = kernel.parameters[i];
    KP_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                        MakeArgument(options.arguments[i], i, memory));
    if (bytes.size() != parameter.bytes) {
      return BadUsage(fmt::format("--arg {} has {} bytes, parameter {} of '{}' has {}",
                                  options.arguments[i], bytes.size(), i, kernel.name,
                                  parameter.bytes));
    }
    block.resize(parameter.offset + parameter.bytes);
    std::copy(bytes.begin(), bytes.end(), block.begin() + parameter.offset);
  }
  return block;
}

simt::Mode ChooseMode(const EmulateOptions& options, const simt::LaunchConfig& config) {
  const bool small = config.grid.Count() * config.block.Count() <= kMostThreadsInFull;
  return options.sample || (!options.full && !small) ? simt::Mode::kSample : simt::Mode::kCount;
}

Result<EmulatedLaunch> RunKernel(const EmulateOptions& options, const model::GpuSpec& spec,
                                 const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(const Source source, Load(options, stop));
  KP_ASSIGN_OR_RETURN(const ptx::Function* const kernel,
                      FindKernel(*source.module, options.kernel));
  simt::DeviceMemory memory(spec.memory_bytes);
  simt::LaunchConfig config;
  config.kernel = kernel->name;
  KP_ASSIGN_OR_RETURN(config.grid, ParseDim3(options.grid, "--grid"));
  KP_ASSIGN_OR_RETURN(config.block, ParseDim3(options.block, "--block"));
  config.dynamic_shared = options.shared;
  KP_ASSIGN_OR_RETURN(config.parameters, MakeParameters(options, *kernel, memory));
  config.mode = ChooseMode(options, config);
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<simt::Program> program,
                      simt::Program::Create(source.module, memory));
  const auto known = source.resources.find(kernel->name);
  const bool estimated = known == source.resources.end();
  return RunEmulatedLaunch(
      {.spec = spec,
       .program = *program,
       .kernel = *kernel,
       .resources = estimated ? model::EstimateResources(*kernel) : known->second,
       .resources_estimated = estimated},
      std::move(config), memory);
}

std::string LaunchText(const EmulatedLaunch& launch, const Profile& profile,
                       const Diagnosis& diagnosis) {
  const simt::LaunchReport& r = launch.report;
  std::string text = fmt::format("{} of {} blocks executed{}\n", r.ctas_executed, r.ctas,
                                 r.sampled ? " (sampled; counts are scaled)" : "");
  for (const simt::Fault& fault : r.faults) {
    text += fmt::format("{}: {}\n", fault.fatal ? "FAULT" : "finding", fault.message);
  }
  if (!r.printed.empty()) {
    text += fmt::format("the kernel printed:\n{}\n", Printable(r.printed, 65536));
  }
  if (r.Completed()) {
    text += fmt::format("{} modelled; largest bounds:", report::FormatTime(launch.time.time_us));
    for (std::size_t i = 0; i < std::min<std::size_t>(3, launch.time.bounds.size()); ++i) {
      text +=
          fmt::format(" {} {:.0f}%", launch.time.bounds[i].name, 100 * launch.time.bounds[i].share);
    }
    text +=
        fmt::format("\n\n{}\n{}", report::ProfileText(profile), report::DiagnosisText(diagnosis));
  }
  return text;
}

}  // namespace

int Emulate(const EmulateOptions& options) {
  const Interrupt interrupt;
  const Result<model::GpuSpec> spec = model::LoadSpec(options.gpu);
  if (!spec) {
    return Complain(spec.error(), options.json);
  }
  const Result<EmulatedLaunch> launch = RunKernel(options, *spec, interrupt.token());
  if (!launch) {
    return Complain(launch.error(), options.json);
  }
  Profile profile;
  Diagnosis diagnosis;
  if (launch->report.Completed()) {
    const DeviceInfo device = EmulatorInfo(*spec);
    profile = FromEmulation({*launch}, device, *spec, {});
    diagnosis = Diagnose(profile, device.hardware);
  }
  if (options.json) {
    Json json = report::LaunchJson(*launch);
    json["metrics"] =
        profile.kernels.empty() ? Json::object() : report::MetricsJson(profile.kernels[0].metrics);
    json["findings"] = report::DiagnosisJson(diagnosis)["findings"];
    fmt::print("{}\n", search::Dump(json));
  } else {
    fmt::print("{}", LaunchText(*launch, profile, diagnosis));
  }
  return launch->report.Completed() ? 0 : 1;
}

}  // namespace kernelpro::app
