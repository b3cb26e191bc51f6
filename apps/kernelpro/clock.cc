// SPDX-License-Identifier: Apache-2.0
// clock: kernels whose ratio is known, against this machine's clocks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "evaluate/clock_check.h"
#include "report/json.h"
#include "search/record.h"
#include "setup.h"

namespace kernelpro::app {
namespace {

using report::Json;

Result<ClockStudy> Study(const ClockOptions& options, const std::stop_token& stop,
                         std::string* gpu) {
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, OpenDevice(options.device));
  KP_ASSIGN_OR_RETURN(const std::unique_ptr<Toolchain> toolchain, FindToolchain());
  *gpu = device->info().title;
  return StudyClock(*device, *toolchain, options.repeats, stop);
}

double Farthest(const std::vector<double>& ratios, double from) {
  double worst = 0;
  for (const double ratio : ratios) {
    worst = std::max(worst, std::fabs(ratio - from));
  }
  return worst;
}

double Share(const ClockStudy::Agreement& a) {
  return a.clock_us > 0 ? std::fabs(a.event_us - a.clock_us) / a.clock_us : 1;
}

bool Trusted(const ClockStudy& study) {
  return Farthest(study.same, 1) <= kSameLimit && Farthest(study.half, 2) <= kHalfLimit &&
         std::ranges::all_of(study.agreement,
                             [](const auto& a) { return Share(a) <= kClockLimit; });
}

void Print(const ClockStudy& study, const std::string& gpu) {
  const std::size_t n = study.same.size();
  fmt::print("{}\n", gpu);
  fmt::print("a kernel against itself        1.00 +- {:.4f} at most over {} (limit {})\n",
             Farthest(study.same, 1), n, kSameLimit);
  fmt::print("against twice its work         2.00 +- {:.4f} at most over {} (limit {})\n",
             Farthest(study.half, 2), n, kHalfLimit);
  fmt::print("3 % less work called faster    {} of {}\n", study.called_right, n);
  fmt::print("itself called different        {} of {}\n", study.false_alarms, n);
  for (const ClockStudy::Agreement& a : study.agreement) {
    fmt::print("event {:9.2f} us   referee's clock {:9.2f} us   {:.2f} %\n", a.event_us, a.clock_us,
               100 * Share(a));
  }
}

Json StudyJson(const ClockStudy& study, const std::string& gpu) {
  Json agreement = Json::array();
  for (const ClockStudy::Agreement& a : study.agreement) {
    agreement.push_back({{"event_us", a.event_us}, {"clock_us", a.clock_us}, {"share", Share(a)}});
  }
  return {{"gpu", gpu},
          {"same", study.same},
          {"half", study.half},
          {"three_percent_called_right", study.called_right},
          {"false_alarms", study.false_alarms},
          {"agreement", std::move(agreement)},
          {"trusted", Trusted(study)}};
}

}  // namespace

int StudyTheClock(const ClockOptions& options) {
  const Interrupt interrupt;
  std::string gpu;
  const Result<ClockStudy> study = Study(options, interrupt.token(), &gpu);
  if (!study) {
    return Complain(study.error(), options.json);
  }
  if (options.json) {
    fmt::print("{}\n", search::Dump(StudyJson(*study, gpu)));
  } else {
    Print(*study, gpu);
  }
  return Trusted(*study) ? 0 : 1;
}

}  // namespace kernelpro::app
