// SPDX-License-Identifier: Apache-2.0
#include "diagnose/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "diagnose/bounds.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"
#include "profile/metric_names.h"

namespace kernelpro::diagnose {
namespace {

/// A kernel below this share of the call is not judged by the whole task's needs.
constexpr double kDominantShare = 0.6;
constexpr double kLeastSamples = 200;  ///< fewer samples of a kernel say nothing

/// The hardware's count, or that of the instrumented instructions.
double Either(const KernelProfile& kernel, std::string_view first, std::string_view second) {
  const auto value = kernel.Value(first);
  return value ? *value : Get(kernel, second);
}

/// Names of one direction's figures; the second ones come from the instrumented pass.
struct AccessNames {
  std::string_view requests, instructions, sectors, counted_sectors, bytes_per_sector;
};

constexpr AccessNames kLoadNames = {metric::kLoadRequests, metric::kGlobalLoads,
                                    metric::kLoadSectors, metric::kLoadSectorsCounted,
                                    metric::kLoadBytesPerSector};
constexpr AccessNames kStoreNames = {metric::kStoreRequests, metric::kGlobalStores,
                                     metric::kStoreSectors, metric::kStoreSectorsCounted,
                                     metric::kStoreBytesPerSector};

Access AccessOf(const KernelProfile& kernel, const AccessNames& names) {
  const std::string_view bytes_per_sector = names.bytes_per_sector;
  // The ratio is of instrumented instructions; the hardware's counts also hold asynchronous copies.
  const bool counted = kernel.Value(names.instructions) && kernel.Value(names.counted_sectors);
  return {.requests = counted ? Get(kernel, names.instructions)
                              : Either(kernel, names.requests, names.instructions),
          .sectors = counted ? Get(kernel, names.counted_sectors)
                             : Either(kernel, names.sectors, names.counted_sectors),
          .bytes_per_sector = std::clamp(kernel.Value(bytes_per_sector).value_or(32.0), 0.0, 32.0)};
}

/// The least cycles of the L1 data stage: one a request, and one for each 128 bytes asked for.
double IdealWavefronts(const Access& access) {
  const double sectors = access.sectors * access.bytes_per_sector / 32;
  return std::max(access.requests, sectors / 4);
}

}  // namespace

double Get(const KernelProfile& kernel, std::string_view metric) {
  return kernel.Value(metric).value_or(0);
}

double Access::IdealSectorsPerRequest() const {
  const double per_request = requests > 0 ? sectors / requests : 0;
  return std::max(1.0, per_request * bytes_per_sector / 32);
}

double Access::Waste() const {
  if (requests <= 0 || sectors <= 0) {
    return std::max(0.0, 1 - bytes_per_sector / 32);
  }
  return std::clamp(1 - IdealSectorsPerRequest() * requests / sectors, 0.0, 1.0);
}

double Get(const LineMetrics& line, std::string_view metric) {
  const auto found = line.metrics.find(std::string(metric));
  return found == line.metrics.end() ? 0 : found->second.value;
}

Access Loads(const KernelProfile& kernel) {
  return AccessOf(kernel, kLoadNames);
}

Access Stores(const KernelProfile& kernel) {
  return AccessOf(kernel, kStoreNames);
}

ScatterShares Scatter(const ToolInput& input) {
  const KernelProfile& kernel = input.kernel;
  const Access load = Loads(kernel);
  const Access store = Stores(kernel);
  ScatterShares result;
  const double sectors = load.sectors + store.sectors;
  if (sectors <= 0) {
    return result;
  }
  result.l2 = (load.sectors * load.Waste() + store.sectors * store.Waste()) / sectors;
  const Wavefronts wavefronts = WavefrontsOf(kernel);
  const double global = wavefronts.all - wavefronts.shared;
  result.l1 = result.l2;
  if (global > 0) {
    result.l1 = std::max(0.0, 1 - (IdealWavefronts(load) + IdealWavefronts(store)) / global);
    // Shares are of all work on the resource, shared memory included.
    result.l1 *= global / wavefronts.all;
  }
  const double bytes = DramBytes(kernel);
  const std::optional<double> needed = TaskFigure(input, "compulsory_bytes");
  if (needed && bytes > 0) {
    result.dram = std::max(0.0, 1 - *needed / bytes);
  } else if (const auto l1_hit = kernel.Value(metric::kL1HitPct); l1_hit) {
    const double l2_hit = Get(kernel, metric::kL2HitPct) / 100;
    result.dram = result.l2 * (1 - *l1_hit / 100) * (1 - l2_hit);
    // Bytes that nobody asked for even once.
    const double asked =
        load.sectors * load.bytes_per_sector + store.sectors * store.bytes_per_sector;
    result.dram = std::max(result.dram, bytes > 0 ? 1 - asked / bytes : 0.0);
  }
  return result;
}

Wavefronts WavefrontsOf(const KernelProfile& kernel) {
  Wavefronts w;
  w.shared =
      Get(kernel, metric::kSharedLoadWavefronts) + Get(kernel, metric::kSharedStoreWavefronts);
  w.conflicts =
      Get(kernel, metric::kSharedLoadConflicts) + Get(kernel, metric::kSharedStoreConflicts);
  w.all = std::max(w.shared, Get(kernel, metric::kL1Wavefronts));
  return w;
}

double ThreadInstructions(const KernelProfile& kernel) {
  return Either(kernel, metric::kThreadInstructionsOn, metric::kThreadInstructionsCounted);
}

double DramBytes(const KernelProfile& kernel) {
  return Get(kernel, metric::kDramRead) + Get(kernel, metric::kDramWrite);
}

std::optional<double> Waves(const KernelProfile& kernel, const Hardware& hardware) {
  double blocks = 0;
  for (const std::string_view limit :
       {metric::kLimitRegisters, metric::kLimitShared, metric::kLimitWarps, metric::kLimitBlocks}) {
    if (const auto fits = kernel.Value(limit); fits && *fits > 0) {
      blocks = blocks > 0 ? std::min(blocks, *fits) : *fits;
    }
  }
  if (blocks > 0 && hardware.sm_count > 0 && kernel.Value(metric::kLimitRegisters)) {
    return GridSize(kernel) / (blocks * hardware.sm_count);
  }
  return kernel.Value(metric::kWaves);
}

double GridSize(const KernelProfile& kernel) {
  return double{1} * kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
}

double BlockSize(const KernelProfile& kernel) {
  return double{1} * kernel.block[0] * kernel.block[1] * kernel.block[2];
}

bool HasShape(const KernelProfile& kernel) {
  return GridSize(kernel) * BlockSize(kernel) > 1 || kernel.Value(metric::kGridSize) ||
         kernel.Value(metric::kBlockSize);
}

double RunSeconds(const KernelProfile& kernel) {
  const double overhead = Get(kernel, metric::kModelLaunchOverheadPct) / 100;
  return kernel.time_us * 1e-6 * (1 - std::clamp(overhead, 0.0, 1.0));
}

std::optional<double> TaskFigure(const ToolInput& input, const std::string& name) {
  const auto found = input.profile.task.find(name);
  if (found == input.profile.task.end() || input.kernel.time_share < kDominantShare) {
    return std::nullopt;
  }
  return found->second.value;
}

std::optional<double> StallShare(const KernelProfile& kernel, std::string_view metric) {
  const std::optional<double> stall = kernel.Value(metric);
  const std::optional<double> latency = kernel.Value(metric::kWarpLatency);
  if (!stall || !latency || *latency <= 0) {
    return std::nullopt;
  }
  return std::clamp(*stall / *latency, 0.0, 1.0);
}

std::optional<double> StallShareOf(const KernelProfile& kernel, std::string_view reason) {
  const auto counted = StallShare(
      kernel, fmt::format("smsp__average_warps_issue_stalled_{}_per_issue_active.ratio", reason));
  if (counted) {
    return counted;
  }
  double all = 0;
  double of_reason = 0;
  for (const HotSpot& spot : kernel.hot_spots) {
    for (const auto& [name, samples] : spot.stalls) {
      all += samples;
      of_reason += name == reason ? samples : 0;
    }
  }
  return all >= kLeastSamples ? std::optional(of_reason / all) : std::nullopt;
}

std::optional<double> MultiplyAddShare(const ToolInput& input) {
  const auto ffma = input.kernel.Value(metric::kFfma);
  const double capacity = input.hardware.fp32_flops_per_s / 2 * RunSeconds(input.kernel);
  return ffma && capacity > 0 ? std::optional(std::min(1.0, *ffma / capacity)) : std::nullopt;
}

double Ceiling(std::string_view id, const ToolInput& input) {
  // What these change is not "everything but the useful work"; they have bounds of their own.
  constexpr std::array<std::string_view, 19> kOwn = {
      "par.small_grid",    "par.tail",        "mem.dram_roof",   "mem.excess",
      "mem.l2_reuse",      "mem.aperture",    "mem.l1_reuse",    "smem.pressure",
      "cmp.tensor_absent", "cmp.tensor_slow", "cmp.tensor_feed", "cmp.wgmma_serial",
      "cmp.fp64",          "cmp.nonfused",    "cmp.setmaxnreg",  "cmp.regbank",
      "lat.not_selected",  "nrg.instruction", "par.block_size"};
  const Shares use = Normalised(input.use, input.hardware);
  if (std::ranges::find(kOwn, id) != kOwn.end() || id.starts_with("sys.") ||
      id.starts_with("bld.") || id.starts_with("nrg.") || !input.use.dram) {
    return 0;
  }
  double dram = use.dram;
  if (id.starts_with("mem.coalesce") || id == "mem.redundant") {
    dram *= 1 - Scatter(input).dram;
  } else if (id == "mem.spill" || id == "mem.local_array") {
    const double local = LocalSectors(input.kernel);
    const double all = local + Loads(input.kernel).sectors + Stores(input.kernel).sectors;
    dram *= all > 0 ? 1 - local / all : 1;
  }
  // Indices are computed on the FMA pipe too: only real multiply-adds stay.
  const double fma = MultiplyAddShare(input).value_or(use.fma);
  return std::max(0.0, 1 - std::max({dram, fma, use.fp64, use.tensor}));
}

double LocalSectors(const KernelProfile& kernel) {
  if (kernel.Value(metric::kLocalLoadSectors) || kernel.Value(metric::kLocalStoreSectors)) {
    return Get(kernel, metric::kLocalLoadSectors) + Get(kernel, metric::kLocalStoreSectors);
  }
  return Get(kernel, metric::kLocalLoadSectorsCounted) +
         Get(kernel, metric::kLocalStoreSectorsCounted);
}

double IssueActive(const ToolInput& input) {
  return std::clamp(input.kernel.Value(metric::kIssueActive).value_or(input.use.issue.value_or(0)),
                    0.0, 1.0);
}

double Membership(const std::vector<ClassMembership>& classes, std::string_view id) {
  double most = 0;
  for (const ClassMembership& c : classes) {
    const std::string_view name = std::string_view(c.id).substr(0, c.id.find('('));
    if (name == id || c.id == id) {
      most = std::max(most, c.membership);
    }
  }
  return most;
}

const HotSpot* WorstSpot(const KernelProfile& kernel, std::string_view reason) {
  const HotSpot* worst = nullptr;
  double most = 0;
  for (const HotSpot& spot : kernel.hot_spots) {
    const auto found = spot.stalls.find(std::string(reason));
    if (found != spot.stalls.end() && found->second > most) {
      most = found->second;
      worst = &spot;
    }
  }
  return worst;
}

std::string RootCause(const KernelProfile& kernel, std::string_view reason, Finding& finding) {
  const HotSpot* spot = WorstSpot(kernel, reason);
  if (spot == nullptr || spot->producer.empty()) {
    return {};
  }
  const auto place = [](const std::string& file, std::uint32_t line, std::uint64_t address) {
    return line != 0 ? fmt::format("{}:{}", std::filesystem::path(file).filename().string(), line)
                     : fmt::format("offset 0x{:x}", address);
  };
  finding.file = spot->producer_line != 0 ? spot->producer_file : spot->file;
  finding.line = spot->producer_line != 0 ? spot->producer_line : spot->line;
  return fmt::format(" The wait is at `{}` ({}) for `{}` ({}), {} instruction{} before.",
                     Printable(spot->instruction, 80), place(spot->file, spot->line, spot->address),
                     Printable(spot->producer, 80),
                     place(spot->producer_file, spot->producer_line, spot->producer_address),
                     spot->distance, spot->distance == 1 ? "" : "s");
}

void SetWhere(Finding& finding, const LineMetrics* line) {
  if (line != nullptr) {
    finding.file = line->file;
    finding.line = line->line;
  }
}

std::string Place(const LineMetrics* line) {
  if (line == nullptr) {
    return "this kernel";
  }
  return fmt::format("{}:{}", std::filesystem::path(line->file).filename().string(), line->line);
}

std::string Percent(double fraction) {
  const double percent = 100 * fraction;
  return percent > 0 && percent < 9.95 ? fmt::format("{:.1f} %", percent)
                                       : fmt::format("{:.0f} %", percent);
}

std::string Quantity(double count) {
  if (count >= 1e9) {
    return fmt::format("{:.1f} billion", count / 1e9);
  }
  if (count >= 1e6) {
    return fmt::format("{:.1f} million", count / 1e6);
  }
  return fmt::format("{:.0f}", count);
}

std::string ByteText(double bytes) {
  constexpr std::array<std::pair<double, std::string_view>, 3> kUnits = {
      {{1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}}};
  for (const auto& [factor, unit] : kUnits) {
    if (bytes >= factor) {
      return fmt::format("{:.1f} {}", bytes / factor, unit);
    }
  }
  return fmt::format("{:.0f} bytes", bytes);
}

}  // namespace kernelpro::diagnose
