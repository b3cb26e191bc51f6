// SPDX-License-Identifier: Apache-2.0
// experts_store LISTS RAW OUT: makes the stored profiles (OUT/<program>.json) of what
// tests/gpu/experts/collect.sh brought back from a GPU (RAW). Times are those of the events.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "compact.h"
#include "profile/activity_trace.h"
#include "profile/build_facts.h"
#include "profile/evidence.h"
#include "profile/ncu_csv.h"
#include "profile/ncu_source.h"
#include "profile/ptxas_log.h"
#include "profile/sass_profile.h"
#include "sass/listing.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSpots = 12;

/// What some tool reads: names that stand in the sources of src/diagnose and rules, and all of our
/// own.
bool IsWanted(const std::string& used, std::string_view metric) {
  return metric.find("__") == std::string_view::npos ||
         metric.find("stalled") != std::string_view::npos || used.find(metric) != std::string::npos;
}

/// The text of every file that may name a metric.
std::string UsedNames() {
  std::string text;
  const fs::path root = KP_SOURCE_DIR;
  for (const fs::path& folder : {root / "rules", root / "src/diagnose", root / "src/diagnose/tools",
                                 root / "src/profile/metric_names.h"}) {
    if (fs::is_regular_file(folder)) {
      text += ReadFile(folder).value();
      continue;
    }
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_regular_file()) {
        text += ReadFile(entry.path()).value();
      }
    }
  }
  return text;
}

/// The flags that collect.sh built the program with: the comment in its source, and a default
/// target where that names none.
std::vector<std::string> Flags(const fs::path& sources, const std::string& program) {
  std::vector<std::string> flags;
  const auto text = ReadFile(sources / (program + ".cu"));
  constexpr std::string_view kComment = "// flags: ";
  bool target = false;
  for (const std::string_view line : text ? Lines(*text) : std::vector<std::string_view>()) {
    if (line.starts_with(kComment)) {
      for (const std::string_view word : Split(line.substr(kComment.size()), ' ')) {
        flags.emplace_back(word);
        target = target || word.starts_with("-gencode") || word.starts_with("-arch");
      }
      break;
    }
  }
  flags.emplace_back("-lineinfo");
  if (!target) {
    flags.emplace_back("-gencode=arch=compute_90a,code=sm_90a");
  }
  return flags;
}

std::map<std::string, double> Times(const fs::path& path) {
  std::map<std::string, double> times;
  const auto text = ReadFile(path);
  for (const std::string_view line : text ? Lines(*text) : std::vector<std::string_view>()) {
    const std::size_t comma = line.find(',');
    double us = 0;
    if (comma != std::string_view::npos && ParseDouble(line.substr(comma + 1), &us)) {
      times[std::string(line.substr(0, comma))] = us;
    }
  }
  return times;
}

void AddSamples(const fs::path& raw, const std::string& program, Profile& profile) {
  const auto text = ReadFile(raw / (program + ".source.csv"), 1U << 30U);
  if (!text) {
    return;
  }
  const auto launches = ParseNcuSource(*text, program);
  if (!launches) {
    fmt::print(stderr, "{}\n", launches.error().message);
    return;
  }
  AddHotSpots(*launches, profile);
  const auto code = ReadFile(raw / (program + ".nvdisasm"), 1U << 30U);
  const auto listing = code ? sass::ParseListing(*code, program) : Result<sass::Listing>(Error());
  for (KernelProfile& kernel : profile.kernels) {
    for (const sass::Function& function :
         listing ? listing->functions : std::vector<sass::Function>()) {
      if (function.name == kernel.mangled) {
        AttributeStalls(kernel, function);
      }
    }
    kernel.hot_spots.resize(std::min(kernel.hot_spots.size(), kMostSpots));
  }
}

void TrimTo(const std::string& used, Profile& profile, const std::map<std::string, double>& times) {
  profile.notes.clear();
  std::erase_if(profile.kernels, [](const KernelProfile& k) {
    return k.time_us <= 0 || k.name.starts_with("suite::suite_fill");
  });
  for (KernelProfile& kernel : profile.kernels) {
    std::erase_if(kernel.metrics, [&used](const auto& m) { return !IsWanted(used, m.first); });
    kernel.missing.clear();
    kernel.opcodes.clear();
    std::erase_if(kernel.texts, [](const auto& t) { return t.first != "build.arch"; });
    if (const auto time = times.find(kernel.name); time != times.end()) {
      kernel.time_us = time->second;
    }
  }
}

/// One program's files as a profile; nothing when it was not profiled.
std::optional<Profile> Load(const fs::path& lists, const fs::path& raw,
                            const std::string& program) {
  std::vector<Profile> sources;
  const auto add = [&](Result<Profile> read) {
    if (read) {
      sources.push_back(std::move(read).value());
    } else {
      fmt::print(stderr, "{}\n", read.error().message);
    }
  };
  if (fs::exists(raw / (program + ".csv"))) {
    add(ReadNcuCsv(raw / (program + ".csv")));
  }
  if (fs::exists(raw / (program + ".activity.jsonl"))) {
    add(ReadActivityTrace(raw / (program + ".activity.jsonl")));
  }
  if (sources.empty()) {
    return std::nullopt;
  }
  Profile build;
  build.system = BuildFacts(Flags(lists, program));
  sources.push_back(std::move(build));
  if (sources[0].source.ends_with(".csv")) {
    add(ReadSass(raw / (program + ".nvdisasm")));
    add(ReadPtxasLog(raw / (program + ".ptxas")));
  }
  Profile profile = MergeEvidence(std::move(sources));
  AddSamples(raw, program, profile);
  TrimTo(UsedNames(), profile, Times(raw / (program + ".times.csv")));
  profile.source = program;
  return profile;
}

int Main(const fs::path& lists, const fs::path& raw, const fs::path& out) {
  std::vector<std::string> programs;
  for (const auto& entry : fs::directory_iterator(raw)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".times.csv")) {
      programs.push_back(name.substr(0, name.size() - 10));
    }
  }
  std::ranges::sort(programs);
  for (const std::string& program : programs) {
    if (const auto profile = Load(lists, raw, program)) {
      const Status written =
          WriteFileAtomically(out / (program + ".json"), experts::ToCompact(*profile));
      if (!written) {
        fmt::print(stderr, "{}\n", written.error().message);
        return 1;
      }
      fmt::print("{} {} kernels\n", program, profile->kernels.size());
    }
  }
  return 0;
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "use: experts_store LISTS RAW OUT\n");
    return 2;
  }
  return kernelpro::Main(argv[1], argv[2], argv[3]);
}
