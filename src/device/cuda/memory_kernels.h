// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "device/cuda/driver.h"
#include "task/task.h"

namespace kernelpro::cuda {

/// PTX of referee_kernels.cu; empty when this build was made without nvcc.
[[nodiscard]] const char* RefereeKernels();

/// What a driver call failed with, as an Error that says what was being done.
[[nodiscard]] Status Check(const Driver& driver, Code code, const char* doing);

/// `bytes` of poison (evaluate/fill.h, same bytes for the same seed) that must not change.
struct Band {
  DevicePointer address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t seed = 0;
};

/// Which elements a mixed tensor is made of: element i is a[(i + shift_a) mod n] or
/// b[(i + shift_b) mod n], as a bit of `key` and i decides.
struct MixRule {
  std::uint64_t key = 0, shift_a = 0, shift_b = 0;
};

/// Outcome of comparing one tensor; the layout is that of referee_kernels.cu.
struct Comparison {
  std::uint64_t failed = 0, unwritten = 0, first_failed = ~0ULL;
  double max_absolute = 0, max_relative = 0, worst_ratio = 0;
};

struct CompareRule {
  DType dtype = DType::kF32;       ///< of what the candidate wrote
  DType want_dtype = DType::kF64;  ///< of what is expected
  std::uint64_t count = 0;         ///< elements
  std::uint64_t poison = 0;        ///< seed that the output was poisoned with
  double absolute = 0, relative = 0;
  double overflow = 0;      ///< beyond it an infinity of the right sign is right
  DevicePointer scale = 0;  ///< doubles that `absolute` is a multiple of; 0: it stands alone
};

/// The referee's kernels on one context, which must be current. Launches are asynchronous and in
/// order; a launch that fails is told by the next Result.
class MemoryKernels {
 public:
  /// kUnavailable: built without nvcc, or the driver cannot assemble the kernels.
  [[nodiscard]] static Result<MemoryKernels> Load(const Driver& driver, int multiprocessors);

  void Poison(DevicePointer data, std::uint64_t bytes, std::uint64_t seed);
  void Mix(DevicePointer out, DevicePointer a, DevicePointer b, std::uint64_t count, DType dtype,
           const MixRule& rule);
  /// Counts elements of `data` that are not what Mix would write into *different (device memory).
  void CheckMix(DevicePointer data, DevicePointer a, DevicePointer b, std::uint64_t count,
                DType dtype, const MixRule& rule, DevicePointer different);
  void CountDifferences(DevicePointer a, DevicePointer b, std::uint64_t bytes,
                        DevicePointer different);
  void Compare(DevicePointer got, DevicePointer want, const CompareRule& rule,
               DevicePointer result);
  /// Adds to *holding (device memory) the elements that still hold the poison of `seed`.
  void CountPoison(DevicePointer data, std::uint64_t count, DType dtype, std::uint64_t seed,
                   DevicePointer holding);
  /// Adds to a double and a u64 (device memory): sum of squares and count of finite elements.
  void SumOfSquares(DevicePointer data, std::uint64_t count, DType dtype, DevicePointer sum,
                    DevicePointer finite);
  /// The first band that holds something else than its poison, or nothing.
  [[nodiscard]] Result<std::optional<std::size_t>> ChangedBand(std::span<const Band> bands);

  /// First failure of a launch since the last call.
  [[nodiscard]] Status TakeFailure();

 private:
  MemoryKernels(const Driver& driver, int multiprocessors)
      : driver_(&driver), blocks_(static_cast<unsigned>(multiprocessors) * 8) {}

  void Launch(Function function, unsigned blocks, std::span<void*> arguments);
  [[nodiscard]] unsigned Blocks(std::uint64_t items) const;

  const Driver* driver_;
  unsigned blocks_;
  Code failure_ = kOk;
  Function poison_ = nullptr, check_bands_ = nullptr, mix_ = nullptr, sum_of_squares_ = nullptr,
           compare_ = nullptr, differences_ = nullptr, count_poison_ = nullptr;
};

}  // namespace kernelpro::cuda
