// SPDX-License-Identifier: Apache-2.0
#include "evaluate/gpu_timing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "device/cuda/gpu.h"
#include "device/cuda/session.h"
#include "evaluate/compare.h"
#include "evaluate/statistics.h"

namespace kernelpro {
namespace {

/// Buffers of one session at most, and at most this part of the GPU's memory.
constexpr std::uint64_t kMostSessionBytes = 8ULL << 30U;
constexpr std::uint64_t kPartOfMemory = 5;

bool IsTimed(const Workload& w) {
  return w.kind == Workload::Kind::kTimed;
}

void MergeClocks(const ClockRecord& from, ClockRecord* into) {
  if (into->sm_mhz_high == 0) {
    *into = from;
    return;
  }
  into->sm_mhz_low = std::min(into->sm_mhz_low, from.sm_mhz_low);
  into->sm_mhz_high = std::max(into->sm_mhz_high, from.sm_mhz_high);
  into->temperature_c = std::max(into->temperature_c, from.temperature_c);
  into->power_w = std::max(into->power_w, from.power_w);
  for (const std::string& reason : from.throttle_reasons) {
    if (std::ranges::find(into->throttle_reasons, reason) == into->throttle_reasons.end()) {
      into->throttle_reasons.push_back(reason);
    }
  }
}

TimeFigures Figures(const std::vector<double>& samples, const std::vector<double>& warm,
                    const std::vector<double>& host) {
  const Summary summary = Summarize(samples, 1);
  TimeFigures figures;
  figures.median_us = summary.median;
  figures.low_us = summary.low;
  figures.high_us = summary.high;
  figures.spread = summary.spread;
  figures.cold_us = summary.median;
  figures.warm_us = Summarize(warm, 1).median;
  figures.host_us = Summarize(host, 1).median;
  figures.samples = static_cast<std::uint32_t>(summary.samples);
  return figures;
}

/// Sum over workloads, weighted, sample by sample: sample i of all workloads makes sample i.
std::vector<double> WeightedSum(const std::vector<Measurement>& measurements,
                                const std::vector<const Workload*>& workloads,
                                std::vector<double> Measurement::* samples) {
  std::vector<double> sum;
  for (std::size_t w = 0; w < measurements.size(); ++w) {
    const std::vector<double>& values = measurements[w].*samples;
    sum.resize(w == 0 ? values.size() : std::min(sum.size(), values.size()));
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += workloads[w]->weight * values[i];
    }
  }
  return sum;
}

}  // namespace

Result<std::uint64_t> GpuTiming::SessionBytes() const {
  std::uint64_t bytes = 1U << 20U;
  for (const Workload& workload : task_.workloads) {
    KP_ASSIGN_OR_RETURN(const std::uint64_t set, Contestant::SetBytes(task_, workload));
    const std::uint64_t sets = IsTimed(workload) ? plan_.most_calls + 1 : 1;
    const std::uint64_t wanted = set * sets;
    const std::uint64_t most =
        std::min(kMostSessionBytes, device_.gpu()->total_bytes() / kPartOfMemory);
    // A few calls must fit in any case: one set for the warm-up and some under the clock.
    bytes = std::max(bytes, std::max(std::min(wanted, most), set * (IsTimed(workload) ? 3 : 1)));
  }
  return bytes + (1U << 20U);
}

Result<const Masters*> GpuTiming::MastersOf(std::size_t workload, Trials& trials,
                                            const std::stop_token& stop) {
  auto found = masters_.find(workload);
  if (found == masters_.end()) {
    KP_ASSIGN_OR_RETURN(Masters masters, Masters::Create(task_, task_.workloads[workload],
                                                         *device_.gpu(), secrets_.Fork(workload)));
    KP_ASSIGN_OR_RETURN(const Trial* trial, trials.Get(workload, 0, stop));
    for (const TensorSpec& tensor : task_.tensors) {
      if (const auto values = trial->magnitude.find(tensor.name);
          values != trial->magnitude.end()) {
        masters.magnitude[tensor.name] = RmsForTolerance(tensor, values->second);
      }
    }
    found = masters_.emplace(workload, std::move(masters)).first;
  }
  return &found->second;
}

Status GpuTiming::Time(Session& session, Trials& trials, const std::stop_token& stop,
                       Evaluation* evaluation) {
  std::vector<Measurement> measurements;
  std::vector<const Workload*> workloads;
  for (std::size_t w = 0; w < task_.workloads.size(); ++w) {
    const Workload& workload = task_.workloads[w];
    if (!IsTimed(workload)) {
      continue;
    }
    KP_ASSIGN_OR_RETURN(const Masters* masters, MastersOf(w, trials, stop));
    Contestant candidate(task_, workload, *session.cuda());
    std::optional<Contestant> baseline;
    if (baseline_) {
      baseline.emplace(task_, workload, *baseline_->cuda());
    }
    KP_ASSIGN_OR_RETURN(Measurement measured,
                        Measure(*device_.gpu(), candidate, baseline ? &*baseline : nullptr,
                                *masters, plan_, Rng(secrets_.Next()), stop));
    if (measured.condemned) {
      evaluation->verdict = measured.condemned->verdict;
      evaluation->reason =
          fmt::format("on workload '{}': {}", workload.name, measured.condemned->reason);
      return Ok();
    }
    measurements.push_back(std::move(measured));
    workloads.push_back(&workload);
  }
  Combine(measurements, workloads, evaluation);
  const cuda::Nvml& nvml = device_.gpu()->nvml();
  if (!nvml.missing().empty()) {
    evaluation->clocks.reset();
    evaluation->notes.push_back(
        "clocks, throttling and other processes on the GPU are not known: " + nvml.missing());
    return Ok();
  }
  evaluation->clocks->foreign_processes = ForeignProcesses(session);
  return Ok();
}

void GpuTiming::Combine(const std::vector<Measurement>& measurements,
                        const std::vector<const Workload*>& workloads, Evaluation* evaluation) {
  const std::vector<double> mine = WeightedSum(measurements, workloads, &Measurement::candidate_us);
  evaluation->figures = Figures(mine, WeightedSum(measurements, workloads, &Measurement::warm_us),
                                WeightedSum(measurements, workloads, &Measurement::host_us));
  ClockRecord clocks;
  for (std::size_t w = 0; w < measurements.size(); ++w) {
    const Measurement& m = measurements[w];
    MergeClocks(m.clocks, &clocks);
    evaluation->figures->calls += m.calls;
    evaluation->figures->discarded += m.discarded;
    evaluation->checked_calls += m.verified_calls;
    WorkloadTime time;
    time.workload = workloads[w]->name;
    time.weight = workloads[w]->weight;
    time.time_us = Summarize(m.candidate_us, 1).median;
    evaluation->times.push_back(std::move(time));
  }
  evaluation->clocks = std::move(clocks);
  evaluation->time_us = evaluation->figures->median_us;
  if (baseline_) {
    const std::vector<double> theirs =
        WeightedSum(measurements, workloads, &Measurement::baseline_us);
    evaluation->baseline = Figures(theirs, {}, {});
    const Ratio ratio = PairedRatio(theirs, mine, 1);
    evaluation->speedup = SpeedupFigures{ratio.value, ratio.low, ratio.high};
  }
}

std::vector<std::string> GpuTiming::ForeignProcesses(const Session& session) const {
  std::vector<std::string> others;
  const pid_t candidate = const_cast<Session&>(session).cuda()->pid();
  const pid_t baseline = baseline_ ? baseline_->cuda()->pid() : 0;
  for (const pid_t pid : device_.gpu()->nvml().ComputeProcesses()) {
    if (pid != ::getpid() && pid != candidate && pid != baseline) {
      others.push_back(fmt::format("pid {}", pid));
    }
  }
  return others;
}

}  // namespace kernelpro
