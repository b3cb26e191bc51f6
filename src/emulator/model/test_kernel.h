// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "base/result.h"
#include "emulator/model/model.h"
#include "emulator/ptx/module.h"

namespace kernelpro::model {

/// Registers of the kernels in the tests: %p %f %d %r %l, 40 of each.
inline ptx::Function TestKernel(std::string_view body) {
  const std::string text = fmt::format(
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{\n"
      ".reg .pred %p<40>;\n.reg .f32 %f<40>;\n.reg .f64 %d<40>;\n.reg .b32 %r<40>;\n"
      ".reg .b64 %l<40>;\n.reg .b16 %h<40>;\n{}\n}}\n",
      body);
  Result<ptx::Module> module = ptx::Parse(text, "test.ptx");
  EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().message);
  return module.ok() ? std::move(module->functions.at(0)) : ptx::Function{};
}

inline GpuSpec TestSpec(std::string_view name = "h200") {
  Result<GpuSpec> spec = LoadSpec(name);
  EXPECT_TRUE(spec.ok());
  return spec.ok() ? std::move(*spec) : GpuSpec{};
}

}  // namespace kernelpro::model
