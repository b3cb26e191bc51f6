// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kernelpro {

/// A roofline class with its weight (reference: docs/tools.md, "Classes").
struct ClassMembership {
  std::string id;         ///< "DRAM_BOUND", "LATENCY_BOUND(memory)", ...
  double membership = 0;  ///< 0..1
  std::string evidence;   ///< "DRAM at 0.94 of what it can deliver"
};

/// What one expert tool has to say about one kernel. Text is complete sentences with figures and
/// units.
struct Finding {
  std::string id;     ///< "mem.coalesce_ld"
  std::string title;  ///< "Uncoalesced global loads"
  std::string kernel;
  double severity = 0;  ///< 0..1
  /// Fraction of the kernel's time that could go at most: what remains needs the rest (DRAM bytes,
  /// floating-point work). 0: no bound is known.
  double bound = 0;
  /// The tool's own, tighter figure, from the resources that the flaw loads or the waiting that it
  /// causes. Ranking goes by it; repairs may do better, because they often change more.
  double expected = 0;
  double confidence = 0.5;  ///< 0..1
  double time_share = 1;    ///< of the kernel in the whole call; ranking weighs by it
  std::string file;         ///< where, when known
  std::uint32_t line = 0;
  std::string seen;                   ///< 2-4 figures with their targets
  std::string why;                    ///< the mechanism, one sentence
  std::string action;                 ///< the first remedy, imperative
  std::vector<std::string> remedies;  ///< all, in order
  std::string check;                  ///< metric that should move, from what to what
  std::string avoid;  ///< the tempting wrong move, or when not to follow this advice
  std::map<std::string, double> evidence;  ///< the raw figures, for machines
  /// What its figures come from: "hardware counters", "disassembly", "compiler log", "activity
  /// trace", "launch figures", "emulation", "power meter"; several joined by ", ".
  std::string rests_on;
};

struct Suppressed {
  std::string id;
  std::string kernel;
  std::string by;  ///< finding or class
  std::string why;
};

/// A tool that the classes call for and whose metrics were not collected.
struct NotRun {
  std::string id;
  std::string kernel;
  std::vector<std::string> missing;
};

struct Diagnosis {
  std::vector<ClassMembership> classes;  ///< of the dominant kernel, largest first
  std::vector<Finding> findings;         ///< ranked; the first is the primary one
  std::vector<Suppressed> suppressed;
  std::vector<NotRun> not_run;
  std::vector<std::string> fine;  ///< what is good and should stay
  double floor_us = 0;            ///< 0 when the task's needs are unknown
};

}  // namespace kernelpro
