// SPDX-License-Identifier: Apache-2.0
#include "report/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "report/diff.h"
#include "report/format.h"

namespace kernelpro::report {
namespace {

std::string_view Label(double severity) {
  return severity < 0.25   ? "info"
         : severity < 0.5  ? "minor"
         : severity < 0.75 ? "major"
                           : "critical";
}

std::string Indent(std::string_view text, std::string_view by) {
  std::string out;
  for (const std::string_view line : Lines(text)) {
    out += fmt::format("{}{}\n", by, line);
  }
  return out;
}

std::string VerdictCounts(const std::map<std::string, std::uint32_t>& verdicts) {
  std::string text;
  for (const auto& [verdict, count] : verdicts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, verdict);
  }
  return text;
}

std::string StepText(const store::NodeRecord& from, const store::NodeRecord& to,
                     std::size_t number) {
  const std::string by = to.origin.empty() ? "" : fmt::format(" (by {})", Printable(to.origin, 80));
  const bool was_wrong = from.time_us <= 0;
  return fmt::format("  {}. {}: {} -> {} {}{}\n     {}\n", number, to.action,
                     was_wrong ? from.verdict : FormatTime(from.time_us),
                     to.time_us > 0 ? FormatTime(to.time_us) : to.verdict, to.provenance, by,
                     to.reason);
}

}  // namespace

std::string FindingText(const Finding& f) {
  std::string text = fmt::format("[{}] {}", Label(f.severity), f.title);
  if (f.line != 0) {
    text += fmt::format(" at {}:{}", f.file, f.line);
  }
  text += fmt::format(" in {} ({})\n", f.kernel,
                      f.bound > 0
                          ? fmt::format("upper bound: {:.0f}% of {} time, {:.2f}x", 100 * f.bound,
                                        f.id.starts_with("sys.") ? "the run's" : "its",
                                        1 / (1 - std::min(f.bound, 0.999)))
                          : std::string("upper bound unknown"));
  const auto add = [&text](std::string_view name, const std::string& sentence) {
    if (!sentence.empty()) {
      text += fmt::format("{:<6} {}\n", name, sentence);
    }
  };
  add("seen", f.seen);
  add("why", f.why);
  add("from", f.rests_on);
  add("do", f.action);
  for (std::size_t i = 1; i < f.remedies.size(); ++i) {
    add("or", f.remedies[i]);
  }
  add("check", f.check);
  add("avoid", f.avoid);
  return text;
}

std::string DiagnosisText(const Diagnosis& diagnosis) {
  std::string text;
  for (const ClassMembership& c : diagnosis.classes) {
    text += fmt::format("{:<24} {:.2f}  {}\n", c.id, c.membership, c.evidence);
  }
  for (const Finding& f : diagnosis.findings) {
    text += fmt::format("\n{}", FindingText(f));
  }
  if (diagnosis.findings.empty()) {
    const bool looked = !diagnosis.classes.empty() || !diagnosis.not_run.empty();
    text += looked ? "\nNo tool has anything to complain about.\n"
                   : "\nNo kernel was profiled: the tools had nothing to look at.\n";
  }
  for (const std::string& fine : diagnosis.fine) {
    text += fmt::format("\nfine: {}", fine);
  }
  if (!diagnosis.not_run.empty()) {
    std::set<std::string> ids;
    for (const NotRun& tool : diagnosis.not_run) {
      ids.insert(tool.id);
    }
    text += fmt::format("\nnot examined, for lack of figures: {}", fmt::join(ids, " "));
  }
  for (const Suppressed& s : diagnosis.suppressed) {
    text += fmt::format("\nnot said: {} ({}: {})", s.id, s.by, s.why);
  }
  return text + "\n";
}

namespace {

/// The figures of a real GPU.
std::string MeasuredText(const Evaluation& e) {
  const TimeFigures& f = *e.figures;
  std::string text = fmt::format(
      "time     {} measured, cold L2 (95 %: {} to {}; {} samples, {} calls); warm L2 {}; host "
      "clock "
      "{}\n",
      FormatTime(f.median_us), FormatTime(f.low_us), FormatTime(f.high_us), f.samples, f.calls,
      FormatTime(f.warm_us), FormatTime(f.host_us));
  if (e.speedup && e.baseline) {
    text += fmt::format(
        "speedup over the seed: {:.3f}x measured (95 %: {:.3f} to {:.3f}; seed {})\n",
        e.speedup->ratio, e.speedup->low, e.speedup->high, FormatTime(e.baseline->median_us));
  }
  if (e.modelled_us) {
    text += fmt::format("the emulator had modelled {}\n", FormatTime(*e.modelled_us));
  }
  if (e.clocks) {
    text +=
        fmt::format("clocks   SM {:.0f} to {:.0f} MHz, {:.0f} C, {:.0f} W", e.clocks->sm_mhz_low,
                    e.clocks->sm_mhz_high, e.clocks->temperature_c, e.clocks->power_w);
    for (const std::string& reason : e.clocks->throttle_reasons) {
      text += "; " + reason;
    }
    for (const std::string& other : e.clocks->foreign_processes) {
      text += "; also on this GPU: " + other;
    }
    text += '\n';
  }
  return text;
}

}  // namespace

std::string EvaluationText(const Evaluation& e, double seed_us) {
  std::string text = fmt::format("{}", Name(e.verdict));
  if (!e.reason.empty()) {
    text += ": " + Printable(e.reason, 2000);
  }
  text += '\n';
  for (const WorkloadCheck& check : e.checks) {
    for (const OutputError& o : check.errors) {
      text += fmt::format(
          "checked  {:<12} '{}': {} elements, {} seeds, worst error {:.2g} of what is allowed\n",
          check.hidden ? "(hidden)" : check.workload, o.tensor, o.elements, check.seeds,
          o.worst_ratio);
    }
  }
  if (!e.precision.name.empty()) {
    text +=
        fmt::format("computes in {}: {}\n", e.precision.name, Printable(e.precision.evidence, 500));
  }
  for (const WorkloadTime& t : e.times) {
    text += fmt::format("timed    {:<12} {} {} (floor {})\n", t.workload, FormatTime(t.time_us),
                        Name(e.time_provenance), FormatTime(t.floor_us));
  }
  if (e.figures && e.verdict == Verdict::kOk) {
    text += MeasuredText(e);
  } else if (e.verdict == Verdict::kOk && seed_us > 0) {
    text += fmt::format("speedup over the seed: {:.2f}x ({})\n", seed_us / e.time_us,
                        Name(e.time_provenance));
  }
  for (const SandboxMeasure& m : e.sandbox) {
    if (!m.on) {
      text += fmt::format("sandbox  {} is off: {}\n", m.name, m.detail);
    }
  }
  for (const std::string& note : e.notes) {
    text += "note     " + Printable(note, 2000) + '\n';
  }
  return text;
}

std::string ProfileText(const Profile& profile) {
  std::string text = fmt::format("{} from {}\n", profile.device, profile.source);
  for (const KernelProfile& k : profile.kernels) {
    text += fmt::format("\n{}  grid ({}, {}, {}) block ({}, {}, {})  {} {}\n", k.name, k.grid[0],
                        k.grid[1], k.grid[2], k.block[0], k.block[1], k.block[2],
                        FormatTime(k.time_us), Name(k.time_provenance));
    for (const auto& [name, metric] : k.metrics) {
      text += fmt::format("  {:<72} {:>16.6g} {:<10} {}\n", name, metric.value, metric.unit,
                          Name(metric.provenance));
    }
    if (!k.missing.empty()) {
      text += "  not available here:";
      for (const std::string& name : k.missing) {
        text += " " + name;
      }
      text += '\n';
    }
  }
  return text;
}

std::string SearchText(const search::SearchResult& result,
                       const std::vector<store::NodeRecord>& path, const std::string& task,
                       const DeviceInfo& device) {
  const store::NodeRecord& root = result.root;
  const store::NodeRecord& best = result.best;
  std::string text = fmt::format("{} on {}: {} evaluated ({})", task, device.title,
                                 result.evaluated, VerdictCounts(result.verdicts));
  if (result.stopped != search::Stopped::kNothing) {
    text += fmt::format(", stopped by {}", search::Describe(result.stopped));
  }
  text += (result.why.empty() ? "" : ": " + result.why) + "\n\n";
  text += fmt::format("seed  {} {}\n{}\n", FormatTime(root.time_us), root.provenance,
                      Indent(root.feedback, "  | "));
  if (best.id == root.id) {
    return text + "Nothing faster than the seed was found.\n";
  }
  text += fmt::format("best  {} {}, {:.2f}x, node {}, {} on every checked shape\n{}\n",
                      FormatTime(best.time_us), best.provenance, root.time_us / best.time_us,
                      best.id, best.verdict, Indent(best.feedback, "  | "));
  text += "what was changed\n";
  for (std::size_t i = 1; i < path.size(); ++i) {
    text += StepText(path[i - 1], path[i], i);
  }
  return text + "\n" + UnifiedDiff(root.source, best.source, "seed", "best");
}

std::vector<store::NodeRecord> PathTo(const std::vector<store::NodeRecord>& nodes,
                                      store::NodeId id) {
  std::vector<store::NodeRecord> path;
  while (id != 0) {
    const auto found = std::find_if(nodes.begin(), nodes.end(),
                                    [id](const store::NodeRecord& n) { return n.id == id; });
    if (found == nodes.end()) {
      break;
    }
    path.push_back(*found);
    id = found->parent;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace kernelpro::report
