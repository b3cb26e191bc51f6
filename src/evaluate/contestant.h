// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "device/cuda/gpu.h"
#include "device/cuda/session.h"
#include "task/task.h"

namespace kernelpro {

/// Two independent fills of each input of a workload, in the referee's own device memory.
struct Masters {
  struct Pair {
    cuda::Memory a, b;
  };

  std::map<std::string, Pair> inputs;
  /// Root mean square of the magnitude of outputs with ErrorScale::kMagnitude.
  std::map<std::string, double> magnitude;

  [[nodiscard]] static Result<Masters> Create(const Task& task, const Workload& workload,
                                              const cuda::Gpu& gpu, Rng secrets);
};

/// One candidate on one workload with as many sets of buffers as it has calls in a row.
class Contestant {
 public:
  Contestant(const Task& task, const Workload& workload, cuda::CudaSession& session)
      : task_(task), workload_(workload), session_(session) {}

  /// Makes sure that there are `count` sets.
  [[nodiscard]] Status Reserve(std::size_t count);
  /// Gives all buffers back.
  [[nodiscard]] Status Release();

  /// Bytes that one set takes in the session's memory.
  [[nodiscard]] static Result<std::uint64_t> SetBytes(const Task& task, const Workload& workload);

  /// Writes into set `set` the inputs that `content` stands for, and poison into its outputs.
  [[nodiscard]] Status Fill(std::size_t set, const Masters& masters, std::uint64_t content);

  /// Starts counting into `counts` (device, 2 x u64, zeroed): [0] input elements of `set` that are
  /// not what Fill wrote, [1] output elements that still hold their poison.
  [[nodiscard]] Status CountFlaws(std::size_t set, const Masters& masters, std::uint64_t content,
                                  cuda::DevicePointer counts);

  /// Name of a tensor with a broken guard band among the first `sets` sets; empty: none.
  [[nodiscard]] Result<std::string> BrokenGuard(std::size_t sets);

  [[nodiscard]] const std::vector<PointerSlot>& pointers(std::size_t set) const {
    return sets_[set].pointers;
  }

  [[nodiscard]] Result<cuda::DevicePointer> Address(std::size_t set, std::size_t tensor) const {
    return session_.Address(sets_[set].buffers[tensor]);
  }

  [[nodiscard]] std::uint64_t PoisonSeed(std::size_t set, std::size_t tensor,
                                         std::uint64_t content) const;

  [[nodiscard]] const Task& task() const { return task_; }

  [[nodiscard]] const Workload& workload() const { return workload_; }

  [[nodiscard]] cuda::CudaSession& session() { return session_; }

 private:
  struct Set {
    std::vector<BufferId> buffers;  ///< in order of task.tensors
    std::vector<PointerSlot> pointers;
  };

  const Task& task_;
  const Workload& workload_;
  cuda::CudaSession& session_;
  std::vector<Set> sets_;
};

}  // namespace kernelpro
