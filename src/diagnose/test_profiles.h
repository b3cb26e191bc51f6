// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "diagnose/diagnose.h"
#include "diagnose/h200_data.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "profile/metric_names.h"

/// Hand-made profiles for tests: what an emulated kernel would show, one flaw at a time.
namespace kernelpro::testing {

class ProfileBuilder {
 public:
  /// 4096 blocks of 256 threads, 100 us; full warps, coalesced 16-byte loads and stores, half of
  /// DRAM, nothing else busy.
  ProfileBuilder() {
    kernel_.name = "kernel";
    kernel_.grid[0] = 4096;
    kernel_.block[0] = 256;
    kernel_.time_us = 100;
    kernel_.time_provenance = Provenance::kModelled;
    Set(metric::kLoadRequests, 25e4).Set(metric::kLoadSectors, 4e6);
    Set(metric::kStoreRequests, 25e4).Set(metric::kStoreSectors, 4e6);
    Set(metric::kLoadBytesPerSector, 32).Set(metric::kStoreBytesPerSector, 32);
    Set(metric::kLoadHitSectors, 0).Set(metric::kLoadHitPct, 0).Set(metric::kL1HitPct, 0);
    Set(metric::kLoadBytes, 128e6).Set(metric::kStoreBytes, 128e6);
    Set(metric::kGlobalLoads, 25e4).Set(metric::kGlobalStores, 25e4);
    Set(metric::kMemory32b, 0).Set(metric::kMemory128b, 5e5);
    Set(metric::kDramRead, 100e6).Set(metric::kDramWrite, 100e6);
    Set(metric::kDramPct, 45).Set(metric::kL2Pct, 30).Set(metric::kL1Pct, 15);
    Set(metric::kLsuPct, 10).Set(metric::kFmaPct, 10).Set(metric::kAluPct, 10);
    Set(metric::kFp64Pct, 0).Set(metric::kXuPct, 0).Set(metric::kIssueActive, 0.2);
    Set(metric::kL1Wavefronts, 3e6).Set(metric::kL2HitPct, 50);
    Set(metric::kInstructions, 20e6).Set(metric::kThreadInstructionsOn, 640e6);
    Set(metric::kLanesActive, 32).Set(metric::kLanesOn, 32).Set(metric::kBranchesDivergent, 0);
    Set(metric::kWaves, 3.9).Set(metric::kWarpsActivePct, 95).Set(metric::kWarpsMaximumPct, 100);
    Set(metric::kLimitRegisters, 8).Set(metric::kLimitShared, 32);
    Set(metric::kLimitWarps, 8).Set(metric::kLimitBlocks, 32).Set(metric::kRegisters, 32);
    Set(metric::kSpillStores, 0).Set(metric::kSpillLoads, 0);
    Set(metric::kLocalLoads, 0).Set(metric::kLocalStores, 0);
    Set(metric::kSharedLoads, 0).Set(metric::kSharedStores, 0);
    Set(metric::kSharedLoadWavefronts, 0).Set(metric::kSharedStoreWavefronts, 0);
    Set(metric::kSharedLoadConflicts, 0).Set(metric::kSharedStoreConflicts, 0);
    Set(metric::kAtomRequests, 0).Set(metric::kRedRequests, 0).Set(metric::kBarriers, 0);
    Set(metric::kFadd, 32e6).Set(metric::kFmul, 0).Set(metric::kFfma, 32e6);
    Set(metric::kDadd, 0).Set(metric::kDmul, 0).Set(metric::kDfma, 0).Set(metric::kFp64, 0);
    Set(metric::kDoubleConversions, 0).Set(metric::kDoubleAccesses, 0);
    Set(metric::kInteger, 64e6).Set(metric::kBit, 0).Set(metric::kDivisions, 0);
    Set(metric::kMemoryThreads, 64e6).Set(metric::kModelLatencyPct, 30);
  }

  ProfileBuilder& Set(std::string_view name, double value) {
    kernel_.metrics[std::string(name)] = {value, "", Provenance::kCounted};
    return *this;
  }

  ProfileBuilder& Drop(std::string_view name) {
    kernel_.metrics.erase(std::string(name));
    kernel_.missing.emplace_back(name);
    return *this;
  }

  ProfileBuilder& Grid(std::uint32_t blocks, std::uint32_t threads) {
    kernel_.grid[0] = blocks;
    kernel_.block[0] = threads;
    return *this;
  }

  ProfileBuilder& Time(double us) {
    kernel_.time_us = us;
    return *this;
  }

  ProfileBuilder& Line(std::uint32_t line, std::string_view name, double value) {
    for (LineMetrics& known : kernel_.lines) {
      if (known.line == line) {
        known.metrics[std::string(name)] = {value, "", Provenance::kCounted};
        return *this;
      }
    }
    kernel_.lines.push_back(
        {"/src/k.cu", line, {{std::string(name), {value, "", Provenance::kCounted}}}});
    return *this;
  }

  ProfileBuilder& Task(const std::string& name, double value) {
    task_[name] = {value, "", Provenance::kCounted};
    return *this;
  }

  [[nodiscard]] kernelpro::Profile Profile() const {
    kernelpro::Profile profile;
    profile.device = "emulator:h200";
    profile.source = "emulation";
    profile.kernels = {kernel_};
    profile.task = task_;
    return profile;
  }

  [[nodiscard]] kernelpro::Diagnosis Diagnosis() const {
    return Diagnose(Profile(), H200Hardware());
  }

 private:
  KernelProfile kernel_;
  std::map<std::string, Metric> task_;
};

}  // namespace kernelpro::testing
