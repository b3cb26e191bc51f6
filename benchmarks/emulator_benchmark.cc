// SPDX-License-Identifier: Apache-2.0
// How fast the emulator runs naive matmul 256^3 with bounds checks and counters on, beside the same
// arithmetic as a plain C++ loop nest. The target is 0.1 s on one core in a Release build.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/file.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/engine.h"

namespace {

using kernelpro::Result;
using kernelpro::simt::DeviceMemory;
using kernelpro::simt::Dim3;
using kernelpro::simt::EngineSpec;
using kernelpro::simt::LaunchConfig;
using kernelpro::simt::LaunchReport;
using kernelpro::simt::Mode;
using kernelpro::simt::Program;

constexpr int kN = 256;

void Emulated(benchmark::State& state, Mode mode) {
  DeviceMemory memory(1ULL << 30U);
  Result<std::string> text = kernelpro::ReadFile(KP_BENCHMARK_PTX);
  if (!text) {
    state.SkipWithError(text.error().message.c_str());
    return;
  }
  Result<kernelpro::ptx::Module> module = kernelpro::ptx::Parse(*text, "matmul_naive.ptx");
  if (!module) {
    state.SkipWithError(module.error().message.c_str());
    return;
  }
  Result<std::unique_ptr<Program>> program = Program::Create(
      std::make_shared<const kernelpro::ptx::Module>(std::move(module).value()), memory);
  LaunchConfig config;
  config.kernel = "matmul_naive";
  config.grid = Dim3{kN / 16, kN / 16};
  config.block = Dim3{16, 16};
  config.mode = mode;
  for (const char* name : {"a", "b", "c"}) {
    const std::uint64_t address = memory.Allocate(kN * kN * sizeof(float), name).value();
    config.parameters.resize(config.parameters.size() + sizeof address);
    std::memcpy(&config.parameters[config.parameters.size() - sizeof address], &address,
                sizeof address);
  }
  config.parameters.resize(config.parameters.size() + sizeof kN);
  std::memcpy(&config.parameters[config.parameters.size() - sizeof kN], &kN, sizeof kN);
  std::uint64_t lanes = 0;
  for (auto _ : state) {
    Result<LaunchReport> report = kernelpro::simt::Launch(**program, config, EngineSpec{}, memory);
    if (!report || !report->Completed()) {
      state.SkipWithError("the launch failed");
      return;
    }
    for (const auto& instruction : report->instructions) {
      lanes += instruction.lanes;
    }
  }
  state.counters["lane_instructions"] =
      benchmark::Counter(static_cast<double>(lanes), benchmark::Counter::kIsRate);
}

void LoopNest(benchmark::State& state) {
  std::vector<float> a(kN * kN, 1.0F);
  std::vector<float> b(kN * kN, 2.0F);
  std::vector<float> c(kN * kN);
  for (auto _ : state) {
    for (std::size_t y = 0; y < kN; ++y) {
      for (std::size_t x = 0; x < kN; ++x) {
        float sum = 0;
        for (std::size_t k = 0; k < kN; ++k) {
          sum += a[y * kN + k] * b[k * kN + x];
        }
        c[y * kN + x] = sum;
      }
    }
    benchmark::DoNotOptimize(c.data());
    benchmark::ClobberMemory();
  }
}

BENCHMARK_CAPTURE(Emulated, count, Mode::kCount)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Emulated, check, Mode::kCheck)->Unit(benchmark::kMillisecond);
BENCHMARK(LoopNest)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
