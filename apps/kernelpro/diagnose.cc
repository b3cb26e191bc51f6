// SPDX-License-Identifier: Apache-2.0
// profile and diagnose: a candidate of a task, a CUDA program, or files that somebody else made.
#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/file.h"
#include "candidate.h"
#include "commands.h"
#include "diagnose/comparison.h"
#include "energy.h"
#include "evidence_files.h"
#include "profile/evidence.h"
#include "profile/ncu_csv.h"
#include "profile/profile_json.h"
#include "program.h"
#include "report/json.h"
#include "report/text.h"
#include "search/record.h"
#include "setup.h"
#include "tool_set.h"

namespace kernelpro::app {
namespace {

namespace fs = std::filesystem;
using report::Json;

/// What there is to look at; a candidate that is not ok has a verdict instead.
struct Subject {
  Profile profile;
  Hardware hardware;
  std::vector<std::string> passes;
  std::optional<Evaluation> refused;
  std::optional<Outcome> outcome;
};

bool IsProgram(const fs::path& path) {
  return !path.empty() && !fs::is_directory(path) && path.filename() != "task.toml";
}

Result<Subject> OfProgram(const DiagnoseOptions& options, const std::stop_token& stop) {
  ProgramOptions program;
  program.file = options.candidate.task;
  program.kernel = options.kernel;
  program.arguments = options.arguments;
  program.flags = options.candidate.flags;
  program.device = options.candidate.device;
  program.counters = !options.no_counters;
  program.samples = !options.no_samples;
  if (!fs::exists(program.file)) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("there is no task folder and no program {}", program.file.string()));
  }
  KP_ASSIGN_OR_RETURN(ProgramProfile profile, ProfileProgram(program, stop));
  return Subject{std::move(profile.profile), std::move(profile.hardware), std::move(profile.passes),
                 std::nullopt, std::nullopt};
}

Result<Subject> OfCandidate(const DiagnoseOptions& options, const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(Examined examined, ExamineCandidate(options.candidate, false, stop));
  Subject subject;
  if (examined.assessment.evaluation.verdict != Verdict::kOk) {
    subject.refused = examined.assessment.evaluation;
    return subject;
  }
  subject.profile = std::move(examined.assessment.profile);
  subject.hardware = examined.bench->device->info().hardware;
  if (options.energy_seconds > 0) {
    const std::chrono::milliseconds window(static_cast<long>(1000 * options.energy_seconds));
    KP_ASSIGN_OR_RETURN(PowerReport power,
                        MeasureEnergy(*examined.bench, examined.candidate, window, stop));
    subject.profile.system.merge(power.metrics);
    std::ranges::move(power.notes, std::back_inserter(subject.profile.notes));
  }
  return subject;
}

/// `joined`: sources as one, for the experts; else as the readers understood them.
Result<Subject> OfFiles(const DiagnoseOptions& options, bool joined, const std::stop_token& stop) {
  if (!options.candidate.task.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "give either TASK, a program, or files, not both");
  }
  Subject subject;
  if (joined) {
    KP_ASSIGN_OR_RETURN(subject.profile, JoinEvidence(options.files, stop));
  } else {
    KP_ASSIGN_OR_RETURN(std::vector<Profile> profiles, ReadEvidence(options.files, stop));
    subject.profile =
        profiles.size() == 1 ? std::move(profiles.front()) : MergeEvidence(std::move(profiles));
  }
  KP_ASSIGN_OR_RETURN(subject.hardware, HardwareFor(options.gpu, subject.profile));
  return subject;
}

Result<Subject> Look(const DiagnoseOptions& options, bool joined, const std::stop_token& stop) {
  if (options.energy_seconds > 0 && (!options.files.empty() || IsProgram(options.candidate.task))) {
    return Fail(ErrorCode::kInvalidArgument,
                "--energy measures a task's candidate; a program's or a file's cannot be repeated");
  }
  if (!options.files.empty()) {
    return OfFiles(options, joined, stop);
  }
  return IsProgram(options.candidate.task) ? OfProgram(options, stop) : OfCandidate(options, stop);
}

/// Prints the verdict of a candidate that cannot be profiled.
int SayVerdict(const Evaluation& evaluation, bool json) {
  if (json) {
    fmt::print("{}\n", search::Dump(search::EvaluationJson(evaluation)));
  } else {
    fmt::print("{}", report::EvaluationText(evaluation, 0));
  }
  return 1;
}

Json ProfileObject(const Profile& profile) {
  return Json::parse(ProfileJson(profile));
}

Status Save(const DiagnoseOptions& options, const Profile& profile) {
  return options.save.empty() ? Ok() : WriteFileAtomically(options.save, ProfileJson(profile));
}

std::string Notes(const Subject& subject) {
  std::string text;
  for (const std::string& pass : subject.passes) {
    text += fmt::format("run   {}\n", pass);
  }
  for (const std::string& note : subject.profile.notes) {
    text += fmt::format("note  {}\n", note);
  }
  return text;
}

/// Two profiles of the same program.
int ShowComparison(const DiagnoseOptions& options, const std::stop_token& stop) {
  const bool json = options.candidate.json;
  Result<Profile> before = ReadAnyProfile(options.before, stop);
  if (!before) {
    return Complain(before.error(), json);
  }
  Result<Profile> after = ReadAnyProfile(options.after, stop);
  if (!after) {
    return Complain(after.error(), json);
  }
  const Result<Hardware> hardware = HardwareFor(options.gpu, *before);
  Result<ToolSet> tools = MakeToolSet(options.rules);
  if (!hardware || !tools) {
    return Complain(hardware ? tools.error() : hardware.error(), json);
  }
  const Comparison comparison = Compare(*before, *after, *hardware, tools->all);
  if (!json) {
    fmt::print("{}", ComparisonText(comparison));
    return 0;
  }
  Json kernels = Json::array();
  for (const KernelChange& change : comparison.kernels) {
    Json figures = Json::object();
    for (const FigureChange& figure : change.figures) {
      figures[figure.name] = {
          {"before", figure.before}, {"after", figure.after}, {"unit", figure.unit}};
    }
    kernels.push_back({{"kernel", change.kernel},
                       {"before_us", change.before_us},
                       {"after_us", change.after_us},
                       {"comparable", change.comparable},
                       {"gone", change.gone},
                       {"stayed", change.stayed},
                       {"new", change.appeared},
                       {"figures", std::move(figures)}});
  }
  fmt::print("{}\n", search::Dump({{"kernels", std::move(kernels)},
                                   {"before", report::DiagnosisJson(comparison.before)},
                                   {"after", report::DiagnosisJson(comparison.after)},
                                   {"only_before", comparison.only_before},
                                   {"only_after", comparison.only_after}}));
  return 0;
}

int Print(const DiagnoseOptions& options, const Subject& subject, const Diagnosis& diagnosis) {
  FeedbackOptions feedback;
  feedback.form = options.format == "markdown" ? FeedbackForm::kMarkdown : FeedbackForm::kText;
  if (options.candidate.json) {
    Json json = report::DiagnosisJson(diagnosis);
    json["device"] = subject.profile.device;
    json["kernels"] = report::KernelsJson(subject.profile);
    json["system"] = report::MetricsJson(subject.profile.system);
    json["notes"] = subject.profile.notes;
    json["feedback"] = FeedbackText(diagnosis, subject.profile, feedback);
    fmt::print("{}\n", search::Dump(json));
  } else if (options.format == "text") {
    fmt::print("{}{}", Notes(subject), report::DiagnosisText(diagnosis));
  } else {
    fmt::print("{}", FeedbackText(diagnosis, subject.profile, feedback));
  }
  return 0;
}

}  // namespace

int ShowProfile(const DiagnoseOptions& options) {
  const Interrupt interrupt;
  const bool json = options.candidate.json;
  const Result<Subject> subject = Look(options, false, interrupt.token());
  if (!subject) {
    return Complain(subject.error(), json);
  }
  if (subject->refused) {
    return SayVerdict(*subject->refused, json);
  }
  if (const Status saved = Save(options, subject->profile); !saved) {
    return Complain(saved.error(), json);
  }
  if (json) {
    fmt::print("{}\n", search::Dump(ProfileObject(subject->profile)));
  } else {
    fmt::print("{}{}", Notes(*subject), report::ProfileText(subject->profile));
  }
  return 0;
}

int ShowDiagnosis(const DiagnoseOptions& options) {
  const Interrupt interrupt;
  const bool json = options.candidate.json;
  if (options.before.empty() != options.after.empty()) {
    return Complain(Fail(ErrorCode::kInvalidArgument, "--before and --after go together"), json);
  }
  if (!options.before.empty()) {
    return ShowComparison(options, interrupt.token());
  }
  Result<ToolSet> tools = MakeToolSet(options.rules);
  if (!tools) {
    return Complain(tools.error(), json);
  }
  const Result<Subject> subject = Look(options, true, interrupt.token());
  if (!subject) {
    return Complain(subject.error(), json);
  }
  if (subject->refused) {
    return SayVerdict(*subject->refused, json);
  }
  const auto limit = std::chrono::milliseconds(static_cast<long>(1000 * options.tool_seconds));
  if (const Status added =
          AddExternalTools(options.tools, subject->profile, limit, interrupt.token(), *tools);
      !added) {
    return Complain(added.error(), json);
  }
  if (const Status saved = Save(options, subject->profile); !saved) {
    return Complain(saved.error(), json);
  }
  return Print(options, *subject, Diagnose(subject->profile, subject->hardware, tools->all));
}

}  // namespace kernelpro::app
