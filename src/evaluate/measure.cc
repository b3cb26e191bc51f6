// SPDX-License-Identifier: Apache-2.0
#include "evaluate/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "evaluate/statistics.h"
#include "evaluate/timed_outputs.h"

namespace kernelpro {
namespace {

using cuda::BatchOutcome;
using cuda::BatchRequest;

constexpr std::chrono::milliseconds kBatchLimit{20'000};
/// Samples are tried this many times as often as they are wanted.
constexpr std::uint32_t kMostTries = 3;
/// Calls of one sample whose outputs are compared with the baseline's, at least.
constexpr std::size_t kFewestVerified = 3;
/// Device memory that a candidate may hold for itself, bytes.
constexpr std::uint64_t kOwnMemory = 8ULL << 30U;

class Match {
 public:
  Match(cuda::Gpu& gpu, Contestant& candidate, Contestant* baseline, const Masters& masters,
        const MeasurePlan& plan, Rng secrets, TimedOutputs outputs, const std::stop_token& stop)
      : gpu_(gpu),
        candidate_(candidate),
        baseline_(baseline),
        masters_(masters),
        plan_(plan),
        secrets_(secrets),
        stop_(stop),
        outputs_(std::move(outputs)) {}

  [[nodiscard]] Result<Measurement> Run() {
    KP_ASSIGN_OR_RETURN(arguments_, TaskArgsImage(candidate_.task(), candidate_.workload().axes));
    KP_RETURN_IF_ERROR(Choose(candidate_, &calls_));
    if (baseline_ != nullptr && !Over()) {
      KP_RETURN_IF_ERROR(Choose(*baseline_, &baseline_calls_));
    }
    if (!Over()) {
      KP_RETURN_IF_ERROR(Gated());
    }
    for (std::uint32_t i = 0; i < plan_.singles && !Over(); ++i) {
      KP_RETURN_IF_ERROR(Single());
    }
    const std::uint32_t most = kMostTries * plan_.pairs;
    std::uint32_t tried = 0;
    for (; tried < most && kept_ < plan_.pairs && !Over(); ++tried) {
      KP_RETURN_IF_ERROR(Pair(tried % 2 != 0));
    }
    for (std::uint32_t i = 0; i < plan_.warm_samples && !Over(); ++i) {
      KP_RETURN_IF_ERROR(Warm());
    }
    if (!Over()) {
      JudgeClocks(tried);
    }
    KP_RETURN_IF_ERROR(candidate_.Release());
    if (baseline_ != nullptr) {
      KP_RETURN_IF_ERROR(baseline_->Release());
    }
    return std::move(measurement_);
  }

 private:
  [[nodiscard]] bool Over() const { return measurement_.condemned.has_value(); }

  void Condemn(Verdict verdict, std::string reason) {
    if (!Over()) {
      measurement_.condemned = Condemnation{verdict, std::move(reason)};
    }
  }

  void Condemn(std::optional<Condemnation> condemnation) {
    if (condemnation) {
      Condemn(condemnation->verdict, std::move(condemnation->reason));
    }
  }

  [[nodiscard]] Status Verify(const Contents& contents) {
    KP_ASSIGN_OR_RETURN(auto flaw, outputs_.Written(contents));
    Condemn(std::move(flaw));
    return Ok();
  }

  /// Too few samples counted: because of the candidate, or because the machine is busy?
  void JudgeClocks(std::uint32_t tried) {
    if (kept_ < std::max<std::uint32_t>(kFewestSamples, plan_.pairs / 2)) {
      const bool busy = baseline_ != nullptr && 2 * theirs_disturbed_ > tried;
      Condemn(busy ? Verdict::kInfrastructureError : Verdict::kTimingEscape,
              fmt::format("{} ({} of {} samples; of the baseline's {})", why_not_counted_,
                          mine_disturbed_, tried, theirs_disturbed_));
    } else if (auto why = WhyPutOff(rows_, singles_)) {
      Condemn(Verdict::kTimingEscape, std::move(*why));
    }
  }

  /// One call behind a gate on its stream: what it does must wait there. A stream of the
  /// candidate's own that does not wait for the given one writes outputs while the gate is shut.
  [[nodiscard]] Status Gated() {
    const Contents contents = NewContents(1);
    KP_RETURN_IF_ERROR(candidate_.Reserve(1));
    KP_RETURN_IF_ERROR(candidate_.Fill(0, masters_, contents[0]));
    cuda::GatedRequest request;
    request.arguments = arguments_;
    request.pointers = candidate_.pointers(0);
    request.wall_limit = kBatchLimit;
    std::uint64_t before = 0;
    std::uint64_t behind = 0;
    KP_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> at_first, outputs_.Flaws(contents));
    before = at_first[1];
    request.look = [&]() -> Status {
      KP_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> counts, outputs_.Flaws(contents));
      behind = counts[1];
      return Ok();
    };
    KP_ASSIGN_OR_RETURN(const CallOutcome outcome, candidate_.session().CallGated(request, stop_));
    if (auto condemned = JudgeCall(outcome)) {
      Condemn(condemned->verdict, condemned->reason);
    } else if (behind < before) {
      Condemn(
          Verdict::kTimingEscape,
          fmt::format("{} output elements were written before the work in front of the call on its "
                      "stream was done: a stream of the candidate's own does not wait for it",
                      before - behind));
    }
    return Over() ? Ok() : Verify(contents);
  }

  [[nodiscard]] Contents NewContents(std::size_t count) {
    Contents contents(count);
    std::ranges::generate(contents, [this] { return secrets_.Next(); });
    return contents;
  }

  /// Runs a row of calls, one on each of the first sets; the sets beyond serve the warm-up. With
  /// `same` every call works on set 0.
  [[nodiscard]] Result<BatchOutcome> Row(Contestant& side, const Contents& contents, bool same) {
    const std::size_t sets = same ? 1 : contents.size();
    KP_RETURN_IF_ERROR(side.Reserve(sets + 1));
    KP_RETURN_IF_ERROR(side.Fill(sets, masters_, secrets_.Next()));
    BatchRequest request;
    request.arguments = arguments_;
    request.wall_limit = kBatchLimit;
    request.warm_up.assign(2, side.pointers(sets));
    for (std::size_t i = 0; i < contents.size(); ++i) {
      request.timed.push_back(side.pointers(same ? 0 : i));
    }
    request.fill = [&]() -> Status {
      for (std::size_t i = 0; i < sets; ++i) {
        KP_RETURN_IF_ERROR(side.Fill(i, masters_, contents[i]));
      }
      return gpu_.FlushL2();
    };
    return side.session().TimeBatch(request, stop_);
  }

  [[nodiscard]] static Window WindowOf(const BatchOutcome& outcome, std::size_t calls) {
    return {static_cast<std::uint32_t>(calls), outcome.stream_us, outcome.context_us,
            outcome.wall_us};
  }

  /// What a row of the candidate says apart from its outputs; of the baseline, that it ran.
  [[nodiscard]] Status Accept(Contestant& side, const BatchOutcome& outcome) {
    const auto condemned = JudgeCall(outcome.call);
    if (&side != &candidate_) {
      return condemned
                 ? Status(Fail(ErrorCode::kToolFailed,
                               "the baseline failed while it was timed: " + condemned->reason))
                 : Ok();
    }
    if (condemned) {
      Condemn(condemned->verdict, condemned->reason);
    } else if (outcome.stray_threads > 0) {
      Condemn(Verdict::kTimingEscape,
              fmt::format("{} threads of the candidate live on after its calls",
                          outcome.stray_threads));
    } else if (outcome.persisting_l2_bytes > 0) {
      Condemn(Verdict::kTimingEscape,
              fmt::format("the candidate keeps {} KiB of the L2 cache from other work (persisting "
                          "lines)",
                          outcome.persisting_l2_bytes >> 10U));
    } else if (side.session().ForeignBytes() > kOwnMemory) {
      Condemn(Verdict::kOutOfMemory,
              fmt::format("the candidate holds {} MiB of device memory of its own; {} MiB are "
                          "allowed",
                          side.session().ForeignBytes() >> 20U, kOwnMemory >> 20U));
    }
    return Ok();
  }

  /// Finds how many calls fill a window.
  [[nodiscard]] Status Choose(Contestant& side, std::size_t* calls) {
    KP_ASSIGN_OR_RETURN(const std::uint64_t set_bytes,
                        Contestant::SetBytes(side.task(), side.workload()));
    const std::uint64_t room = side.session().arena_bytes() / std::max<std::uint64_t>(1, set_bytes);
    // One set is for the warm-up.
    const auto most = static_cast<std::size_t>(
        std::clamp<std::uint64_t>(room > 1 ? room - 1 : 1, 1, plan_.most_calls));
    std::size_t count = std::min<std::size_t>(most, 4);
    for (int round = 0; round < 2; ++round) {
      KP_ASSIGN_OR_RETURN(const BatchOutcome outcome, Row(side, NewContents(count), false));
      KP_RETURN_IF_ERROR(Accept(side, outcome));
      if (Over()) {
        return Ok();
      }
      const double each =
          std::max(0.5, std::max(outcome.context_us, outcome.wall_us) / static_cast<double>(count));
      count = static_cast<std::size_t>(
          std::clamp(std::ceil(plan_.window_us / each), 1.0, static_cast<double>(most)));
    }
    *calls = count;
    return Ok();
  }

  [[nodiscard]] Status Single() {
    const Contents contents = NewContents(1);
    KP_ASSIGN_OR_RETURN(const BatchOutcome outcome, Row(candidate_, contents, false));
    KP_RETURN_IF_ERROR(Accept(candidate_, outcome));
    singles_.push_back(WindowOf(outcome, 1));
    return Over() ? Ok() : Verify(contents);
  }

  [[nodiscard]] Status Warm() {
    const Contents contents(calls_, secrets_.Next());
    KP_ASSIGN_OR_RETURN(const BatchOutcome outcome, Row(candidate_, contents, true));
    KP_RETURN_IF_ERROR(Accept(candidate_, outcome));
    measurement_.warm_us.push_back(outcome.stream_us / static_cast<double>(calls_));
    return Over() ? Ok() : Verify({contents.front()});
  }

  [[nodiscard]] Status Pair(bool baseline_first) {
    const Contents contents = NewContents(calls_);
    // The baseline runs fewer or more calls: the first ones on contents of the candidate's calls,
    // chosen by chance when those have long been drawn.
    std::vector<std::size_t> chosen(calls_);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      chosen[i] = i;
      std::swap(chosen[i], chosen[secrets_.Below(i + 1)]);
    }
    Contents of_baseline = NewContents(std::max(baseline_calls_, std::size_t{1}));
    chosen.resize(std::min({chosen.size(), of_baseline.size(),
                            std::max<std::size_t>(kFewestVerified, of_baseline.size())}));
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      of_baseline[i] = contents[chosen[i]];
    }
    BatchOutcome mine;
    BatchOutcome theirs;
    for (const bool baseline : {baseline_first, !baseline_first}) {
      if (baseline && baseline_ != nullptr) {
        KP_ASSIGN_OR_RETURN(theirs, Row(*baseline_, of_baseline, false));
        KP_RETURN_IF_ERROR(Accept(*baseline_, theirs));
      } else if (!baseline) {
        KP_ASSIGN_OR_RETURN(mine, Row(candidate_, contents, false));
        KP_RETURN_IF_ERROR(Accept(candidate_, mine));
        if (!Over()) {
          // At once: a row that was only said to be over is found while it still runs.
          KP_RETURN_IF_ERROR(Verify(contents));
        }
        if (Over()) {
          return Ok();
        }
      }
    }
    if (baseline_ != nullptr) {
      KP_ASSIGN_OR_RETURN(auto disagreement, outputs_.Agree(contents, chosen));
      Condemn(std::move(disagreement));
      measurement_.verified_calls += static_cast<std::uint32_t>(chosen.size());
    }
    if (!Over()) {
      Keep(mine, theirs, of_baseline.size());
    }
    return Ok();
  }

  void Keep(const BatchOutcome& mine, const BatchOutcome& theirs, std::size_t baseline_calls) {
    const Window window = WindowOf(mine, calls_);
    bool counts = !Note(gpu_.nvml().Read());
    if (auto why = WhyNotCounted(window)) {
      ++mine_disturbed_;
      why_not_counted_ = std::move(*why);
      counts = false;
    }
    if (baseline_ != nullptr && WhyNotCounted(WindowOf(theirs, baseline_calls))) {
      ++theirs_disturbed_;
      counts = false;
    }
    if (!counts) {
      ++measurement_.discarded;
      return;
    }
    ++kept_;
    rows_.push_back(window);
    measurement_.calls += static_cast<std::uint32_t>(calls_);
    measurement_.candidate_us.push_back(mine.stream_us / static_cast<double>(calls_));
    measurement_.host_us.push_back(mine.wall_us / static_cast<double>(calls_));
    if (baseline_ != nullptr) {
      measurement_.baseline_us.push_back(theirs.stream_us / static_cast<double>(baseline_calls));
    }
  }

  /// Adds to the record; true when the sample was taken under the hardware's brakes.
  [[nodiscard]] bool Note(const cuda::Reading& reading) {
    ClockRecord& clocks = measurement_.clocks;
    const bool first = clocks.sm_mhz_high == 0;
    clocks.sm_mhz_low = first ? reading.sm_mhz : std::min(clocks.sm_mhz_low, reading.sm_mhz);
    clocks.sm_mhz_high = std::max(clocks.sm_mhz_high, reading.sm_mhz);
    clocks.memory_mhz = reading.memory_mhz;
    clocks.temperature_c = std::max(clocks.temperature_c, reading.temperature_c);
    clocks.power_w = std::max(clocks.power_w, reading.power_w);
    for (std::string& reason : cuda::ThrottleReasons(reading.throttle)) {
      if (std::ranges::find(clocks.throttle_reasons, reason) == clocks.throttle_reasons.end()) {
        clocks.throttle_reasons.push_back(std::move(reason));
      }
    }
    return cuda::SpoilsSample(reading.throttle);
  }

  cuda::Gpu& gpu_;
  Contestant& candidate_;
  Contestant* baseline_;
  const Masters& masters_;
  MeasurePlan plan_;
  Rng secrets_;
  const std::stop_token& stop_;
  std::vector<std::byte> arguments_;
  TimedOutputs outputs_;
  std::size_t calls_ = 1, baseline_calls_ = 1;
  std::uint32_t kept_ = 0, mine_disturbed_ = 0, theirs_disturbed_ = 0;
  std::string why_not_counted_ = "samples were taken under the hardware's brakes";
  std::vector<Window> rows_, singles_;
  Measurement measurement_;
};

}  // namespace

Result<Measurement> Measure(cuda::Gpu& gpu, Contestant& candidate, Contestant* baseline,
                            const Masters& masters, const MeasurePlan& plan, Rng secrets,
                            const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(TimedOutputs outputs,
                      TimedOutputs::Create(gpu, candidate, baseline, masters, plan.most_calls));
  return Match(gpu, candidate, baseline, masters, plan, secrets, std::move(outputs), stop).Run();
}

}  // namespace kernelpro
