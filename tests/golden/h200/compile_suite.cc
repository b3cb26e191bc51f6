// SPDX-License-Identifier: Apache-2.0
#include "compile_suite.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/result.h"
#include "base/text.h"
#include "emulator/model/model.h"
#include "emulator/ptx/module.h"

namespace kernelpro::golden {
namespace {

Status RunCommand(const std::string& command) {
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
  if (status != 0) {
    return Fail(ErrorCode::kToolFailed, fmt::format("'{}' exited with {}", command, status));
  }
  return Ok();
}

/// The number that the pattern's only group matches, 0 when it does not occur.
std::uint64_t NumberIn(const std::string& line, const char* pattern) {
  std::smatch match;
  long long value = 0;
  return std::regex_search(line, match, std::regex(pattern)) && ParseInteger(match[1].str(), &value)
             ? static_cast<std::uint64_t>(value)
             : 0;
}

}  // namespace

std::map<std::string, model::KernelResources> ParseAssemblerLog(const std::string& log) {
  std::map<std::string, model::KernelResources> out;
  const std::regex start("Compiling entry function '([^']*)'");
  model::KernelResources* kernel = nullptr;
  for (const std::string_view view : Lines(log)) {
    const std::string line(view);
    std::smatch match;
    if (std::regex_search(line, match, start)) {
      kernel = &out[match[1].str()];
    }
    if (kernel == nullptr) {
      continue;
    }
    if (line.find("spill stores") != std::string::npos) {
      kernel->local_bytes_per_thread = NumberIn(line, "([0-9]+) bytes stack frame");
      kernel->spill_store_bytes = NumberIn(line, "([0-9]+) bytes spill stores");
      kernel->spill_load_bytes = NumberIn(line, "([0-9]+) bytes spill loads");
    }
    if (line.find("Used ") != std::string::npos) {
      kernel->registers_per_thread =
          static_cast<std::uint32_t>(NumberIn(line, "Used ([0-9]+) registers"));
      kernel->static_shared_bytes = NumberIn(line, "([0-9]+) bytes smem");
    }
  }
  return out;
}

Result<CompiledSuite> CompileSuite(const std::filesystem::path& source) {
  KP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create("kp-h200"));
  const std::filesystem::path ptx = folder.path() / "suite.ptx";
  const std::filesystem::path log = folder.path() / "ptxas.log";
  const std::filesystem::path nvcc = KP_NVCC;
  KP_RETURN_IF_ERROR(RunCommand(fmt::format("'{}' -ptx -arch=sm_90 -o '{}' '{}'", nvcc.string(),
                                            ptx.string(), source.string())));
  KP_RETURN_IF_ERROR(
      RunCommand(fmt::format("'{}' -v -arch=sm_90 -o /dev/null '{}' > '{}' 2>&1",
                             (nvcc.parent_path() / "ptxas").string(), ptx.string(), log.string())));
  KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(ptx));
  KP_ASSIGN_OR_RETURN(ptx::Module module, ptx::Parse(text, "suite.ptx"));
  KP_ASSIGN_OR_RETURN(const std::string assembler, ReadFile(log));
  CompiledSuite out;
  out.module = std::make_shared<const ptx::Module>(std::move(module));
  out.resources = ParseAssemblerLog(assembler);
  return out;
}

}  // namespace kernelpro::golden
