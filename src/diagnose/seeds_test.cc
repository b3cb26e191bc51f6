// SPDX-License-Identifier: Apache-2.0
// The naive kernels of the examples, compiled and emulated for real: the first finding must name
// the flaw that was put there, at its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "device/emulated_launch.h"
#include "diagnose/diagnose.h"
#include "emulator/model/model.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/engine.h"
#include "emulator/simt/memory.h"
#include "profile/emulation_profile.h"
#include "task/task.h"

namespace kernelpro {
namespace {

struct Seed {
  const char* task;
  std::vector<std::uint64_t> buffers;  ///< floats, in order of the kernel's parameters
  std::vector<int> numbers;            ///< its int parameters, behind the buffers
  simt::Dim3 grid, block;
  double compulsory_bytes = 0;
  const char* finding;
  const char* line;  ///< a piece of the source line that the finding must name
};

std::ostream& operator<<(std::ostream& out, const Seed& seed) {
  return out << seed.task;
}

std::filesystem::path Folder(const Seed& seed) {
  return std::filesystem::path(KP_SOURCE_DIR) / "examples/tasks" / seed.task;
}

/// PTX of the seed with line information; empty when nvcc fails.
std::string Compile(const Seed& seed) {
  auto task = LoadTask(Folder(seed));
  EXPECT_TRUE(task.ok()) << (task.ok() ? "" : task.error().message);
  auto folder = TemporaryFolder::Create("seed");
  if (!task.ok() || !folder.ok()) {
    return {};
  }
  const std::filesystem::path ptx = folder->path() / "seed.ptx";
  EXPECT_TRUE(
      WriteFileAtomically(folder->path() / "kernelpro_task.h", CandidateHeader(*task)).ok());
  const std::string command = "nvcc -ptx -lineinfo -O3 -arch=sm_90 -I" + folder->path().string() +
                              " -o " + ptx.string() + " " + (Folder(seed) / "seed.cu").string();
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe,cert-env33-c)
  auto text = ReadFile(ptx);
  return text.ok() ? *text : std::string();
}

template <class T>
void Put(std::vector<std::byte>& block, std::size_t at, T value) {
  std::memcpy(&block.at(at + sizeof(T) - 1) - (sizeof(T) - 1), &value, sizeof(T));
}

Result<EmulatedLaunch> Emulate(const Seed& seed, const std::string& text,
                               const model::GpuSpec& spec) {
  KP_ASSIGN_OR_RETURN(ptx::Module parsed, ptx::Parse(text, seed.task));
  const auto module = std::make_shared<const ptx::Module>(std::move(parsed));
  const auto kernel = std::ranges::find(module->functions, true, &ptx::Function::is_entry);
  if (kernel == module->functions.end()) {
    return Fail(ErrorCode::kNotFound, "no kernel in the seed");
  }
  simt::DeviceMemory memory(spec.memory_bytes);
  KP_ASSIGN_OR_RETURN(const auto program, simt::Program::Create(module, memory));
  std::vector<std::byte> parameters(kernel->parameters.back().offset +
                                    kernel->parameters.back().bytes);
  for (std::size_t i = 0; i < kernel->parameters.size(); ++i) {
    const ptx::Parameter& parameter = kernel->parameters[i];
    if (i < seed.buffers.size()) {
      KP_ASSIGN_OR_RETURN(const std::uint64_t address,
                          memory.Allocate(4 * seed.buffers[i], parameter.name));
      Put(parameters, parameter.offset, address);
    } else {
      Put(parameters, parameter.offset, seed.numbers.at(i - seed.buffers.size()));
    }
  }
  simt::LaunchConfig config;
  config.kernel = kernel->name;
  config.grid = seed.grid;
  config.block = seed.block;
  config.parameters = std::move(parameters);
  config.mode = simt::Mode::kSample;
  const LaunchContext context{spec, *program, *kernel, model::EstimateResources(*kernel), true};
  return RunEmulatedLaunch(context, std::move(config), memory);
}

std::string LineOf(const Seed& seed, std::uint32_t number) {
  const auto text = ReadFile(Folder(seed) / "seed.cu");
  const std::vector<std::string_view> lines = Lines(*text);
  return number >= 1 && number <= lines.size() ? std::string(lines[number - 1]) : std::string();
}

class ExampleSeed : public ::testing::TestWithParam<Seed> {
 protected:
  void SetUp() override {
    if (FindOnPath("nvcc").empty()) {
      GTEST_SKIP() << "nvcc is not on PATH";
    }
  }
};

TEST_P(ExampleSeed, FirstFindingNamesThePlantedFlaw) {
  const Seed& seed = GetParam();
  const auto spec = model::LoadSpec("h200");
  ASSERT_TRUE(spec.ok());
  const auto launch = Emulate(seed, Compile(seed), *spec);
  ASSERT_TRUE(launch.ok()) << launch.error().message;
  ASSERT_TRUE(launch->report.Completed()) << launch->report.faults.front().message;
  const Profile profile = FromEmulation(
      {*launch}, {}, *spec,
      {.flops = 0, .compulsory_bytes = seed.compulsory_bytes, .widest_float_bytes = 4});
  const Diagnosis diagnosis = Diagnose(profile, HardwareOf(*spec));
  const std::string text = FeedbackText(diagnosis, profile);
  RecordProperty("feedback", text);
  ASSERT_FALSE(diagnosis.findings.empty()) << text;
  const Finding& first = diagnosis.findings.front();
  EXPECT_EQ(first.id, seed.finding) << text;
  EXPECT_THAT(LineOf(seed, first.line), ::testing::HasSubstr(seed.line)) << text;
}

constexpr std::uint64_t kMega = 1U << 20U;

INSTANTIATE_TEST_SUITE_P(Examples, ExampleSeed,
                         ::testing::Values(Seed{"row_softmax",
                                                {16 * kMega, 16 * kMega},
                                                {16384, 1024},
                                                {128, 1, 1},
                                                {128, 1, 1},
                                                2.0 * 64 * kMega,
                                                "mem.coalesce_ld",
                                                "in[col]"},
                                           Seed{"transpose",
                                                {16 * kMega, 16 * kMega},
                                                {4096, 4096},
                                                {128, 512, 1},
                                                {32, 8, 1},
                                                2.0 * 64 * kMega,
                                                "mem.coalesce_st",
                                                "out["},
                                           Seed{"matmul",
                                                {kMega, kMega, kMega},
                                                {1024, 1024, 1024},
                                                {64, 64, 1},
                                                {16, 16, 1},
                                                3.0 * 4 * kMega,
                                                "mem.coalesce_ld",
                                                "sum += a[row"},
                                           Seed{"layer_norm",
                                                {16 * kMega, 1024, 1024, 16 * kMega},
                                                {1024},
                                                {16384, 1, 1},
                                                {256, 1, 1},
                                                2.0 * 64 * kMega,
                                                "cmp.fp64",
                                                "sqrt(variance"},
                                           Seed{"block_sum",
                                                {16 * kMega, 4096},
                                                {4096},
                                                {4096, 1, 1},
                                                {256, 1, 1},
                                                64.0 * kMega,
                                                "lat.barrier",
                                                "__syncthreads"}),
                         [](const auto& seed) { return std::string(seed.param.task); });

}  // namespace
}  // namespace kernelpro
