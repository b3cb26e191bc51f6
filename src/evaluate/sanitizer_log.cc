// SPDX-License-Identifier: Apache-2.0
// compute-sanitizer's text, by example (each line starts with the prefix "========="):
//
//   ========= Invalid __global__ write of size 4 bytes
//   =========     at Scale(const float *, float *, long)+0x130 in candidate.cu:9
//   =========     by thread (1,0,0) in block (1,0,0)
//   =========     Access to 0x7f241b0001e0 is out of bounds
//   =========         Device Frame: Scale(...)+0xb0 in candidate.cu:12        (calls, innermost
//   out)
//   ========= Error: Race reported between Write access at Sum(int *)+0x90 in candidate.cu:41
//   =========     and Read access at Sum(int *)+0x100 in candidate.cu:51 [508 hazards]
//   ========= ERROR SUMMARY: 2 errors
//   ========= ERROR SUMMARY: 1 error was not printed. Use --print-limit option to adjust ...
//   ========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
//
// Older versions put the source first: "at 0x130 in candidate.cu:9:Scale(const float *)".
#include "evaluate/sanitizer_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr std::string_view kPrefix = "=========";
constexpr std::size_t kLongestName = 300;
/// More than this is a lie or means the same.
constexpr std::uint64_t kMostErrors = 1'000'000'000;

/// What the first line of a finding begins with, after "Error: ".
constexpr std::array<std::string_view, 8> kHeads = {
    "Invalid ",   "Uninitialized ", "Barrier error", "Race reported",
    "Potential ", "Host API",       "Misaligned ",   "Hardware exception"};

/// Reads a number at the front of *text and drops it; false when there is none.
bool TakeNumber(std::string_view* text, std::uint64_t* number) {
  *text = Trim(*text);
  std::size_t digits = 0;
  std::uint64_t value = 0;
  while (digits < text->size() && (*text)[digits] >= '0' && (*text)[digits] <= '9') {
    value = std::min(kMostErrors, value * 10 + static_cast<std::uint64_t>((*text)[digits] - '0'));
    ++digits;
  }
  text->remove_prefix(digits);
  *number = value;
  return digits != 0;
}

/// Drops `word` from the front of *text.
bool Take(std::string_view* text, std::string_view word) {
  if (!text->starts_with(word)) {
    return false;
  }
  *text = Trim(text->substr(word.size()));
  return true;
}

struct Place {
  std::string kernel, source;
};

bool EndsInLineNumber(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  return colon != std::string_view::npos && colon + 1 < text.size() &&
         text.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

/// Of the text behind "at " or "Device Frame:".
Place ParsePlace(std::string_view text) {
  Place place;
  if (const std::size_t hazards = text.rfind(" [");
      hazards != std::string_view::npos && text.ends_with("]")) {
    text = text.substr(0, hazards);
  }
  std::string_view name = text;
  std::string_view source;
  if (const std::size_t in = text.rfind(" in "); in != std::string_view::npos) {
    name = Trim(text.substr(0, in));
    source = Trim(text.substr(in + 4));
  }
  if (name.starts_with("0x")) {
    // "0x130 in candidate.cu:9:Scale(...)" or "0x130 in Scale(...)".
    name = source;
    source = {};
    const std::size_t first = name.find(':');
    const std::size_t second = first == std::string_view::npos ? first : name.find(':', first + 1);
    if (second != std::string_view::npos && second + 1 < name.size() &&
        EndsInLineNumber(name.substr(0, second))) {
      source = name.substr(0, second);
      name = name.substr(second + 1);
    }
  }
  if (const std::size_t offset = name.rfind("+0x"); offset != std::string_view::npos) {
    name = name.substr(0, offset);
  }
  place.kernel = Printable(name, kLongestName);
  if (EndsInLineNumber(source)) {
    // Without its folders: where the compiler ran says nothing.
    const std::size_t slash = source.rfind('/');
    place.source = Printable(slash == std::string_view::npos ? source : source.substr(slash + 1),
                             kLongestName);
  }
  return place;
}

/// Goes through the lines; `log` is what was found so far.
class Reader {
 public:
  explicit Reader(SanitizerLog* log) : log_(*log) {}

  void Line(std::string_view line) {
    if (!line.starts_with(kPrefix)) {
      return;  // What the candidate printed.
    }
    line.remove_prefix(kPrefix.size());
    if (!line.empty() && line.front() != ' ') {
      return;  // A banner of the candidate's, drawn with more of the same.
    }
    bool detail = line.starts_with("  ");
    line = Trim(line);
    for (const std::string_view word :
         {"at ", "by ", "and ", "Address ", "Access ", "Device Frame:"}) {
      detail = detail || line.starts_with(word);
    }
    if (line.empty()) {
      in_finding_ = false;
    } else if (detail) {
      Detail(line);
    } else {
      in_finding_ = false;
      Head(line);
    }
  }

  void Finish() {
    // A tool that was killed has printed what it found and not counted it; a count below what was
    // printed is no count.
    log_.errors = std::max(log_.errors, printed_);
  }

 private:
  void Head(std::string_view line) {
    if (Take(&line, "ERROR SUMMARY:")) {
      Summary(line);
      return;
    }
    if (Take(&line, "RACECHECK SUMMARY:")) {
      RaceSummary(line);
      return;
    }
    if (line.starts_with("Warning") || line.starts_with("WARN") || line.starts_with("Info") ||
        line.starts_with("INFO")) {
      return;
    }
    const std::string_view whole = line;
    const bool error = Take(&line, "Error:") || Take(&line, "ERROR:") || Take(&line, "Fatal:");
    const bool finding = std::ranges::any_of(
        kHeads, [line](std::string_view head) { return line.starts_with(head); });
    if (finding) {
      Finding(line);
    } else if ((error || whole.starts_with("Target application") || whole.starts_with("Internal") ||
                whole.starts_with("Unable")) &&
               log_.trouble.empty()) {
      log_.trouble = Printable(line, kLongestName);
    }
  }

  void Finding(std::string_view line) {
    ++printed_;
    if (!log_.kind.empty()) {
      return;
    }
    in_finding_ = true;
    // A race says both accesses, the first in the same line.
    if (const std::size_t at = line.find(" access at "); at != std::string_view::npos) {
      Keep(ParsePlace(line.substr(at + 11)));
      line = line.substr(0, at + 7);
    }
    log_.kind = Printable(line.substr(0, line.find_last_not_of(". :") + 1), kLongestName);
  }

  void Detail(std::string_view line) {
    if (!in_finding_) {
      return;
    }
    if (Take(&line, "at ")) {
      Keep(ParsePlace(line));
    } else if (Take(&line, "Device Frame:")) {
      // The last one is the kernel itself. An old form ("... (Scale : 0x60)") says nothing new.
      if (!line.ends_with(')') || line.find("+0x") != std::string_view::npos) {
        Keep(ParsePlace(line));
      }
    }
    log_.misaligned = log_.misaligned || line.find("misaligned") != std::string_view::npos;
  }

  void Keep(Place place) {
    if (!place.kernel.empty()) {
      log_.kernel = std::move(place.kernel);
    }
    if (!place.source.empty()) {
      log_.source = std::move(place.source);
    }
  }

  void Summary(std::string_view line) {
    std::uint64_t errors = 0;
    if (!TakeNumber(&line, &errors)) {
      return;
    }
    line = Trim(line);
    if (line == "error" || line == "errors") {  // Else: how many were not printed.
      log_.complete = true;
      log_.errors = std::min(kMostErrors, log_.errors + errors);
    }
  }

  void RaceSummary(std::string_view line) {
    std::uint64_t hazards = 0;
    std::uint64_t errors = 0;
    std::uint64_t warnings = 0;
    if (!TakeNumber(&line, &hazards)) {
      return;
    }
    const std::size_t open = line.find('(');
    const std::size_t comma = line.find(',');
    if (open == std::string_view::npos || comma == std::string_view::npos || comma < open) {
      return;
    }
    std::string_view first = line.substr(open + 1, comma - open - 1);
    std::string_view second = line.substr(comma + 1);
    if (TakeNumber(&first, &errors) && TakeNumber(&second, &warnings)) {
      log_.complete = true;
      log_.errors = std::min(kMostErrors, log_.errors + errors);
      log_.warnings = std::min(kMostErrors, log_.warnings + warnings);
    }
  }

  SanitizerLog& log_;
  bool in_finding_ = false;
  std::uint64_t printed_ = 0;
};

}  // namespace

SanitizerLog ParseSanitizerLog(std::string_view text) {
  SanitizerLog log;
  Reader reader(&log);
  for (const std::string_view line : Lines(text)) {
    reader.Line(line);
  }
  reader.Finish();
  return log;
}

std::string DescribeFinding(const SanitizerLog& log) {
  std::string text = log.kind;
  if (!log.kernel.empty()) {
    text += " in " + log.kernel;
  }
  if (!log.source.empty()) {
    text += fmt::format(" ({})", log.source);
  }
  return text;
}

}  // namespace kernelpro
