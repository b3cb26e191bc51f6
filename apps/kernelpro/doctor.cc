// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "commands.h"
#include "profile/nvidia_tool.h"
#include "profile/permission.h"
#include "report/json.h"
#include "search/record.h"
#include "setup.h"

namespace kernelpro::app {
namespace {

struct Check {
  std::string name;
  bool ok = false;
  bool needed = true;  ///< an optional thing that is absent does not fail the whole
  std::string detail;
  std::vector<std::string> fixes;  ///< what can be done about it
};

std::filesystem::path Toolkit() {
  const auto toolchain = FindToolchain();
  return toolchain ? (*toolchain)->toolkit() : std::filesystem::path();
}

Check CheckToolchain() {
  const auto toolchain = FindToolchain();
  return {"nvcc", toolchain.ok(), true,
          toolchain
              ? fmt::format("{} at {}", (*toolchain)->version(), (*toolchain)->nvcc().string())
              : toolchain.error().message};
}

Check CheckCompiles() {
  const auto toolchain = FindToolchain();
  if (!toolchain) {
    return {"compile a kernel", false, true, "nvcc is missing"};
  }
  BuildRequest request;
  request.source = "extern \"C\" __global__ void k(float* x) { x[threadIdx.x] = 1; }\n";
  const auto built = (*toolchain)->Compile(request, {});
  if (!built) {
    return {"compile a kernel", false, true, built.error().message};
  }
  const bool ok = built->build.has_value();
  return {"compile a kernel", ok, true, ok ? "works" : built->failure->log.substr(0, 400)};
}

Check CheckSandbox(const std::vector<ConfinementReport>& measures) {
  bool whole = !measures.empty();
  for (const ConfinementReport& measure : measures) {
    whole = whole && (measure.on || measure.name == "process limit");
  }
  return {"sandbox", whole, false, measures.empty() ? "nothing could be run" : Describe(measures)};
}

Check CheckDevice(const char* choice, bool needed) {
  const auto device = OpenDevice(choice);
  return {fmt::format("device {}", choice), device.ok(), needed,
          device ? (*device)->info().title : device.error().message};
}

Check CheckProgram(const char* name) {
  const std::filesystem::path path = ExecutableFolder() / name;
  const bool ok = std::filesystem::exists(path);
  return {name, ok, true,
          ok ? path.string() : fmt::format("{} is not there: rebuild", path.string())};
}

/// A profiler or disassembler: what KernelPro does without it stands in `without`.
Check CheckTool(const char* name, const std::filesystem::path& toolkit, const char* without) {
  const NvidiaTool tool = FindNvidiaTool(name, toolkit);
  if (!tool.found()) {
    return {name, false, false, fmt::format("{}: {}", NotFoundMessage(name, tool), without)};
  }
  const auto version = NvidiaToolVersion(tool.path);
  return {
      name, version.ok(), false,
      version ? fmt::format("{} at {}", *version, tool.path.string()) : version.error().message};
}

Check CheckCupti(const std::filesystem::path& toolkit) {
  const NvidiaTool library = FindNvidiaLibrary("libcupti.so", toolkit);
  return {"CUPTI (activity trace)", library.found(), false,
          library.found() ? library.path.string()
                          : fmt::format("libcupti.so was not found (looked in {}): no timeline of "
                                        "kernels, copies and gaps",
                                        fmt::join(library.looked, ", "))};
}

Check CheckCounters() {
  using State = CounterPermission::State;
  const CounterPermission permission = ReadCounterPermission();
  Check check = {"GPU counters", permission.state == State::kAllowed, false, permission.why};
  if (permission.state == State::kRefused || permission.state == State::kUnknown) {
    check.detail +=
        "; without them a diagnosis rests on the activity trace, the machine code, the compiler's "
        "log and emulation";
    check.fixes = CounterFixes();
  }
  return check;
}

void Print(const Check& check) {
  fmt::print("{:<8} {:<24} {}\n",
             check.ok       ? "ok"
             : check.needed ? "MISSING"
                            : "absent",
             check.name, check.detail);
  for (std::size_t i = 0; i < check.fixes.size(); ++i) {
    fmt::print("{:<8} {:<24} {}. {}\n", "", "", i + 1, check.fixes[i]);
  }
}

}  // namespace

int Doctor(const PlainOptions& options) {
  const std::vector<ConfinementReport> measures = CompilerSandbox();
  const std::filesystem::path toolkit = Toolkit();
  const std::vector<Check> checks = {CheckToolchain(),
                                     CheckCompiles(),
                                     CheckSandbox(measures),
                                     CheckDevice("emulator", true),
                                     CheckDevice("cuda", false),
                                     CheckProgram("kernelpro-runner"),
                                     CheckProgram("kernelpro-emulated-gpu"),
                                     CheckProgram("kernelpro-reference"),
                                     CheckTool("ncu", toolkit, "no counters and no samples"),
                                     CheckCounters(),
                                     CheckTool("nvdisasm", toolkit, "no machine code with lines"),
                                     CheckTool("cuobjdump", toolkit, "no listing of programs"),
                                     CheckCupti(toolkit),
                                     CheckTool("nsys", toolkit, "its own trace is used instead")};
  bool healthy = true;
  report::Json json = report::Json::array();
  for (const Check& check : checks) {
    healthy = healthy && (check.ok || !check.needed);
    if (options.json) {
      json.push_back({{"name", check.name},
                      {"ok", check.ok},
                      {"needed", check.needed},
                      {"detail", check.detail}});
      if (!check.fixes.empty()) {
        json.back()["fixes"] = check.fixes;
      }
    } else {
      Print(check);
    }
  }
  if (options.json) {
    report::Json sandbox = report::Json::array();
    for (const ConfinementReport& measure : measures) {
      sandbox.push_back({{"name", measure.name}, {"on", measure.on}, {"detail", measure.detail}});
    }
    fmt::print("{}\n", search::Dump({{"healthy", healthy},
                                     {"checks", std::move(json)},
                                     {"sandbox", std::move(sandbox)}}));
  }
  return healthy ? 0 : 3;
}

}  // namespace kernelpro::app
