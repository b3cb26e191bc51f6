// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "diagnose/diagnose.h"
#include "diagnose/facts.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"

namespace kernelpro {
namespace {

constexpr std::size_t kMostWords = 350;
constexpr std::size_t kMostFindings = 3;

std::size_t CountWords(std::string_view text) {
  std::size_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\t';
    words += !blank && !inside ? 1 : 0;
    inside = !blank;
  }
  return words;
}

/// Text of at most kMostWords words; an optional piece that does not fit is left out whole.
class Budget {
 public:
  void Must(const std::string& text) { text_ += text; }

  bool May(const std::string& text) {
    if (CountWords(text_) + CountWords(text) + reserved_ > kMostWords) {
      return false;
    }
    text_ += text;
    return true;
  }

  void Reserve(std::size_t words) { reserved_ = words; }

  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  std::size_t reserved_ = 0;
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

std::string_view SeverityWord(double severity) {
  if (severity < 0.25) {
    return "info";
  }
  if (severity < 0.5) {
    return "minor";
  }
  return severity < 0.75 ? "major" : "critical";
}

std::string_view ConfidenceWord(double confidence) {
  if (confidence < 0.5) {
    return "low";
  }
  return confidence < 0.75 ? "medium" : "high";
}

/// A string that a stranger chose, as one harmless word of a sentence: a model that reads it must
/// not take it for an instruction, and a terminal not for a command.
std::string Clean(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  std::string clean = Printable(text, 4 * kLongest);
  for (char& c : clean) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_:<>,.()[]*&-+~/= ").find(c) != std::string_view::npos;
    c = plain ? c : '?';
  }
  if (clean.size() > kLongest) {
    clean = clean.substr(0, kLongest - 3) + "...";
  }
  return clean;
}

std::string Head(const Finding& f) {
  const std::string bound = f.bound <= 0
                                ? std::string("upper bound unknown")
                                : fmt::format("upper bound {:.0f} % of {} = {:.1f}x", 100 * f.bound,
                                              f.id.starts_with("sys.") ? "the run's time"
                                              : f.time_share < 0.95    ? Clean(f.kernel) + "'s time"
                                                                       : "kernel time",
                                              1 / (1 - f.bound));
  return fmt::format("[{}] {} (confidence {}, {})", SeverityWord(f.severity), f.title,
                     ConfidenceWord(f.confidence), bound);
}

std::string Where(const Finding& f) {
  if (f.line == 0) {
    return Clean(f.kernel);
  }
  return fmt::format("{}:{} in {}", Clean(std::filesystem::path(f.file).filename().string()),
                     f.line, Clean(f.kernel));
}

const KernelProfile* Dominant(const Profile& profile) {
  const auto found = std::ranges::max_element(profile.kernels, {}, &KernelProfile::time_share);
  return found == profile.kernels.end() ? nullptr : &*found;
}

std::string Opening(const Diagnosis& diagnosis, const Profile& profile,
                    const KernelProfile& kernel) {
  std::string text = fmt::format("{}: {}", Clean(kernel.name),
                                 kernel.time_us > 0 ? fmt::format("{:.1f} us ({})", kernel.time_us,
                                                                  Name(kernel.time_provenance))
                                                    : "time unknown");
  text += diagnose::HasShape(kernel)
              ? fmt::format(", {:.0f} blocks of {:.0f} threads.\n", diagnose::GridSize(kernel),
                            diagnose::BlockSize(kernel))
              : std::string(".\n");
  if (const auto errors = profile.system.find("sanitizer.errors");
      errors != profile.system.end() && errors->second.value > 0) {
    text += fmt::format("WRONG   compute-sanitizer found {:.0f} errors. Repair them first.\n",
                        errors->second.value);
  }
  if (!diagnosis.classes.empty()) {
    const ClassMembership& c = diagnosis.classes.front();
    text += fmt::format("LIMIT   {} ({:.2f}): {}.", c.id, c.membership, c.evidence);
    if (diagnosis.classes.size() > 1) {
      text += fmt::format(" Also {}.", diagnosis.classes[1].id);
    }
    text += '\n';
  }
  if (diagnosis.floor_us <= 0) {
    text +=
        "FLOOR   unknown: no task was given, so how far the best possible time is cannot be "
        "told.\n";
  } else {
    double total = 0;
    for (const KernelProfile& k : profile.kernels) {
      total += k.time_us;
    }
    const double ratio = total / diagnosis.floor_us;
    text += ratio <= 1.15 ? fmt::format(
                                "FLOOR   {:.1f} us: the call is within {:.0f} % of it. Stop, or "
                                "change the algorithm.\n",
                                diagnosis.floor_us, 100 * std::max(0.0, ratio - 1))
                          : fmt::format(
                                "FLOOR   {:.1f} us for this task; the call takes {:.1f} times as "
                                "long.\n",
                                diagnosis.floor_us, ratio);
  }
  return text;
}

/// Rule 11: without evidence for advice, ask for one experiment that tells more.
std::string Experiment(const Diagnosis& diagnosis) {
  const std::string_view id =
      diagnosis.classes.empty() ? std::string_view() : std::string_view(diagnosis.classes[0].id);
  if (id == "INVALID" || id == "UNKNOWN") {
    return "NEXT    Repeat the measurement: these figures support no advice.\n";
  }
  if (id == "AT_ROOF" || id == "DRAM_BOUND") {
    return "NEXT    No flaw found. Only fewer bytes or another algorithm help: fuse a neighbour, "
           "or make one pass instead of two.\n";
  }
  if (id.starts_with("COMPUTE_BOUND") || id == "TENSOR_BOUND" || id == "ISSUE_BOUND") {
    return "NEXT    No flaw found. Experiment: compute twice the outputs per thread; if the time "
           "per output stays, the arithmetic itself is the limit.\n";
  }
  return "NEXT    No flaw found. Experiment: double the work per thread (two elements instead of "
         "one); if the time stays, latency is not the limit and the block count is.\n";
}

/// Rule 5: prediction against outcome.
std::string Last(const Outcome& o, const Diagnosis& diagnosis) {
  if (o.before_us <= 0 || o.after_us <= 0) {
    return {};
  }
  const double gained = o.before_us / o.after_us;
  const double promised = 1 / (1 - std::clamp(o.bound, 0.0, 0.999));
  const bool still_there = std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                                       [&o](const Finding& finding) { return finding.id == o.id; });
  const std::string_view verdict =
      gained < 1.02 && still_there        ? "the change did not remove it, it is still found"
      : gained < 1.02                     ? "its cause was not what limits this kernel"
      : gained < 1 + 0.3 * (promised - 1) ? "something else limits the rest"
                                          : "it was worth following";
  return fmt::format("LAST    {}: predicted at most {:.2f}x, got {:.2f}x; {}.\n", Clean(o.title),
                     promised, gained, verdict);
}

void Primary(const Finding& f, Budget& out) {
  out.Must(fmt::format("\nPRIMARY {}\n", Head(f)));
  out.Must(fmt::format("WHERE   {}\n", Where(f)));
  out.Must(f.rests_on.empty() ? fmt::format("SEEN    {}\n", f.seen)
                              : fmt::format("SEEN    {} (from {})\n", f.seen, f.rests_on));
  out.Must(fmt::format("WHY     {}\n", f.why));
  out.Must(fmt::format("DO      {}\n", f.action));
  out.Must(fmt::format("CHECK   {}\n", f.check));
  out.Must(fmt::format("AVOID   {}\n", f.avoid));
}

/// What a missing metric would have to come from.
std::string_view Source(std::string_view metric) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSources = {{
      {"sass.", "the disassembly"},
      {"ptxas.", "the compiler's log"},
      {"build.", "the build's flags"},
      {"timeline.", "an activity trace"},
      {"nvml.", "an energy measurement"},
      {"task.", "a task"},
  }};
  for (const auto& [prefix, source] : kSources) {
    if (metric.starts_with(prefix)) {
      return source;
    }
  }
  return metric.find("stalled") != std::string_view::npos ||
                 metric.find("warp_latency") != std::string_view::npos
             ? "warp-stall counters"
             : "other counters";
}

/// What nobody looked at, so that silence is not taken for health.
std::string Unexamined(const Diagnosis& diagnosis, const KernelProfile& kernel) {
  std::map<std::string_view, int> counts;
  for (const NotRun& tool : diagnosis.not_run) {
    if (tool.kernel == kernel.name && !tool.missing.empty()) {
      ++counts[Source(tool.missing.front())];
    }
  }
  std::vector<std::string> parts;
  for (const auto& [source, count] : counts) {
    parts.push_back(fmt::format("{} ({} tool{})", source, count, count == 1 ? "" : "s"));
  }
  return parts.empty() ? std::string()
                       : fmt::format("UNKNOWN Not examined, because these are missing: {}.\n",
                                     fmt::join(parts, ", "));
}

std::string First(const std::string& sentences) {
  const std::size_t end = sentences.find_first_of(";.", 0);
  for (std::size_t i = end; i < sentences.size(); ++i) {
    const bool ends = (sentences[i] == ';' || sentences[i] == '.') &&
                      (i + 1 == sentences.size() || sentences[i + 1] == ' ');
    if (ends) {
      return sentences.substr(0, i);
    }
  }
  return sentences;
}

/// Rule 1: one line each for the findings behind the primary one.
std::vector<std::string> AlsoSeen(const Diagnosis& diagnosis) {
  std::vector<std::string> lines;
  for (std::size_t i = 1; i < std::min(kMostFindings, diagnosis.findings.size()); ++i) {
    const Finding& f = diagnosis.findings[i];
    lines.push_back(fmt::format("ALSO    {} at {}: {}.\n", Head(f), Where(f), First(f.seen)));
  }
  return lines;
}

/// "WHERE   k.cu:7" -> "- **Where** k.cu:7"; the primary finding becomes a heading.
std::string Markdown(std::string_view text) {
  constexpr std::size_t kLabel = 8;
  std::string out;
  for (const std::string_view line : Lines(text)) {
    const std::string_view label = Trim(line.substr(0, std::min(kLabel, line.size())));
    const bool labelled = line.size() > kLabel && line[kLabel - 1] == ' ' && !label.empty() &&
                          std::ranges::all_of(label, [](char c) { return c >= 'A' && c <= 'Z'; });
    const std::string_view rest = line.substr(std::min(kLabel, line.size()));
    if (label == "PRIMARY") {
      out += fmt::format("## {}\n\n", rest);
    } else if (labelled) {
      out += fmt::format("- **{}{}** {}\n", label[0], Lower(label.substr(1)), rest);
    } else if (line.starts_with("        ")) {
      out += fmt::format("- {}\n", Trim(line));
    } else {
      out += fmt::format("{}\n", line);
    }
  }
  return out;
}

void OtherRemedies(const Diagnosis& diagnosis, Budget& out) {
  if (diagnosis.findings.empty()) {
    return;
  }
  const std::vector<std::string>& remedies = diagnosis.findings.front().remedies;
  for (std::size_t i = 1; i < remedies.size(); ++i) {
    if (!out.May(fmt::format("{}{}\n", i == 1 ? "OR      " : "        ", remedies[i]))) {
      return;
    }
  }
}

}  // namespace

std::string FeedbackText(const Diagnosis& diagnosis, const Profile& profile,
                         const FeedbackOptions& options) {
  const KernelProfile* kernel = Dominant(profile);
  if (kernel == nullptr) {
    return "No kernel was profiled.\n";
  }
  Budget out;
  out.Must(Opening(diagnosis, profile, *kernel));
  if (options.outcome) {
    out.Must(Last(*options.outcome, diagnosis));
  }
  if (diagnosis.findings.empty()) {
    out.Must(Experiment(diagnosis));
  } else {
    Primary(diagnosis.findings.front(), out);
  }
  const std::string fine =
      diagnosis.fine.empty() ? std::string()
                             : fmt::format("FINE    Keep: {}.\n", fmt::join(diagnosis.fine, "; "));
  const std::string unknown = Unexamined(diagnosis, *kernel);
  const std::vector<std::string> also = AlsoSeen(diagnosis);
  std::size_t reserved = CountWords(fine) + CountWords(unknown);
  for (const std::string& line : also) {
    reserved += CountWords(line);
  }
  out.Reserve(reserved);
  OtherRemedies(diagnosis, out);
  for (const std::string& line : also) {
    reserved -= CountWords(line);
    out.Reserve(reserved);
    out.May(line);
  }
  out.Reserve(0);
  out.May(unknown);
  out.May(fine);
  std::string text = out.Take();
  return options.form == FeedbackForm::kMarkdown ? Markdown(text) : text;
}

}  // namespace kernelpro
