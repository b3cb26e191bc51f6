// SPDX-License-Identifier: Apache-2.0
// The experts against profiles of real kernels (H200, docs/measurements/h200_experts.md). What they
// miss is printed; the shares that they must reach are those of the issue.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cases.h"
#include "diagnose/diagnose.h"

namespace kernelpro::experts {
namespace {

const std::filesystem::path kLists = std::string(KP_SOURCE_DIR) + "/tests/gpu/experts";
const std::filesystem::path kStored = std::string(KP_SOURCE_DIR) + "/tests/data/experts";

Profiles& Stored() {
  static Profiles profiles(kStored);
  return profiles;
}

std::string Ids(const Diagnosis& diagnosis) {
  std::vector<std::string> ids;
  for (const Finding& f : diagnosis.findings) {
    ids.push_back(f.id);
  }
  return fmt::format("{}", fmt::join(ids, " "));
}

std::set<std::string> CoreTools() {
  std::set<std::string> core;
  for (const auto& tool : BuiltInTools()) {
    if (tool->document().core) {
      core.emplace(tool->id());
    }
  }
  return core;
}

std::optional<Profile> ProfileOf(const MatrixCase& c) {
  if (!c.program.starts_with("sys_")) {
    return Stored().Kernel(c.program, c.name);
  }
  const Profile* whole = Stored().Program(c.program);
  return whole == nullptr ? std::nullopt : std::optional(*whole);
}

struct Score {
  int right = 0, all = 0;

  void Add(bool is_right) {
    right += is_right ? 1 : 0;
    ++all;
  }

  [[nodiscard]] double Share() const { return all > 0 ? static_cast<double>(right) / all : 0; }
};

TEST(Experts, TheMatrixOfMicroKernels) {
  const auto cases = ReadMatrix(kLists);
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  const std::set<std::string> core = CoreTools();
  Score of_core;
  Score of_all;
  std::map<std::string, std::pair<bool, bool>> seen;  // tool -> fired where due, silent where due
  for (const MatrixCase& c : *cases) {
    const std::optional<Profile> profile = ProfileOf(c);
    ASSERT_TRUE(profile.has_value()) << c.name << " is not in " << kStored;
    const Diagnosis d = Judge(*profile, c.task);
    const bool right = Fired(d, c.tool) == c.fires;
    of_all.Add(right);
    if (core.contains(c.tool)) {
      of_core.Add(right);
    }
    if (right) {
      (c.fires ? seen[c.tool].first : seen[c.tool].second) = true;
    } else {
      fmt::print("{} {}: {}\n", c.name, c.fires ? "does not fire" : "is not silent", Ids(d));
    }
  }
  fmt::print("core tools: {} of {} right; all: {} of {}\n", of_core.right, of_core.all,
             of_all.right, of_all.all);
  EXPECT_GE(of_core.Share(), 0.95);
  EXPECT_GE(of_all.Share(), 0.92);
  for (const std::string& id : core) {
    if (id != "nrg.report") {  // a measurement of seconds, not a kernel's profile
      EXPECT_TRUE(seen[id].first) << id << " fires on none of its kernels";
      EXPECT_TRUE(seen[id].second) << id << " is silent on none of its twins";
    }
  }
}

void ExpectPairs(const std::string& list) {
  const auto pairs = ReadPairs(kLists / list);
  ASSERT_TRUE(pairs.ok()) << pairs.error().message;
  Score named;
  Score held;
  for (const PairCase& p : *pairs) {
    const auto bad = Stored().Kernel(p.program, p.name + "__bad");
    const auto good = Stored().Kernel(p.program, p.name + "__good");
    ASSERT_TRUE(bad && good) << p.name << " is not in " << kStored;
    const double gain = 1 - good->kernels[0].time_us / bad->kernels[0].time_us;
    if (gain < kLeastGain) {
      continue;
    }
    const Diagnosis d = Judge(*bad, p.task);
    const auto rank = RankOf(d, p.tools);
    named.Add(rank && *rank < 3);
    if (!rank || *rank >= 3) {
      fmt::print("{}: {} is not among the first three: {}\n", p.name, p.tools[0], Ids(d));
      continue;
    }
    const double bound = d.findings[*rank].bound;
    if (bound <= 0) {
      continue;  // it promises nothing
    }
    held.Add(bound >= gain);
    if (bound < gain) {
      fmt::print("{}: {} promises at most {:.3f}, the repair gained {:.3f}\n", p.name,
                 d.findings[*rank].id, bound, gain);
    }
  }
  fmt::print("{}: {} of {} named, bound held in {} of {}\n", list, named.right, named.all,
             held.right, held.all);
  EXPECT_GE(named.all, 40);
  EXPECT_GE(named.Share(), 0.90);
  EXPECT_GE(held.Share(), 0.95);
}

TEST(Experts, NameThePlantedFlaw) {
  ExpectPairs("pairs.toml");
}

/// Looked at once, before anything was changed for it: 58 of 62 named; its bounds held in 43 of 58
/// and made the present ones (docs/measurements/h200_experts.md).
TEST(Experts, NameTheFlawsOfTheSecondSet) {
  ExpectPairs("validation.toml");
}

/// Looked at once, and nothing was changed for it.
TEST(Experts, NameTheFlawsOfTheHoldout) {
  ExpectPairs("holdout.toml");
}

TEST(Experts, RaiseHardlyAnAlarmOnLibraries) {
  int alarms = 0;
  std::set<std::string> kernels;
  for (const std::string program : {"tuned_library", "tuned_torch"}) {
    const Profile* all = Stored().Program(program);
    ASSERT_NE(all, nullptr) << program;
    for (const KernelProfile& kernel : all->kernels) {
      if (!kernels.insert(kernel.name).second) {
        continue;  // the same kernel once more
      }
      Profile one;
      one.kernels.push_back(kernel);
      one.kernels[0].time_share = 1;
      for (const Finding& f : Judge(one, {}).findings) {
        // "You are at the roof" is no alarm.
        if (f.id != "mem.dram_roof") {
          fmt::print("{:.60}: {} ({:.2f})\n", kernel.name, f.id, f.severity);
          ++alarms;
        }
      }
    }
  }
  fmt::print("{} alarms on {} kernels\n", alarms, kernels.size());
  EXPECT_GE(kernels.size(), 10U);
  EXPECT_LE(alarms, 0.5 * static_cast<double>(kernels.size()));
}

}  // namespace
}  // namespace kernelpro::experts
