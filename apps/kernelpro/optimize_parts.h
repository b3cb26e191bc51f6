// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "commands.h"
#include "model.h"
#include "propose/proposer.h"
#include "run_folder.h"
#include "search/policy.h"
#include "setup.h"
#include "store/run_store.h"

namespace kernelpro::app {

/// A recorded run, opened to be played again.
struct Recorded {
  std::filesystem::path folder;
  std::vector<store::NodeRecord> nodes;
  std::vector<store::ExchangeRecord> exchanges;
  std::string device;
};

struct Parts {
  Plan plan;
  std::unique_ptr<Bench> bench;
  std::unique_ptr<store::RunStore> store;
  std::optional<Recorded> recorded;
};

/// A run to make, to continue (--resume) or to make again (--proposer replay:RUN).
[[nodiscard]] Result<Parts> OpenParts(const OptimizeOptions& options);

/// The proposer of a plan, with what it needs to live.
struct Chosen {
  std::unique_ptr<ModelProposer> model;
  std::unique_ptr<Proposer> own;
  std::unique_ptr<search::Policy> policy;

  [[nodiscard]] Proposer& proposer() const { return model ? model->proposer() : *own; }
};

[[nodiscard]] Result<Chosen> Choose(const OptimizeOptions& options, Parts& parts,
                                    const Clock& clock);

/// How many wrong kernels in a row are mended.
[[nodiscard]] std::uint32_t RepairsOf(const Parts& parts);
/// How many kernels are written from the task alone before the search begins.
[[nodiscard]] std::uint32_t FirstChildrenOf(const Parts& parts);

}  // namespace kernelpro::app
