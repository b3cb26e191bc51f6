// SPDX-License-Identifier: Apache-2.0
#include "energy.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "device/cuda/gpu.h"
#include "device/cuda/session.h"
#include "evaluate/contestant.h"
#include "profile/session_load.h"
#include "search/workbench.h"
#include "task/task.h"

namespace kernelpro::app {
namespace {

constexpr std::size_t kSets = 4;
constexpr std::uint64_t kSlack = 256U << 20U;

Result<const Workload*> Heaviest(const Task& task) {
  const Workload* heaviest = nullptr;
  for (const Workload& workload : task.workloads) {
    if (workload.kind == Workload::Kind::kTimed &&
        (heaviest == nullptr || workload.weight > heaviest->weight)) {
      heaviest = &workload;
    }
  }
  if (heaviest == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "the task has no timed workload");
  }
  return heaviest;
}

}  // namespace

Result<PowerReport> MeasureEnergy(Bench& bench, const Candidate& candidate,
                                  std::chrono::milliseconds window, const std::stop_token& stop) {
  cuda::Gpu* const gpu = bench.device->gpu();
  if (gpu == nullptr) {
    return Fail(ErrorCode::kUnavailable, "energy is measured on a real GPU only (--device cuda)");
  }
  KP_ASSIGN_OR_RETURN(const Workload* const workload, Heaviest(bench.task));
  KP_ASSIGN_OR_RETURN(
      const BuildOutcome build,
      bench.toolchain->Compile(
          search::MakeBuildRequest(bench.task, candidate, bench.device->info()), stop));
  if (!build.build) {
    return Fail(ErrorCode::kInvalidArgument, "the candidate does not compile");
  }
  KP_ASSIGN_OR_RETURN(const std::uint64_t secret, SecretSeed());
  KP_ASSIGN_OR_RETURN(const Masters masters,
                      Masters::Create(bench.task, *workload, *gpu, Rng(secret)));
  KP_ASSIGN_OR_RETURN(const std::uint64_t set_bytes, Contestant::SetBytes(bench.task, *workload));
  SessionRequest request;
  request.library = build.build->library;
  request.device_memory_bytes = kSets * set_bytes + kSlack;
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, bench.device->Open(request));
  Contestant contestant(bench.task, *workload, *session->cuda());
  KP_RETURN_IF_ERROR(contestant.Reserve(kSets));
  std::vector<std::vector<PointerSlot>> pointers;
  for (std::size_t set = 0; set < kSets; ++set) {
    KP_RETURN_IF_ERROR(contestant.Fill(set, masters, set));
    pointers.push_back(contestant.pointers(set));
  }
  KP_ASSIGN_OR_RETURN(std::vector<std::byte> arguments, TaskArgsImage(bench.task, workload->axes));
  SessionLoad load(*session->cuda(), std::move(arguments), std::move(pointers), stop);
  NvmlMeter meter(gpu->nvml());
  PowerOptions options;
  options.window = window;
  const SystemClock clock;
  return MeasurePower(
      meter, load, clock, [](std::chrono::nanoseconds time) { std::this_thread::sleep_for(time); },
      options, stop);
}

}  // namespace kernelpro::app
