// SPDX-License-Identifier: Apache-2.0
// experts_judge LISTS PROFILES [-v NAME]: what the experts say of every stored case, against what
// they should say. Prints the misses and the totals.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <regex>
#include <string>
#include <vector>

#include "cases.h"
#include "diagnose/diagnose.h"

namespace kernelpro::experts {
namespace {

std::string Ids(const Diagnosis& diagnosis) {
  std::vector<std::string> ids;
  for (const Finding& f : diagnosis.findings) {
    ids.push_back(fmt::format("{}({:.2f},{:.2f})", f.id, f.severity, f.bound));
  }
  return fmt::format("{}", fmt::join(ids, " "));
}

std::string Classes(const Diagnosis& diagnosis) {
  std::vector<std::string> ids;
  for (const ClassMembership& c : diagnosis.classes) {
    ids.push_back(fmt::format("{}:{:.2f}", c.id, c.membership));
  }
  return fmt::format("{}", fmt::join(ids, " "));
}

int Matrix(const std::string& lists, Profiles& profiles) {
  const auto cases = ReadMatrix(lists);
  int right = 0;
  int all = 0;
  for (const MatrixCase& c : *cases) {
    std::optional<Profile> profile;
    if (c.program.starts_with("sys_")) {
      const Profile* whole = profiles.Program(c.program);
      profile = whole == nullptr ? std::nullopt : std::optional(*whole);
    } else {
      profile = profiles.Kernel(c.program, c.name);
    }
    if (!profile) {
      fmt::print("missing {}\n", c.name);
      continue;
    }
    const Diagnosis d = Judge(*profile, c.task);
    const bool fired = Fired(d, c.tool);
    ++all;
    right += fired == c.fires ? 1 : 0;
    if (fired != c.fires) {
      std::string why;
      for (const Suppressed& s : d.suppressed) {
        why += s.id == c.tool ? " suppressed by " + s.by : "";
      }
      for (const NotRun& n : d.not_run) {
        why += n.id == c.tool ? fmt::format(" lacks {}", fmt::join(n.missing, " ")) : "";
      }
      fmt::print("MATRIX {:<28} {:<8.1f} {} [{}]{}\n", c.name, profile->kernels[0].time_us, Ids(d),
                 Classes(d), why);
    }
  }
  fmt::print("matrix: {} of {} right\n", right, all);
  return all - right;
}

int Pairs(const std::string& list, Profiles& profiles) {
  const auto pairs = ReadPairs(list);
  if (!pairs) {
    return 0;
  }
  int named = 0;
  int held = 0;
  int all = 0;
  int bounded = 0;
  for (const PairCase& p : *pairs) {
    const auto bad = profiles.Kernel(p.program, p.name + "__bad");
    const auto good = profiles.Kernel(p.program, p.name + "__good");
    if (!bad || !good) {
      fmt::print("missing {}\n", p.name);
      continue;
    }
    const double gain = 1 - good->kernels[0].time_us / bad->kernels[0].time_us;
    if (gain < kLeastGain) {
      fmt::print("SMALL {:<14} the repair gained {:.3f}\n", p.name, gain);
      continue;
    }
    const Diagnosis d = Judge(*bad, p.task);
    const auto rank = RankOf(d, p.tools);
    ++all;
    named += rank && *rank < 3 ? 1 : 0;
    if (!rank || *rank >= 3) {
      fmt::print("PAIR {:<14} want {} gain {:.2f} | {} [{}]\n", p.name, p.tools[0], gain, Ids(d),
                 Classes(d));
    }
    if (rank && *rank < 3 && d.findings[*rank].bound > 0) {
      ++bounded;
      held += d.findings[*rank].bound >= gain ? 1 : 0;
      if (d.findings[*rank].bound < gain) {
        fmt::print("BOUND {:<14} {} bound {:.3f} gain {:.3f} [{}]\n", p.name, d.findings[*rank].id,
                   d.findings[*rank].bound, gain, Classes(d));
      }
    }
    const Diagnosis after = Judge(*good, p.task);
    if (const auto still = RankOf(after, {p.tools[0]}); still) {
      fmt::print("STILL {:<14} {} in the repaired one: {}\n", p.name, p.tools[0], Ids(after));
    }
  }
  fmt::print("pairs: {} of {} named among the first three; bound held in {} of {}\n", named, all,
             held, bounded);
  return all - named;
}

void Tuned(const std::string& lists, Profiles& profiles) {
  const auto cases = ReadTuned(lists);
  int findings = 0;
  int kernels = 0;
  for (const std::string program : {"tuned_library", "tuned_torch"}) {
    const Profile* all = profiles.Program(program);
    for (std::size_t i = 0; all != nullptr && i < all->kernels.size(); ++i) {
      Profile one;
      one.kernels.push_back(all->kernels[i]);
      one.kernels[0].time_share = 1;
      const Diagnosis d = Judge(one, {});
      ++kernels;
      for (const Finding& f : d.findings) {
        findings += f.id != "mem.dram_roof" ? 1 : 0;
      }
      fmt::print("TUNED {:<70.70} {:.1f} {} [{}]\n", all->kernels[i].name, all->kernels[i].time_us,
                 Ids(d), Classes(d));
    }
  }
  fmt::print("tuned: {} findings besides the roof on {} launches, repeats of a kernel too\n",
             findings, kernels);
}

void Show(const std::string& lists, Profiles& profiles, const std::string& name) {
  const auto pairs = ReadPairs(lists + "/pairs.toml");
  const auto matrix = ReadMatrix(lists);
  for (const PairCase& p : *pairs) {
    for (const char* side : {"__bad", "__good"}) {
      if (const auto profile = profiles.Kernel(p.program, p.name + side);
          profile && (p.name == name || p.name + side == name)) {
        fmt::print("{}\n", FeedbackText(Judge(*profile, p.task), *profile));
      }
    }
  }
  for (const MatrixCase& c : *matrix) {
    if (const auto profile = profiles.Kernel(c.program, c.name); profile && c.name == name) {
      fmt::print("{}\n", FeedbackText(Judge(*profile, c.task), *profile));
    }
  }
}

}  // namespace
}  // namespace kernelpro::experts

int main(int argc, char** argv) {
  using namespace kernelpro::experts;
  if (argc < 3) {
    fmt::print(stderr, "use: experts_judge LISTS PROFILES [NAME]\n");
    return 2;
  }
  Profiles profiles(argv[2]);
  if (argc > 3) {
    Show(argv[1], profiles, argv[3]);
    return 0;
  }
  Matrix(argv[1], profiles);
  Pairs(std::string(argv[1]) + "/pairs.toml", profiles);
  Pairs(std::string(argv[1]) + "/validation.toml", profiles);
  Pairs(std::string(argv[1]) + "/holdout.toml", profiles);
  Tuned(argv[1], profiles);
  return 0;
}
