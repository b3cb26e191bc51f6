// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/file.h"
#include "emulator/ptx/module.h"
#include "emulator/simt/engine.h"

namespace kernelpro::simt {

/// An array in emulated memory.
template <class T>
struct Array {
  std::uint64_t address = 0;
  T* data = nullptr;
  std::size_t count = 0;

  T& operator[](std::size_t i) { return data[i]; }

  const T& operator[](std::size_t i) const { return data[i]; }
};

/// One module of testdata/, translated to PTX by the build, with memory to run it in.
class Gpu {
 public:
  explicit Gpu(std::string_view name) : memory_(8ULL << 30U) {
    const std::filesystem::path path =
        std::filesystem::path(KP_SIMT_TESTDATA) / (std::string(name) + ".ptx");
    Result<std::string> text = ReadFile(path);
    if (!text) {
      ADD_FAILURE() << text.error().message;
      return;
    }
    Load(*text, std::string(name) + ".ptx");
  }

  struct FromText {};

  Gpu(FromText /*tag*/, std::string_view ptx) : memory_(8ULL << 30U) { Load(ptx, "inline.ptx"); }

  template <class T>
  Array<T> Allocate(std::size_t count, std::string name) {
    const std::size_t bytes = count * sizeof(T);
    const std::uint64_t address = memory_.Allocate(bytes, std::move(name)).value();
    std::byte* const host = memory_.View(address, bytes).value().data();
    return Array<T>{address, reinterpret_cast<T*>(host), count};  // NOLINT: typed view
  }

  template <class T>
  Array<T> Upload(const std::vector<T>& values, std::string name) {
    Array<T> array = Allocate<T>(values.size(), std::move(name));
    std::memcpy(array.data, values.data(), values.size() * sizeof(T));
    return array;
  }

  struct Shape {
    Dim3 grid, block;
    std::uint64_t dynamic_shared = 0;
    Mode mode = Mode::kCount;
    std::uint32_t resident = 1;
    std::uint64_t budget = 100'000'000;
    std::uint32_t cohorts = 2;
    EngineSpec spec = {};
  };

  template <class... Args>
  Result<LaunchReport> TryLaunch(std::string_view kernel, const Shape& shape, const Args&... args) {
    LaunchConfig config;
    config.kernel = kernel;
    config.grid = shape.grid;
    config.block = shape.block;
    config.dynamic_shared = shape.dynamic_shared;
    config.mode = shape.mode;
    config.resident_ctas_per_sm = shape.resident;
    config.instruction_budget = shape.budget;
    config.cohorts = shape.cohorts;
    (Append(config.parameters, args), ...);
    return Launch(*program_, config, shape.spec, memory_);
  }

  template <class... Args>
  LaunchReport Run(std::string_view kernel, const Shape& shape, const Args&... args) {
    Result<LaunchReport> report = TryLaunch(kernel, shape, args...);
    if (!report) {
      ADD_FAILURE() << report.error().message;
      return {};
    }
    return std::move(report).value();
  }

  [[nodiscard]] const ptx::Function& Kernel(std::string_view name) const {
    return *program_->module().Find(name);
  }

  [[nodiscard]] DeviceMemory& memory() { return memory_; }

  [[nodiscard]] Program& program() { return *program_; }

 private:
  void Load(std::string_view ptx, std::string label) {
    Result<ptx::Module> module = ptx::Parse(ptx, std::move(label));
    if (!module) {
      ADD_FAILURE() << module.error().message;
      return;
    }
    auto shared = std::make_shared<const ptx::Module>(std::move(module).value());
    Result<std::unique_ptr<Program>> program = Program::Create(shared, memory_);
    if (!program) {
      ADD_FAILURE() << program.error().message;
      return;
    }
    program_ = std::move(program).value();
  }

  template <class T>
  static void Append(std::vector<std::byte>& block, const Array<T>& array) {
    Append(block, array.address);
  }

  template <class T>
  static void Append(std::vector<std::byte>& block, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    block.resize((block.size() + alignof(T) - 1) / alignof(T) * alignof(T) + sizeof(T));
    std::memcpy(block.data() + block.size() - sizeof(T), &value, sizeof(T));
  }

  DeviceMemory memory_;
  std::unique_ptr<Program> program_;
};

inline std::string Faults(const LaunchReport& report) {
  std::string all;
  for (const Fault& fault : report.faults) {
    all += fault.message + "\n";
  }
  return all;
}

/// The counters of the only instruction whose opcode starts so; fails when there are several.
inline InstructionCounters CountersOf(const ptx::Function& kernel, const LaunchReport& report,
                                      std::string_view opcode) {
  InstructionCounters found;
  int count = 0;
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    if (kernel.body[i].opcode.starts_with(opcode)) {
      found = report.instructions.at(i);
      ++count;
    }
  }
  EXPECT_EQ(count, 1) << opcode;
  return found;
}

}  // namespace kernelpro::simt
