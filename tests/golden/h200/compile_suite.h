// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "emulator/model/model.h"
#include "emulator/ptx/module.h"

namespace kernelpro::golden {

struct CompiledSuite {
  std::shared_ptr<const ptx::Module> module;
  std::map<std::string, model::KernelResources> resources;  ///< by kernel, from ptxas -v
};

/// `nvcc -ptx -arch=sm_90` and `ptxas -v`.
[[nodiscard]] Result<CompiledSuite> CompileSuite(const std::filesystem::path& source);

/// What `ptxas -v` says of each kernel.
[[nodiscard]] std::map<std::string, model::KernelResources> ParseAssemblerLog(
    const std::string& log);

}  // namespace kernelpro::golden
