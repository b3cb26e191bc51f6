// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_log.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text.h"

namespace kernelpro {

Error WhyNoProfile(std::string_view text, std::string_view label, std::string_view otherwise) {
  if (text.find("ERR_NVGPUCTRPERM") != std::string_view::npos) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}: the user may not read the GPU's performance counters "
                            "(ERR_NVGPUCTRPERM); an administrator must allow it: module option "
                            "NVreg_RestrictProfilingToAdminUsers=0, or run ncu as root",
                            label));
  }
  constexpr std::string_view kReport = "==PROF== Report: ";
  std::size_t number = 0;
  std::string report;
  for (const std::string_view line : Lines(text)) {
    ++number;
    if (line.starts_with("==ERROR==")) {
      return Fail(ErrorCode::kToolFailed, fmt::format("{}:{}: {}; the log holds no profile", label,
                                                      number, Printable(line.substr(9), 300)));
    }
    if (line.starts_with(kReport) && report.empty()) {
      report = Printable(Trim(line.substr(kReport.size())), 300);
    }
  }
  if (!report.empty()) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: a log without a profile, which went into the report file {}; give "
                            "that file, or what LC_ALL=C ncu --import FILE --csv --page raw "
                            "--print-units base prints of it",
                            label, report));
  }
  return Fail(ErrorCode::kNotFound, fmt::format("{}: {}", label, otherwise));
}

}  // namespace kernelpro
