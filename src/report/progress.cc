// SPDX-License-Identifier: Apache-2.0
#include "report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "report/format.h"

namespace kernelpro::report {

std::string ProgressLine(const search::Progress& progress) {
  std::string line = fmt::format("{}/{} evaluated", progress.evaluated, progress.limit);
  if (progress.best_us > 0) {
    line += fmt::format("  best {} ({:.2f}x)", FormatTime(progress.best_us),
                        progress.seed_us / progress.best_us);
  }
  std::string verdicts;
  for (const auto& [verdict, count] : progress.verdicts) {
    verdicts += fmt::format("{}{} {}", verdicts.empty() ? "  " : ", ", count, verdict);
  }
  const auto seconds = std::max<long long>(0, progress.time_left.count() / 1000);
  line += fmt::format("{}  {}:{:02} left", verdicts, seconds / 60, seconds % 60);
  if (!progress.now.empty()) {
    line += "  now: " + progress.now;
  }
  return line;
}

TerminalProgress::TerminalProgress(std::FILE* stream)
    : stream_(stream), terminal_(::isatty(::fileno(stream)) == 1) {}

void TerminalProgress::OnProgress(const search::Progress& progress) {
  if (!terminal_) {
    return;
  }
  winsize size{};
  const bool known = ::ioctl(::fileno(stream_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  std::string line = ProgressLine(progress);
  line.resize(std::min<std::size_t>(line.size(), (known ? size.ws_col : 80U) - 1U));
  fmt::print(stream_, "\r\x1b[2K{}", line);
  std::fflush(stream_);
}

void TerminalProgress::Finish() {
  if (terminal_) {
    fmt::print(stream_, "\r\x1b[2K");
    std::fflush(stream_);
  }
}

}  // namespace kernelpro::report
