// SPDX-License-Identifier: Apache-2.0
#include "profile/collect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "kernelpro/profile.h"
#include "profile/evidence.h"
#include "profile/launch_figures.h"
#include "profile/metric_names.h"
#include "profile/metric_sets.h"
#include "profile/ncu_csv.h"
#include "profile/ncu_run.h"
#include "profile/nvidia_tool.h"

namespace kernelpro {
namespace {

using metric_sets::Arch;
using metric_sets::How;
using metric_sets::Pack;

/// Kernels with less of the time than this do not decide what is asked next.
constexpr double kMinorShare = 0.1;
constexpr double kAlike = 0.1;

std::string NamesOf(const std::vector<Pack>& packs) {
  std::vector<std::string_view> names;
  names.reserve(packs.size());
  for (const Pack pack : packs) {
    names.push_back(metric_sets::Name(pack));
  }
  return fmt::format("{}", fmt::join(names, "+"));
}

/// "a", "a and b", "a, b and c"
std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

std::uint32_t CapabilityIn(const Profile& profile) {
  for (const KernelProfile& kernel : profile.kernels) {
    const auto major = kernel.Value("device__attribute_compute_capability_major");
    const auto minor = kernel.Value("device__attribute_compute_capability_minor");
    if (major && minor && *major >= 1 && *major < 100 && *minor >= 0 && *minor < 10) {
      return static_cast<std::uint32_t>(*major * 10 + *minor);
    }
  }
  return 0;
}

/// The counters of one program, in one run or two.
class Counters {
 public:
  Counters(const CollectOptions& options, const Profile& known, const std::stop_token& stop,
           std::vector<CollectPass>& passes)
      : options_(options), known_(known), stop_(stop), passes_(passes), request_(options.run) {}

  Result<Profile> Read() {
    if (request_.ncu.empty()) {
      const NvidiaTool tool = FindNvidiaTool("ncu", options_.toolkit);
      if (!tool.found()) {
        return Fail(ErrorCode::kNotFound, NotFoundMessage("ncu", tool));
      }
      request_.ncu = tool.path;
    }
    if (options_.depth == CollectOptions::Depth::kEverything && options_.compute_capability != 0) {
      return Everything();
    }
    const bool last = options_.depth == CollectOptions::Depth::kFirst;
    KP_ASSIGN_OR_RETURN(Profile first, RunSampled({Pack::kFirst}, last && options_.sampling));
    if (last) {
      return first;
    }
    const std::vector<Pack> packs = options_.depth == CollectOptions::Depth::kEverything
                                        ? WithoutFirst(metric_sets::EveryPack())
                                        : Next(first);
    Result<Profile> second = RunSampled(packs, options_.sampling);
    if (!second) {
      if (second.error().code == ErrorCode::kCancelled) {
        return second;
      }
      first.notes.push_back(
          fmt::format("The second run, which asks closer ({}), failed: {}. Only the figures of the "
                      "first run are there.",
                      NamesOf(packs), second.error().message));
      return first;
    }
    return Join(std::move(first), std::move(second).value());
  }

 private:
  [[nodiscard]] Arch ArchFor(const Profile* first) const {
    const std::uint32_t capability = options_.compute_capability != 0 ? options_.compute_capability
                                     : first != nullptr               ? CapabilityIn(*first)
                                                                      : 0;
    return capability == 0 ? Arch::kSm90 : metric_sets::ArchOf(capability);
  }

  static std::vector<Pack> WithoutFirst(std::vector<Pack> packs) {
    std::erase(packs, Pack::kFirst);
    std::erase(packs, Pack::kSampling);
    return packs;
  }

  Result<Profile> Everything() {
    std::vector<Pack> packs = metric_sets::EveryPack();
    std::erase(packs, Pack::kSampling);
    return RunSampled(packs, options_.sampling);
  }

  /// What to ask about all kernels that matter, with what the disassembly says of them.
  [[nodiscard]] std::vector<Pack> Next(const Profile& first) const {
    const Profile both = MergeEvidence({first, known_});
    std::vector<Pack> packs;
    for (std::size_t i = 0; i < first.kernels.size(); ++i) {  // the first source's come first
      if (i > 0 && first.kernels[i].time_share < kMinorShare) {
        continue;
      }
      const KernelProfile& kernel = both.kernels[i];
      for (const Pack pack :
           options_.choose ? options_.choose(kernel) : metric_sets::PacksAfter(kernel)) {
        if (std::ranges::find(packs, pack) == packs.end()) {
          packs.push_back(pack);
        }
      }
    }
    return WithoutFirst(std::move(packs));
  }

  /// With sampling if that works, else without, which a note then says.
  Result<Profile> RunSampled(std::vector<Pack> packs, bool sampling) {
    if (packs.empty() && !sampling) {
      return Profile();
    }
    std::vector<Pack> with = packs;
    if (sampling) {
      with.push_back(Pack::kSampling);
    }
    Result<Profile> read = Run(with, sampling);
    const bool retry =
        !read && sampling && !packs.empty() &&
        (read.error().code == ErrorCode::kToolFailed || read.error().code == ErrorCode::kParse);
    if (!retry) {
      return read;
    }
    const std::string why = read.error().message;
    read = Run(packs, false);
    if (read) {
      read->notes.push_back(
          fmt::format("Program counters were not sampled ({}): stalls are known for whole kernels "
                      "only, and no instruction is named.",
                      why));
    }
    return read;
  }

  Result<Profile> Run(const std::vector<Pack>& packs, bool source_page) {
    request_.metrics = Metrics(packs, arch_.value_or(ArchFor(nullptr)));
    request_.source_page = source_page;
    Result<NcuRun> run = RunNcu(request_, stop_);
    CollectPass pass;
    pass.packs = NamesOf(packs);
    if (!run) {
      pass.error = run.error().message;
      passes_.push_back(std::move(pass));
      return std::move(run).error();
    }
    pass.wall = run->wall;
    pass.command = run->command;
    passes_.push_back(std::move(pass));
    Profile merged = MergeLaunches(run->profile);
    if (!arch_) {
      arch_ = ArchFor(&merged);
    }
    return merged;
  }

  static Profile Join(Profile first, Profile second) {
    std::vector<std::string> unlike;
    for (const KernelProfile& kernel : first.kernels) {
      for (const KernelProfile& again : second.kernels) {
        if (kernel.mangled == again.mangled && kernel.time_us > 0 && again.time_us > 0 &&
            std::abs(kernel.time_us - again.time_us) > kAlike * kernel.time_us) {
          unlike.push_back(fmt::format("\"{}\" took {:.1f} us and {:.1f} us", kernel.name,
                                       kernel.time_us, again.time_us));
        }
      }
    }
    second.source.clear();
    Profile joined = MergeEvidence({std::move(first), std::move(second)});
    joined.notes.emplace_back("The counters come from two runs of the program under ncu.");
    if (!unlike.empty()) {
      joined.notes.push_back(
          fmt::format("The two runs were not alike ({}): ratios of counters from both are rough.",
                      Listed(unlike)));
    }
    return joined;
  }

  const CollectOptions& options_;
  const Profile& known_;
  const std::stop_token& stop_;
  std::vector<CollectPass>& passes_;
  NcuRequest request_;
  std::optional<Arch> arch_;
};

/// What each tier gave, and why not.
class Collector {
 public:
  Collector(const CollectOptions& options, const std::stop_token& stop)
      : options_(options), stop_(stop) {}

  Result<Collection> Run() {
    KP_RETURN_IF_ERROR(ReadTiers(EvidenceTier::When::kBefore));
    if (options_.depth != CollectOptions::Depth::kNone) {
      KP_RETURN_IF_ERROR(ReadCounters());
    }
    KP_RETURN_IF_ERROR(ReadTiers(EvidenceTier::When::kAlways));
    if (!counters_) {
      KP_RETURN_IF_ERROR(ReadTiers(EvidenceTier::When::kInstead));
    }
    if (given_.empty()) {
      return first_error_ ? std::move(*first_error_)
                          : Fail(ErrorCode::kInvalidArgument,
                                 "no counters and no other evidence were asked for");
    }
    // The counters lead: kernels stand in their order, and their figures are the measured ones.
    std::vector<Profile> sources;
    if (counters_) {
      sources.push_back(std::move(*counters_));
    }
    std::ranges::move(evidence_, std::back_inserter(sources));
    collection_.profile = MergeEvidence(std::move(sources));
    if (options_.spec && AddLaunchFigures(*options_.spec, collection_.profile) > 0) {
      given_.emplace_back("the computed launch figures");
    }
    AddNotes();
    return std::move(collection_);
  }

 private:
  void Refuse(std::string_view what, Error error) {
    refused_.push_back(fmt::format("No {}{}: {}", what.starts_with("the ") ? "figures of " : "",
                                   what, Trim(error.message)));
    if (!first_error_) {
      first_error_ = std::move(error);
    }
  }

  Status ReadCounters() {
    const Profile known = MergeEvidence(evidence_);
    Counters counters(options_, known, stop_, collection_.passes);
    Result<Profile> read = counters.Read();
    if (read) {
      counters_ = std::move(read).value();
      given_.emplace(given_.begin(), "hardware counters");
    } else if (read.error().code == ErrorCode::kCancelled) {
      return std::move(read).error();
    } else {
      Refuse("hardware counters", std::move(read).error());
    }
    return Ok();
  }

  Status ReadTiers(EvidenceTier::When when) {
    for (const EvidenceTier& tier : options_.tiers) {
      if (tier.when != when) {
        continue;
      }
      Result<Profile> read = tier.read(stop_);
      if (read) {
        evidence_.push_back(std::move(read).value());
        given_.push_back(tier.name);
      } else if (read.error().code == ErrorCode::kCancelled) {
        return std::move(read).error();
      } else {
        Refuse(tier.name, std::move(read).error());
      }
    }
    return Ok();
  }

  void AddNotes() {
    for (const std::string& refused : refused_) {
      const bool sentence = refused.ends_with('.');
      collection_.profile.notes.push_back(fmt::format(
          "{}{} What is said rests on {} instead.", refused, sentence ? "" : ".", Listed(given_)));
    }
  }

  const CollectOptions& options_;
  const std::stop_token& stop_;
  Collection collection_;
  std::optional<Profile> counters_;
  std::vector<Profile> evidence_;
  std::vector<std::string> given_, refused_;
  std::optional<Error> first_error_;
};

}  // namespace

Result<Collection> CollectProfile(const CollectOptions& options, const std::stop_token& stop) {
  return Collector(options, stop).Run();
}

}  // namespace kernelpro
