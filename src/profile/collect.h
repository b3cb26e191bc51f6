// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "emulator/model/model.h"
#include "kernelpro/profile.h"
#include "profile/metric_sets.h"
#include "profile/ncu_run.h"

namespace kernelpro {

/// A source of evidence other than the counters.
struct EvidenceTier {
  enum class When : std::uint8_t {
    kBefore,   ///< reads files: done before the counters, so that those can be chosen by it
    kAlways,   ///< runs something, whatever the counters gave
    kInstead,  ///< only where the counters gave nothing (emulation: modelled beside measured
               ///< misleads)
  };
  std::string name;  ///< "the disassembly"; ends up in sentences
  When when = When::kBefore;
  std::function<Result<Profile>(const std::stop_token&)> read;
};

struct CollectOptions {
  /// Program, kernel and how to run it; `metrics` and `source_page` are chosen here. An empty `ncu`
  /// is looked for (FindNvidiaTool).
  NcuRequest run;
  std::filesystem::path toolkit;  ///< may be empty

  enum class Depth : std::uint8_t {
    kNone,        ///< no counters: the other tiers only
    kFirst,       ///< one run, three passes: where the time goes
    kTargeted,    ///< and a second run that asks about what the first one showed
    kEverything,  ///< every counter in one run of the program
  };
  Depth depth = Depth::kTargeted;
  bool sampling = true;  ///< program counters, in the last run
  /// Of the GPU, times ten (90). 0: taken from the first run.
  std::uint32_t compute_capability = 0;
  /// What the second run asks for; unset: metric_sets::PacksAfter.
  std::function<std::vector<metric_sets::Pack>(const KernelProfile& first)> choose;
  std::vector<EvidenceTier> tiers;
  std::optional<model::GpuSpec> spec;  ///< of the GPU: launch figures are computed where missing
};

/// One run of the program under ncu.
struct CollectPass {
  std::string packs;  ///< "first", "memory+latency+sass+sampling"
  std::chrono::milliseconds wall{0};
  std::vector<std::string> command;
  std::string error;  ///< empty: it worked
};

struct Collection {
  Profile profile;
  std::vector<CollectPass> passes;
};

/// All evidence there is about the kernels of a program, as one Profile (MergeEvidence): counters
/// and samples by ncu, then the tiers in their order, then computed launch figures. What was
/// refused is a sentence in `profile.notes` that says what the diagnosis rests on instead; so is
/// which runs the counters come from. Counters of a later run never replace those of an earlier
/// one; where the two runs took times that differ by more than a tenth, a note warns of ratios
/// across them. Errors: kCancelled, or why the counters failed when no tier gave anything.
[[nodiscard]] Result<Collection> CollectProfile(const CollectOptions& options,
                                                const std::stop_token& stop);

}  // namespace kernelpro
