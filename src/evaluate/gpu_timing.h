// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "device/device.h"
#include "evaluate/contestant.h"
#include "evaluate/evaluation.h"
#include "evaluate/inputs.h"
#include "evaluate/measure.h"
#include "task/task.h"

namespace kernelpro {

/// The timing half of the referee on a real GPU: keeps the baseline's process and the inputs'
/// masters from one candidate to the next. Not thread safe.
class GpuTiming {
 public:
  GpuTiming(const Task& task, Device& device, const MeasurePlan& plan, std::uint64_t seed)
      : task_(task), device_(device), plan_(plan), secrets_(Rng(seed).Fork(0x74696d65ULL)) {}

  /// Device memory that a session needs for the checked and timed workloads of the task.
  [[nodiscard]] Result<std::uint64_t> SessionBytes() const;

  /// From now on candidates are timed against this session, whose outputs were found right.
  void SetBaseline(std::unique_ptr<Session> session) { baseline_ = std::move(session); }

  /// Times all timed workloads and fills in times, figures, speedup and clocks (a note instead
  /// where NVML is missing).
  [[nodiscard]] Status Time(Session& session, Trials& trials, const std::stop_token& stop,
                            Evaluation* evaluation);

 private:
  [[nodiscard]] Result<const Masters*> MastersOf(std::size_t workload, Trials& trials,
                                                 const std::stop_token& stop);
  void Combine(const std::vector<Measurement>& measurements,
               const std::vector<const Workload*>& workloads, Evaluation* evaluation);
  [[nodiscard]] std::vector<std::string> ForeignProcesses(const Session& session) const;

  const Task& task_;
  Device& device_;
  MeasurePlan plan_;
  Rng secrets_;
  std::unique_ptr<Session> baseline_;
  std::map<std::size_t, Masters> masters_;
};

}  // namespace kernelpro
