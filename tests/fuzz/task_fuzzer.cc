// SPDX-License-Identifier: Apache-2.0
// Any bytes as task.toml: an Error or a Task whose numbers are sound, never a crash.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "task/task.h"

namespace {

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void CheckTask(const kernelpro::Task& task) {
  Require(!task.workloads.empty() && !task.tensors.empty());
  Require(!kernelpro::CandidateHeader(task).empty() && !kernelpro::ReferenceHeader(task).empty());
  for (const auto& workload : task.workloads) {
    for (const auto& tensor : task.tensors) {
      const auto count = kernelpro::ElementCount(tensor, workload.axes);
      Require(count.ok() && *count > 0);
    }
    const auto flops = kernelpro::FlopCount(task, workload.axes);
    const auto bytes = kernelpro::CompulsoryBytes(task, workload.axes);
    Require(flops.ok() && std::isfinite(*flops) && *flops >= 0);
    Require(bytes.ok() && std::isfinite(*bytes) && *bytes >= 0);
    const auto image = kernelpro::TaskArgsImage(task, workload.axes);
    Require(image.ok() && image->size() == kernelpro::TaskArgsLayout(task).bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto task = kernelpro::ParseTask(text, "task.toml");
  if (task.ok()) {
    CheckTask(*task);
  } else {
    Require(!task.error().message.empty());
  }
  const auto value = kernelpro::EvaluateExpression(text, {{"rows", 7}, {"cols", 0}}, "fuzz");
  Require(!value.ok() || std::isfinite(*value));
  return 0;
}
