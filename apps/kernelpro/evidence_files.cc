// SPDX-License-Identifier: Apache-2.0
#include "evidence_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "device/emulated_launch.h"
#include "emulator/model/model.h"
#include "evaluate/sanitizer_log.h"
#include "profile/activity_trace.h"
#include "profile/evidence.h"
#include "profile/file_kind.h"
#include "profile/ncu_csv.h"
#include "profile/ncu_file.h"
#include "profile/nsys.h"
#include "profile/profile_json.h"
#include "profile/ptxas_log.h"
#include "profile/sass_profile.h"
#include "profile/timeline.h"

namespace kernelpro::app {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestJson = 1ULL << 30U;

Result<Profile> ReadSavedProfile(const fs::path& file) {
  KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kLargestJson));
  return ParseProfileJson(text, file.string());
}

/// A log has no figure of a kernel: its verdict is a note that comes before all advice.
Result<Profile> ReadSanitizer(const fs::path& file) {
  constexpr std::uint64_t kLargestLog = 256ULL << 20U;
  KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kLargestLog));
  const SanitizerLog log = ParseSanitizerLog(text);
  if (!log.complete && log.kind.empty() && log.trouble.empty() &&
      SniffFile(text, file.string()) != FileKind::kSanitizerLog) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: this is {}, not what compute-sanitizer prints", file.string(),
                            Describe(SniffFile(text, file.string()))));
  }
  Profile profile;
  profile.source = "compute-sanitizer";
  const auto put = [&profile](const char* name, std::uint64_t count) {
    profile.system[name] = {static_cast<double>(count), "", Provenance::kCounted};
  };
  std::string note;
  if (log.errors > 0) {
    put("sanitizer.errors", log.errors);
    note = fmt::format(
        "found {} error{}, first: {}. Repair {} first: a kernel that is wrong has "
        "no speed.",
        log.errors, log.errors == 1 ? "" : "s",
        log.kind.empty() ? "not printed" : Printable(DescribeFinding(log), 400),
        log.errors == 1 ? "it" : "them");
  } else if (log.complete) {
    put("sanitizer.errors", 0);
    put("sanitizer.warnings", log.warnings);
    note = log.warnings > 0 ? fmt::format("found no error and {} warnings.", log.warnings)
                            : std::string("found no error.");
  } else {
    note = fmt::format("did not come to its end, so it clears nothing{}{}.",
                       log.trouble.empty() ? "" : ": ", Printable(log.trouble, 300));
  }
  profile.notes.push_back("compute-sanitizer " + note);
  return profile;
}

/// Figures of the run that follow from the events; a reader gives the events only.
void AddTimeline(Profile& profile) {
  if (!profile.timeline.empty() && !profile.system.contains("timeline.window_ns")) {
    constexpr std::uint32_t kUnknownSms = 0;
    profile.system.merge(AnalyseTimeline(profile.timeline, kUnknownSms));
  }
}

/// What is no profile because the machine or the program did not give one, among other files: a
/// note in a profile of its own.
bool IsMissingEvidence(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kToolFailed;
}

Status ReadAll(const std::vector<fs::path>& files, bool others, std::vector<Profile>& into,
               const std::function<Result<Profile>(const fs::path&)>& read) {
  for (const fs::path& file : files) {
    Result<Profile> profile = read(file);
    if (!profile && others && IsMissingEvidence(profile.error())) {
      Profile note;
      note.notes.push_back("No figures of " + profile.error().message +
                           ". The diagnosis rests on the other files.");
      into.push_back(std::move(note));
      continue;
    }
    KP_RETURN_IF_ERROR(profile ? Ok() : Status(profile.error()));
    AddTimeline(*profile);
    into.push_back(std::move(profile).value());
  }
  return Ok();
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

struct Guess {
  std::string_view in_name;  ///< part of a device's name, or its compute capability
  std::string_view spec;
  bool sure = true;
};

/// Compute capabilities stand last: several GPUs share one.
constexpr std::array<Guess, 13> kGuesses = {{{"h200", "h200"},
                                             {"h100", "h100"},
                                             {"gh200", "h100"},
                                             {"a100", "a100"},
                                             {"4090", "rtx4090"},
                                             {" l4", "l4"},
                                             {"capability 9.0", "h200", false},
                                             {"capability 8.0", "a100", false},
                                             {"capability 8.9", "rtx4090", false},
                                             {"capability 8.6", "rtx4090", false},
                                             {"capability 10", "h200", false},
                                             {"capability 12", "rtx4090", false},
                                             {"", "h200", false}}};

}  // namespace

Result<std::vector<Profile>> ReadEvidence(const EvidenceFiles& files, const std::stop_token& stop) {
  std::vector<Profile> profiles;
  const bool others = files.size() > 1;
  KP_RETURN_IF_ERROR(ReadAll(files.sanitizer, others, profiles, ReadSanitizer));
  KP_RETURN_IF_ERROR(ReadAll(files.ncu, others, profiles,
                             [&](const fs::path& file) { return ReadNcu(file, stop); }));
  KP_RETURN_IF_ERROR(ReadAll(files.profile, others, profiles, ReadSavedProfile));
  KP_RETURN_IF_ERROR(ReadAll(files.sass, others, profiles, ReadSass));
  KP_RETURN_IF_ERROR(ReadAll(files.ptxas, others, profiles, ReadPtxasLog));
  KP_RETURN_IF_ERROR(ReadAll(files.nsys, others, profiles, ReadNsys));
  KP_RETURN_IF_ERROR(ReadAll(files.activity, others, profiles, ReadActivityTrace));
  return profiles;
}

Result<Profile> ReadAnyProfile(const fs::path& file, const std::stop_token& stop) {
  constexpr std::uint64_t kHead = 1U << 20U;
  KP_ASSIGN_OR_RETURN(const std::string head, ReadFileHead(file, kHead));
  EvidenceFiles files;
  switch (SniffFile(head, file.string())) {
    case FileKind::kPtxasLog:
    case FileKind::kResourceUse:
      files.ptxas = {file};
      break;
    case FileKind::kDisassembly:
      files.sass = {file};
      break;
    case FileKind::kSanitizerLog:
      files.sanitizer = {file};
      break;
    case FileKind::kNsysReport:
    case FileKind::kNsysStats:
    case FileKind::kSqlite:
      files.nsys = {file};
      break;
    default:
      if (head.starts_with("{\"kernelpro_profile\"")) {
        files.profile = {file};
      } else {
        files.ncu = {file};
      }
  }
  return JoinEvidence(files, stop);
}

Result<Profile> JoinEvidence(const EvidenceFiles& files, const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(std::vector<Profile> profiles, ReadEvidence(files, stop));
  for (Profile& profile : profiles) {
    profile = MergeLaunches(profile);
  }
  return MergeEvidence(std::move(profiles));
}

Result<Hardware> HardwareFor(const std::string& choice, Profile& profile) {
  std::string name = choice;
  if (choice == "auto") {
    const std::string device = Lower(profile.device);
    const Guess* const guess = std::ranges::find_if(
        kGuesses, [&](const Guess& g) { return device.find(g.in_name) != std::string::npos; });
    name = guess->spec;
    if (!guess->sure) {
      profile.notes.push_back(fmt::format(
          "The profile {}; figures of the {} are used where it has no own percentages (--gpu "
          "names another).",
          profile.device.empty() ? "does not say which GPU it is of"
                                 : "is of \"" + profile.device + "\", which is not in the list",
          name));
    }
  }
  KP_ASSIGN_OR_RETURN(const model::GpuSpec spec, model::LoadSpec(name));
  Hardware hardware = HardwareOf(spec);
  for (const KernelProfile& kernel : profile.kernels) {
    if (const auto sms = kernel.Value("device__attribute_multiprocessor_count"); sms && *sms > 0) {
      hardware.sm_count = static_cast<std::uint32_t>(*sms);
    }
  }
  return hardware;
}

}  // namespace kernelpro::app
