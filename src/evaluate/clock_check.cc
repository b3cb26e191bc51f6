// SPDX-License-Identifier: Apache-2.0
#include "evaluate/clock_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/rng.h"
#include "evaluate/contestant.h"
#include "evaluate/measure.h"
#include "evaluate/statistics.h"
#include "task/task.h"

namespace kernelpro {
namespace {

constexpr const char* kTask = R"(name = "clock_check"
axes = ["N"]
flops = "N"
[tensors.out]
dtype = "f32"
role = "output"
shape = ["N"]
[[workloads]]
name = "timed"
kind = "timed"
axes = {N = 33792}
)";

/// A chain of dependent multiply-adds: its time is the clock's and the count's, not the memory's.
constexpr const char* kSource = R"(#include "kernelpro_task.h"
__global__ void work(float* out, long long n) {{
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  float x = static_cast<float>(threadIdx.x);
#pragma unroll 8
  for (int round = 0; round < {}; ++round) {{
    x = x * 0.999f + 0.5f;
  }}
  if (i < n) {{
    out[i] = x;
  }}
}}
extern "C" cudaError_t kernelpro_run(const TaskArgs* a, cudaStream_t stream) {{
  for (int launch = 0; launch < {}; ++launch) {{
    work<<<static_cast<unsigned>((a->N + 255) / 256), 256, 0, stream>>>(a->out, a->N);
  }}
  return cudaGetLastError();
}}
)";

/// A dependent FMA takes 4 cycles; at about 2 GHz that is 500 a microsecond. Only the order of
/// magnitude matters: every statement is about ratios.
constexpr double kRoundsPerUs = 500;
constexpr double kWorkUs = 100;

class Laboratory {
 public:
  Laboratory(Device& device, Toolchain& toolchain, const std::stop_token& stop)
      : device_(device), toolchain_(toolchain), stop_(stop) {}

  [[nodiscard]] Status Start() {
    if (device_.gpu() == nullptr) {
      return Fail(ErrorCode::kInvalidArgument,
                  "the clock can be checked on a real GPU only: the emulator's time is modelled");
    }
    KP_ASSIGN_OR_RETURN(task_, ParseTask(kTask, "clock_check"));
    KP_ASSIGN_OR_RETURN(const std::uint64_t secret, SecretSeed());
    secrets_ = Rng(secret);
    return Ok();
  }

  [[nodiscard]] Result<std::unique_ptr<Session>> Open(double microseconds, int launches) {
    BuildRequest request;
    request.source =
        fmt::format(fmt::runtime(kSource), static_cast<int>(microseconds * kRoundsPerUs), launches);
    request.headers = {{"kernelpro_task.h", CandidateHeader(task_)}};
    request.arch = device_.info().arch;
    KP_ASSIGN_OR_RETURN(const BuildOutcome outcome, toolchain_.Compile(request, stop_));
    if (!outcome.build) {
      return Fail(ErrorCode::kToolFailed, "the clock's own kernel does not compile");
    }
    SessionRequest session;
    session.library = outcome.build->library;
    session.device_memory_bytes = 256U << 20U;
    return device_.Open(session);
  }

  [[nodiscard]] Result<Measurement> Compare(Session& candidate, Session* baseline,
                                            std::uint32_t pairs) {
    const Workload& workload = task_.workloads.front();
    Contestant mine(task_, workload, *candidate.cuda());
    std::optional<Contestant> theirs;
    if (baseline != nullptr) {
      theirs.emplace(task_, workload, *baseline->cuda());
    }
    MeasurePlan plan;
    plan.pairs = pairs;
    plan.warm_samples = 0;
    KP_ASSIGN_OR_RETURN(Measurement measured,
                        Measure(*device_.gpu(), mine, theirs ? &*theirs : nullptr, masters_, plan,
                                Rng(secrets_.Next()), stop_));
    if (measured.condemned) {
      return Fail(ErrorCode::kToolFailed,
                  fmt::format("the clock's own kernel got {}: {}",
                              Name(measured.condemned->verdict), measured.condemned->reason));
    }
    return measured;
  }

  [[nodiscard]] Ratio RatioOf(const Measurement& m) {
    return PairedRatio(m.baseline_us, m.candidate_us, secrets_.Next());
  }

 private:
  Device& device_;
  Toolchain& toolchain_;
  const std::stop_token& stop_;
  Task task_;
  Masters masters_;
  Rng secrets_{0};
};

double ShareOfClock(const Measurement& m) {
  const double event = Summarize(m.candidate_us, 1).median;
  const double clock = Summarize(m.host_us, 1).median;
  return clock > 0 ? std::fabs(event - clock) / clock : 1;
}

}  // namespace

Result<ClockCheck> CheckClock(Device& device, Toolchain& toolchain, const std::stop_token& stop) {
  constexpr std::uint32_t kPairs = 10;
  Laboratory lab(device, toolchain, stop);
  KP_RETURN_IF_ERROR(lab.Start());
  KP_ASSIGN_OR_RETURN(const auto once, lab.Open(kWorkUs, 1));
  KP_ASSIGN_OR_RETURN(const auto again, lab.Open(kWorkUs, 1));
  KP_ASSIGN_OR_RETURN(const auto twice, lab.Open(kWorkUs, 2));
  KP_ASSIGN_OR_RETURN(const Measurement same, lab.Compare(*once, again.get(), kPairs));
  KP_ASSIGN_OR_RETURN(const Measurement half, lab.Compare(*once, twice.get(), kPairs));
  ClockCheck check;
  check.same = lab.RatioOf(same).value;
  check.half = lab.RatioOf(half).value;
  check.clock_share = std::max(ShareOfClock(same), ShareOfClock(half));
  check.trusted = std::fabs(check.same - 1) <= kSameLimit &&
                  std::fabs(check.half - 2) <= kHalfLimit && check.clock_share <= kClockLimit;
  check.text = fmt::format(
      "clock check {}: a kernel against itself {:.3f} (1), against twice its work {:.3f} (2), "
      "event "
      "time within {:.2f} % of the referee's clock",
      check.trusted ? "passed" : "FAILED", check.same, check.half, 100 * check.clock_share);
  return check;
}

Result<ClockStudy> StudyClock(Device& device, Toolchain& toolchain, std::uint32_t repeats,
                              const std::stop_token& stop) {
  const std::uint32_t pairs = MeasurePlan{}.pairs;
  Laboratory lab(device, toolchain, stop);
  KP_RETURN_IF_ERROR(lab.Start());
  KP_ASSIGN_OR_RETURN(const auto once, lab.Open(kWorkUs, 1));
  KP_ASSIGN_OR_RETURN(const auto again, lab.Open(kWorkUs, 1));
  KP_ASSIGN_OR_RETURN(const auto twice, lab.Open(kWorkUs, 2));
  KP_ASSIGN_OR_RETURN(const auto slower, lab.Open(1.03 * kWorkUs, 1));
  ClockStudy study;
  for (std::uint32_t i = 0; i < repeats; ++i) {
    KP_ASSIGN_OR_RETURN(const Measurement same, lab.Compare(*once, again.get(), pairs));
    KP_ASSIGN_OR_RETURN(const Measurement half, lab.Compare(*once, twice.get(), pairs));
    KP_ASSIGN_OR_RETURN(const Measurement close, lab.Compare(*once, slower.get(), pairs));
    const Ratio same_ratio = lab.RatioOf(same);
    const Ratio close_ratio = lab.RatioOf(close);
    study.same.push_back(same_ratio.value);
    study.half.push_back(lab.RatioOf(half).value);
    study.false_alarms += Differs(same_ratio, kSameLimit) ? 1 : 0;
    study.called_right += close_ratio.value > 1 && Differs(close_ratio, kSameLimit) ? 1 : 0;
  }
  for (const double us : {5.0, 20.0, 100.0, 500.0, 2000.0, 5000.0}) {
    KP_ASSIGN_OR_RETURN(const auto session, lab.Open(us, 1));
    KP_ASSIGN_OR_RETURN(const Measurement m, lab.Compare(*session, nullptr, pairs));
    study.agreement.push_back(
        {Summarize(m.candidate_us, 1).median, Summarize(m.host_us, 1).median});
  }
  return study;
}

}  // namespace kernelpro
