// SPDX-License-Identifier: Apache-2.0
#include "toolchain/compile_sandbox.h"

#include <system_error>

#include "process/process.h"
#include "toolchain/toolchain.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

/// Far more than nvcc with its threads uses; a limit for what would take the machine down.
constexpr std::uint64_t kMaxProcesses = 1024;

}  // namespace

Confinement CompilerConfinement(const fs::path& work, const std::vector<fs::path>& tools) {
  Confinement confinement = SystemConfinement();
  confinement.read_only.insert(confinement.read_only.end(), tools.begin(), tools.end());
  confinement.read_write.push_back(work);
  confinement.processes = kMaxProcesses;
  return confinement;
}

std::vector<fs::path> CompilerFiles(const fs::path& program) {
  std::vector<fs::path> files = {program};
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  if (error) {
    return files;
  }
  files.push_back(real);
  const fs::path tree = real.parent_path().parent_path();
  for (const char* mark : {"lib/gcc", "libexec/gcc", "nvvm"}) {
    if (tree.has_relative_path() && fs::exists(tree / mark, error)) {
      files.push_back(tree);
      break;
    }
  }
  return files;
}

std::vector<ConfinementReport> CompilerSandbox() {
  ProcessSpec probe;
  probe.argv = {"true"};
  probe.confinement = CompilerConfinement("/nonexistent", {});
  auto result = RunProcess(probe);
  return result ? std::move(result->confinement) : std::vector<ConfinementReport>();
}

}  // namespace kernelpro
