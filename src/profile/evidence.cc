// SPDX-License-Identifier: Apache-2.0
#include "profile/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernelpro/profile.h"
#include "profile/kernel_name.h"
#include "profile/merge_kernel.h"

namespace kernelpro {
namespace {

/// A kernel's names as one source has them.
struct Named {
  std::string mangled;
  KernelNameParts parts;

  explicit Named(const KernelProfile& kernel)
      : mangled(kernel.mangled),
        parts(PartsOfKernelName(kernel.name.empty() ? kernel.mangled : kernel.name)) {
    if (mangled.starts_with("_Z")) {
      if (parts.templated.find('<') == std::string::npos) {
        // Some readers leave arguments out of the name: only a function without any is known.
        parts.templated = PartsOfKernelName(mangled).templated;
      }
    } else if (mangled.find('(') != std::string::npos) {
      parts.templated = PartsOfKernelName(mangled).templated;  // a signature, less often cut
    } else if (parts.templated.find('<') == std::string::npos) {
      parts.templated.clear();  // a bare function name: there may have been arguments
    }
  }

  /// For a message.
  [[nodiscard]] const std::string& Text() const {
    return parts.templated.empty() ? mangled : parts.templated;
  }

  [[nodiscard]] bool SameFunction(const Named& other) const {
    if (parts.function.empty() || parts.function != other.parts.function) {
      return false;
    }
    // Some outputs leave name spaces out.
    return parts.qualified == other.parts.qualified || parts.qualified == parts.function ||
           other.parts.qualified == other.parts.function;
  }

  /// Both spell their arguments out, and differently.
  [[nodiscard]] bool Twin(const Named& other) const {
    return !parts.templated.empty() && !other.parts.templated.empty() &&
           parts.templated != other.parts.templated && SameFunction(other);
  }
};

/// The kernels of one source by all their names. Launches of one kernel stand side by side.
class Index {
 public:
  using Places = std::vector<std::size_t>;

  void Add(const Named& name, std::size_t place) {
    const auto [kernel, is_new] = kernels_.try_emplace(
        name.mangled + '\n' + name.parts.templated + '\n' + name.parts.qualified, name);
    kernel->second.places.push_back(place);
    if (is_new && !name.parts.function.empty()) {
      by_function_[name.parts.function].push_back(&kernel->second);
    }
    if (!name.mangled.empty()) {
      by_mangled_[name.mangled].push_back(place);
    }
    if (is_new && !name.parts.templated.empty()) {
      by_instance_[name.parts.templated].push_back(&kernel->second);
    }
  }

  /// These places go by another source's mangled name too.
  void Alias(const Named& name, const Places& places) {
    if (!name.mangled.empty() && !places.empty()) {
      by_mangled_.try_emplace(name.mangled, places);
    }
  }

  [[nodiscard]] Places Mangled(const Named& name) const {
    const auto found = by_mangled_.find(name.mangled);
    return found == by_mangled_.end() ? Places() : found->second;
  }

  /// Nothing when it is not there, or overloads are.
  [[nodiscard]] Places Instance(const Named& name) const {
    const auto found = by_instance_.find(name.parts.templated);
    return found == by_instance_.end() || found->second.size() != 1 ? Places()
                                                                    : found->second[0]->places;
  }

  /// The launches of the one kernel of this function; nothing when there is none, or another.
  [[nodiscard]] Places OnlyOne(const Named& name) const {
    const auto found = by_function_.find(name.parts.function);
    if (found == by_function_.end()) {
      return {};
    }
    const Kernel* only = nullptr;
    for (const Kernel* kernel : found->second) {
      if (kernel->name.SameFunction(name)) {
        if (only != nullptr || kernel->name.Twin(name)) {
          return {};
        }
        only = kernel;
      }
    }
    return only == nullptr ? Places() : only->places;
  }

  [[nodiscard]] bool Has(const Named& name) const {
    return by_function_.contains(name.parts.function);
  }

  /// The source's kernel when it has just one; else null.
  [[nodiscard]] const Named* Single() const {
    return kernels_.size() == 1 ? &kernels_.begin()->second.name : nullptr;
  }

  [[nodiscard]] const Places& PlacesOfSingle() const { return kernels_.begin()->second.places; }

 private:
  struct Kernel {
    explicit Kernel(Named its_name) : name(std::move(its_name)) {}

    Named name;
    Places places;
  };

  std::unordered_map<std::string, Kernel> kernels_;  // its elements keep their addresses
  std::unordered_map<std::string, std::vector<const Kernel*>> by_function_, by_instance_;
  std::unordered_map<std::string, Places> by_mangled_;
};

class Merger {
 public:
  explicit Merger(Profile first) : merged_(std::move(first)) {
    for (std::size_t i = 0; i < merged_.kernels.size(); ++i) {
      ours_.Add(Named(merged_.kernels[i]), i);
    }
  }

  void Add(Profile source) {
    std::vector<Named> names;
    names.reserve(source.kernels.size());
    Index theirs;
    for (std::size_t i = 0; i < source.kernels.size(); ++i) {
      names.emplace_back(source.kernels[i]);
      theirs.Add(names.back(), i);
    }
    std::vector<std::string> keys;
    keys.reserve(names.size());
    std::unordered_map<std::string, Join> joins;
    for (std::size_t i = 0; i < names.size(); ++i) {
      keys.push_back(names[i].mangled + '\n' + source.kernels[i].name);
      const auto [join, is_new] = joins.try_emplace(keys.back());
      ++join->second.launches;
      if (is_new) {
        join->second.places = PlacesOf(names[i], theirs, source.source);
      }
    }
    // A trace sees the whole run; what was profiled is a part of it.
    const bool whole_run = merged_.timeline.empty() && !source.timeline.empty();
    std::vector<std::size_t> alone;
    for (std::size_t i = 0; i < names.size(); ++i) {
      Join& join = joins.at(keys[i]);
      if (join.places.empty()) {
        alone.push_back(i);
        continue;
      }
      ours_.Alias(names[i], join.places);
      if (whole_run && source.kernels[i].time_us > 0) {
        SetShare(source.kernels[i].time_share, join);
      }
      JoinKernel(std::move(source.kernels[i]), join, source.source);
    }
    for (const std::size_t i : alone) {
      ours_.Add(names[i], merged_.kernels.size());
      merged_.kernels.push_back(std::move(source.kernels[i]));
    }
    MergeRest(std::move(source));
  }

  Profile Take() {
    // Beside kernels with a time, one that was only read about took no known share.
    if (std::ranges::any_of(merged_.kernels, [](const auto& k) { return k.time_us > 0; })) {
      for (KernelProfile& kernel : merged_.kernels) {
        kernel.time_share = kernel.time_us > 0 ? kernel.time_share : 0;
      }
    } else {
      for (KernelProfile& kernel : merged_.kernels) {
        kernel.time_share = 1;  // nothing ran: each is worth a look
      }
    }
    std::set<std::string> seen;
    std::erase_if(merged_.notes,
                  [&](const std::string& note) { return !seen.insert(note).second; });
    return std::move(merged_);
  }

 private:
  struct Join {
    Index::Places places;
    std::size_t launches = 0;  ///< of this kernel in the source that is being added
    std::size_t turn = 0;      ///< how many of them are done
  };

  /// Shared out to the launches, of which those of a source that has several come one by one.
  void SetShare(double share, const Join& join) {
    if (join.launches == 1) {
      for (const std::size_t place : join.places) {
        merged_.kernels[place].time_share = share / static_cast<double>(join.places.size());
      }
    } else if (join.turn < join.places.size()) {
      merged_.kernels[join.places[join.turn]].time_share = share;
    }
  }

  /// One entry holds for all launches of its kernel; several go to their counterparts in order.
  void JoinKernel(KernelProfile&& from, Join& join, const std::string& source) {
    if (join.launches == 1) {
      for (const std::size_t place : join.places) {
        MergeKernel(KernelProfile(from), merged_.kernels[place]);
      }
      return;
    }
    const std::size_t turn = join.turn++;
    if (turn == 0 && join.launches != join.places.size() && merged_.notes.size() < kMostNotes) {
      merged_.notes.push_back(fmt::format(
          "\"{}\" stands {} times in {} and {} times before: they were put together in order, and "
          "what has no counterpart was left out.",
          from.name, join.launches, source, join.places.size()));
    }
    if (turn < join.places.size()) {
      MergeKernel(std::move(from), merged_.kernels[join.places[turn]]);
    }
  }

  /// Entries that are this kernel; several when it was launched often.
  Index::Places PlacesOf(const Named& name, const Index& theirs, const std::string& source) {
    if (Index::Places places = ours_.Mangled(name); !places.empty()) {
      return places;
    }
    if (Index::Places places = ours_.Instance(name);
        !places.empty() && !theirs.Instance(name).empty()) {
      return places;
    }
    if (!theirs.OnlyOne(name).empty()) {
      if (Index::Places places = ours_.OnlyOne(name); !places.empty()) {
        return places;
      }
    }
    const Named* const our_single = ours_.Single();
    if (our_single != nullptr && theirs.Single() != nullptr && !name.Twin(*our_single)) {
      merged_.notes.push_back(fmt::format(
          "\"{}\" ({}) and \"{}\" ({}) were taken for one kernel: each is the only one of its "
          "source. If they are not, leave one source out.",
          our_single->parts.qualified, merged_.source, name.parts.qualified, source));
      return ours_.PlacesOfSingle();
    }
    if (ours_.Has(name) && merged_.notes.size() < kMostNotes) {
      merged_.notes.push_back(fmt::format(
          "\"{}\" ({}) was not joined with a kernel of that name: there are several, or they have "
          "other template arguments.",
          name.Text(), source));
    }
    return {};
  }

  void MergeRest(Profile&& source) {
    const bool emulated = merged_.device.starts_with("emulator");
    if (merged_.device.empty() ||
        (emulated && !source.device.empty() && !source.device.starts_with("emulator"))) {
      merged_.device = std::move(source.device);
    }
    if (!source.source.empty()) {
      merged_.source += (merged_.source.empty() ? "" : " + ") + source.source;
    }
    MergeMetrics(std::move(source.task), merged_.task);
    MergeMetrics(std::move(source.system), merged_.system);
    if (!merged_.timeline.empty() && !source.timeline.empty()) {
      merged_.notes.push_back(
          fmt::format("The timeline of {} was left out: there was one already.", source.source));
    }
    if (merged_.timeline.empty()) {
      merged_.timeline = std::move(source.timeline);
    }
    merged_.notes.insert(merged_.notes.end(), std::make_move_iterator(source.notes.begin()),
                         std::make_move_iterator(source.notes.end()));
  }

  static constexpr std::size_t kMostNotes = 100;

  Profile merged_;
  Index ours_;
};

}  // namespace

Profile MergeEvidence(std::vector<Profile> sources) {
  if (sources.empty()) {
    return {};
  }
  Merger merger(std::move(sources.front()));
  for (std::size_t i = 1; i < sources.size(); ++i) {
    merger.Add(std::move(sources[i]));
  }
  return merger.Take();
}

}  // namespace kernelpro
