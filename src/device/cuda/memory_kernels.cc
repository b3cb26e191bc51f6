// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/memory_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kernelpro::cuda {
namespace {

constexpr unsigned kThreads = 256;

static_assert(sizeof(Comparison) == 48);

/// The kernels number types as task.h does.
int Number(DType dtype) {
  return static_cast<int>(dtype);
}

}  // namespace

Status Check(const Driver& driver, Code code, const char* doing) {
  if (code == kOk) {
    return Ok();
  }
  return Fail(ErrorCode::kUnavailable, fmt::format("{}: {}", doing, driver.Describe(code)));
}

Result<MemoryKernels> MemoryKernels::Load(const Driver& driver, int multiprocessors) {
  if (*RefereeKernels() == '\0') {
    return Fail(ErrorCode::kUnavailable,
                "this kernelpro was built without nvcc and cannot check results on a GPU; build it "
                "again where nvcc is on $PATH");
  }
  MemoryKernels kernels(driver, multiprocessors);
  Module module = nullptr;
  KP_RETURN_IF_ERROR(Check(driver, driver.cuModuleLoadData(&module, RefereeKernels()),
                           "load the referee's kernels (the driver must be at least as new as the "
                           "CUDA toolkit that kernelpro was built with)"));
  const std::array<std::pair<const char*, Function*>, 7> wanted{
      {{"kp_poison", &kernels.poison_},
       {"kp_check_bands", &kernels.check_bands_},
       {"kp_mix", &kernels.mix_},
       {"kp_sum_of_squares", &kernels.sum_of_squares_},
       {"kp_compare", &kernels.compare_},
       {"kp_count_differences", &kernels.differences_},
       {"kp_count_poison", &kernels.count_poison_}}};
  for (const auto& [name, function] : wanted) {
    KP_RETURN_IF_ERROR(Check(driver, driver.cuModuleGetFunction(function, module, name), name));
  }
  return kernels;
}

unsigned MemoryKernels::Blocks(std::uint64_t items) const {
  const std::uint64_t wanted = (items + kThreads - 1) / kThreads;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, blocks_));
}

void MemoryKernels::Launch(Function function, unsigned blocks, std::span<void*> arguments) {
  const Code code = driver_->cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, nullptr,
                                            arguments.data(), nullptr);
  failure_ = failure_ == kOk ? code : failure_;
}

void MemoryKernels::Poison(DevicePointer data, std::uint64_t bytes, std::uint64_t seed) {
  std::array<void*, 3> arguments{&data, &bytes, &seed};
  Launch(poison_, Blocks(bytes / 8), arguments);
}

void MemoryKernels::Mix(DevicePointer out, DevicePointer a, DevicePointer b, std::uint64_t count,
                        DType dtype, const MixRule& rule) {
  CheckMix(out, a, b, count, dtype, rule, 0);
}

void MemoryKernels::CheckMix(DevicePointer data, DevicePointer a, DevicePointer b,
                             std::uint64_t count, DType dtype, const MixRule& rule,
                             DevicePointer different) {
  unsigned size = SizeOf(dtype);
  MixRule r = rule;
  std::array<void*, 9> arguments{&data,  &a,         &b,         &count,    &size,
                                 &r.key, &r.shift_a, &r.shift_b, &different};
  Launch(mix_, Blocks(count), arguments);
}

void MemoryKernels::CountDifferences(DevicePointer a, DevicePointer b, std::uint64_t bytes,
                                     DevicePointer different) {
  std::array<void*, 4> arguments{&a, &b, &bytes, &different};
  Launch(differences_, Blocks(bytes), arguments);
}

void MemoryKernels::Compare(DevicePointer got, DevicePointer want, const CompareRule& rule,
                            DevicePointer result) {
  CompareRule r = rule;
  int dtype = Number(r.dtype);
  int want_dtype = Number(r.want_dtype);
  unsigned size = SizeOf(r.dtype);
  std::array<void*, 12> arguments{&got,        &dtype,   &size,       &want,
                                  &want_dtype, &r.count, &r.poison,   &r.absolute,
                                  &r.relative, &r.scale, &r.overflow, &result};
  Launch(compare_, Blocks(r.count), arguments);
}

void MemoryKernels::CountPoison(DevicePointer data, std::uint64_t count, DType dtype,
                                std::uint64_t seed, DevicePointer holding) {
  unsigned size = SizeOf(dtype);
  std::array<void*, 5> arguments{&data, &size, &count, &seed, &holding};
  Launch(count_poison_, Blocks(count), arguments);
}

void MemoryKernels::SumOfSquares(DevicePointer data, std::uint64_t count, DType dtype,
                                 DevicePointer sum, DevicePointer finite) {
  int number = Number(dtype);
  std::array<void*, 5> arguments{&data, &count, &number, &sum, &finite};
  Launch(sum_of_squares_, Blocks(count), arguments);
}

Result<std::optional<std::size_t>> MemoryKernels::ChangedBand(std::span<const Band> bands) {
  if (bands.empty()) {
    return std::optional<std::size_t>();
  }
  static_assert(sizeof(Band) == 24, "three words, as kp_check_bands reads them");
  std::vector<std::uint64_t> changed(bands.size());
  DevicePointer memory = 0;
  KP_RETURN_IF_ERROR(Check(*driver_,
                           driver_->cuMemAlloc_v2(&memory, bands.size_bytes() + 8 * bands.size()),
                           "allocate for the check of guard bands"));
  DevicePointer counts = memory + bands.size_bytes();
  Code code = driver_->cuMemcpyHtoD_v2(memory, bands.data(), bands.size_bytes());
  code = code != kOk ? code : driver_->cuMemsetD8_v2(counts, 0, 8 * changed.size());
  if (code == kOk) {
    std::array<void*, 2> arguments{&memory, &counts};
    Launch(check_bands_, static_cast<unsigned>(bands.size()), arguments);
    code = driver_->cuMemcpyDtoH_v2(changed.data(), counts, 8 * changed.size());
  }
  (void)driver_->cuMemFree_v2(memory);
  KP_RETURN_IF_ERROR(Check(*driver_, code, "check guard bands"));
  KP_RETURN_IF_ERROR(TakeFailure());
  const auto found = std::ranges::find_if(changed, [](std::uint64_t n) { return n != 0; });
  return found == changed.end()
             ? std::optional<std::size_t>()
             : std::optional<std::size_t>(static_cast<std::size_t>(found - changed.begin()));
}

Status MemoryKernels::TakeFailure() {
  return Check(*driver_, std::exchange(failure_, kOk), "launch one of the referee's kernels");
}

}  // namespace kernelpro::cuda
