// SPDX-License-Identifier: Apache-2.0
#include "profile/sass_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/file.h"
#include "profile/demangle.h"
#include "sass/cubin.h"
#include "sass/cubin_histogram.h"
#include "sass/slicing.h"

namespace kernelpro {
namespace {

constexpr std::uint64_t kLargestFile = 1ULL << 30U;
constexpr std::size_t kMostNamesInNote = 5;

KernelProfile NewKernel(std::string_view mangled, std::string_view arch) {
  KernelProfile kernel;
  kernel.mangled = std::string(mangled);
  kernel.name = KernelName(mangled);
  kernel.texts["opcodes"] = "static";
  if (!arch.empty()) {
    kernel.texts["build.arch"] = std::string(arch);
  }
  kernel.missing = {"gpu__time_duration.sum"};
  return kernel;
}

/// What all kernels agree on.
void SetSystem(Profile* profile) {
  std::set<std::string> archs;
  for (const KernelProfile& kernel : profile->kernels) {
    const auto arch = kernel.texts.find("build.arch");
    archs.insert(arch == kernel.texts.end() ? "" : arch->second);
  }
  if (archs.size() == 1 && archs.begin()->starts_with("sm_")) {
    sass::Function probe;
    probe.arch = *archs.begin();
    profile->system["build.arch"] = {static_cast<double>(probe.Architecture()), "",
                                     Provenance::kCounted};
    // Listings may leave the letter out, so that none says nothing where there could be one.
    if (probe.arch.back() == 'a' || probe.Architecture() < 90) {
      profile->system["build.accelerated"] = {probe.arch.back() == 'a' ? 1.0 : 0.0, "",
                                              Provenance::kCounted};
    }
  } else if (archs.size() > 1) {
    profile->notes.push_back(fmt::format("The file holds code for {} architectures ({}).",
                                         archs.size(), fmt::join(archs, ", ")));
  }
}

Profile FromListing(const sass::Listing& listing, std::string_view label) {
  Profile profile;
  profile.source = std::string(label);
  for (const sass::Function& function : listing.functions) {
    KernelProfile kernel = NewKernel(function.name, function.arch);
    AddSass(function, &kernel);
    profile.kernels.push_back(std::move(kernel));
  }
  SetSystem(&profile);
  profile.notes.emplace_back("Read from a listing of machine code: nothing was run or measured.");
  return profile;
}

Profile FromBinary(const sass::GpuCode& code, std::string_view label) {
  Profile profile;
  profile.source = std::string(label);
  bool lineinfo = true, debug = false;
  for (const sass::Cubin& cubin : code.cubins) {
    lineinfo = lineinfo && cubin.lineinfo;
    debug = debug || cubin.debug;
    sass::Function probe;
    probe.arch = cubin.arch;
    const bool entries = std::ranges::any_of(cubin.functions, &sass::CubinFunction::entry);
    for (const sass::CubinFunction& function : cubin.functions) {
      if (entries && !function.entry) {
        continue;  // A device function of its own: called, not launched.
      }
      KernelProfile kernel = NewKernel(function.name, cubin.arch);
      sass::Histogram histogram = sass::HistogramOf(function.code, probe.Architecture());
      kernel.metrics = std::move(histogram.metrics);
      kernel.opcodes = std::move(histogram.opcodes);
      if (function.registers) {
        kernel.metrics["ptxas.registers"] = {static_cast<double>(*function.registers), "register",
                                             Provenance::kCounted};
      }
      profile.kernels.push_back(std::move(kernel));
    }
  }
  SetSystem(&profile);
  if (profile.system.contains("build.arch") &&
      std::ranges::all_of(code.cubins, &sass::Cubin::exact)) {
    const bool accelerated = code.cubins.front().arch.back() == 'a';
    profile.system["build.accelerated"] = {accelerated ? 1.0 : 0.0, "", Provenance::kCounted};
  }
  profile.system["build.lineinfo"] = {lineinfo ? 1.0 : 0.0, "", Provenance::kCounted};
  profile.system["build.debug"] = {debug ? 1.0 : 0.0, "", Provenance::kCounted};
  profile.notes.emplace_back(
      "Counted from the encoding without a disassembler: no loops, no operands. For these give the "
      "output of `cuobjdump -sass` or `nvdisasm -json`.");
  if (!code.compressed.empty()) {
    const std::size_t shown = std::min(code.compressed.size(), kMostNamesInNote);
    profile.notes.push_back(
        fmt::format("{} compressed binaries were not read: {}{}.", code.compressed.size(),
                    fmt::join(code.compressed.begin(),
                              code.compressed.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                    shown < code.compressed.size() ? ", ..." : ""));
  }
  return profile;
}

/// The reason with the most samples; issuing and waiting for one's turn are no stalls.
std::string_view LargestStall(const HotSpot& spot) {
  std::string_view largest;
  double most = 0;
  for (const auto& [reason, samples] : spot.stalls) {
    if (samples > most && reason.find("selected") == std::string::npos) {
      largest = reason;
      most = samples;
    }
  }
  return largest;
}

void Describe(const sass::Function& function, HotSpot* spot) {
  const auto at = std::ranges::lower_bound(function.instructions, spot->address, {},
                                           &sass::Instruction::address);
  if (at == function.instructions.end() || at->address != spot->address) {
    return;
  }
  if (spot->instruction.empty()) {
    spot->instruction = at->Text();
  }
  if (spot->line == 0) {
    spot->file = function.FileOf(*at);
    spot->line = at->line;
  }
}

}  // namespace

void AddSass(const sass::Function& function, KernelProfile* kernel,
             const sass::Executed* executed) {
  sass::Statistics statistics = sass::Analyze(function, executed);
  kernel->metrics.merge(statistics.metrics);
  if (!kernel->hot_loop) {
    kernel->hot_loop = std::move(statistics.hot_loop);
  }
  if (kernel->opcodes.empty()) {
    kernel->opcodes = std::move(statistics.opcodes);
    kernel->texts["opcodes"] = "static";
  }
  if (!function.arch.empty()) {
    kernel->texts.try_emplace("build.arch", function.arch);
  }
}

void AttributeStalls(KernelProfile& kernel, const sass::Function& function) {
  if (kernel.hot_spots.empty()) {
    return;
  }
  const sass::Slicer slicer(function);
  for (HotSpot& spot : kernel.hot_spots) {
    Describe(function, &spot);
    if (!spot.producer.empty()) {
      continue;
    }
    if (auto producer = slicer.Find(spot.address, LargestStall(spot))) {
      spot.producer = std::move(producer->text);
      spot.producer_address = producer->address;
      spot.producer_file = std::move(producer->file);
      spot.producer_line = producer->line;
      spot.distance = producer->distance;
    }
  }
}

Result<Profile> ParseSass(std::string_view bytes, std::string_view label) {
  const auto raw = std::as_bytes(std::span(bytes));
  if (sass::LooksLikeBinary(raw)) {
    KP_ASSIGN_OR_RETURN(const sass::GpuCode code, sass::ReadGpuCode(raw, label));
    return FromBinary(code, label);
  }
  KP_ASSIGN_OR_RETURN(const sass::Listing listing, sass::ParseListing(bytes, label));
  return FromListing(listing, label);
}

Result<Profile> ReadSass(const std::filesystem::path& path) {
  KP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kLargestFile));
  return ParseSass(bytes, path.string());
}

}  // namespace kernelpro
