// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "task/task.h"

namespace kernelpro {

/// Elements of each tensor, by name.
using TensorBytes = std::map<std::string, std::vector<std::byte>>;
using TensorDoubles = std::map<std::string, std::vector<double>>;

/// Runs a compiled reference (a library that defines kernelpro_reference) in a process of its own,
/// so that a reference that crashes or hangs is an error message and not the end of the run.
class Reference {
 public:
  /// `program` is the kernelpro-reference executable.
  Reference(const Task& task, std::filesystem::path library, std::filesystem::path program)
      : task_(task), library_(std::move(library)), program_(std::move(program)) {}

  /// The expected outputs for these inputs. kToolFailed: it crashed, exited or ran out of time.
  [[nodiscard]] Result<TensorDoubles> Run(const AxisValues& axes, const TensorBytes& inputs,
                                          const std::stop_token& stop) const;

 private:
  const Task& task_;
  std::filesystem::path library_;
  std::filesystem::path program_;
};

/// Block of shared memory between the referee and kernelpro-reference: this header, the argument
/// image, the pointer table, then the tensors. All offsets are from the start of the block.
struct ReferenceBlock {
  std::uint64_t args_offset = 0;
  std::uint64_t pointer_count = 0;
  std::uint64_t pointers_offset =
      0;  ///< pointer_count pairs of uint64: where in args, which offset
};

}  // namespace kernelpro
