// SPDX-License-Identifier: Apache-2.0
// SEEN  2.1 million blocks: starting them alone takes 100 % of the time (want < 30 %)
// DO    Use 256 threads per block, or a grid-stride loop with 1056 blocks.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "diagnose/tool_kit.h"
#include "diagnose/tools/registry.h"

namespace kernelpro::diagnose {
namespace {

std::optional<Finding> Examine(const ToolInput& in) {
  const double grid = GridSize(in.kernel);
  const double seconds = RunSeconds(in.kernel);
  if (in.hardware.cta_launches_per_s <= 0 || seconds <= 0) {
    return std::nullopt;
  }
  const double share = std::min(1.0, grid / (in.hardware.cta_launches_per_s * seconds));
  Finding f;
  f.severity = Ramp(share, 0.4, 0.9);
  if (f.severity <= 0) {
    return std::nullopt;
  }
  const double sms = std::max<double>(1, in.hardware.sm_count);
  const double factor = std::clamp(grid / (sms * 8 * 8), 2.0, 8.0);  // leaves about 8 waves of 8
  const double busiest = MaxUse(Normalised(in.use, in.hardware));
  f.bound = std::max(0.0, std::min(1 - 1 / factor, 1 - std::max(busiest, share / factor)));
  f.confidence = 0.85;
  const double threads = BlockSize(in.kernel);
  f.seen = fmt::format(
      "{} blocks of {:.0f} threads in {:.1f} us: starting them alone takes {} of "
      "the time (want < 30 %).",
      Quantity(grid), threads, in.kernel.time_us, Percent(share));
  f.why =
      "The GPU starts a limited number of blocks per second, and each of these does too "
      "little to pay for its start.";
  f.remedies = {
      threads < 128
          ? std::string("Use 256 threads per block (a block start then serves eight times the "
                        "threads), with several elements a thread.")
          : fmt::format("Give each thread {:.0f} times the work: float4 accesses, or a grid-stride "
                        "loop launched with {:.0f} blocks.",
                        factor, 8 * sms),
      "Handle several rows or tiles per block.", "Keep the blocks resident and loop over tiles."};
  f.check = fmt::format(
      "metric {} should move {:.0f} -> about {:.0f}; correctness risk: loop "
      "bounds.",
      metric::kGridSize, grid, grid / factor);
  f.avoid = "Do not raise occupancy: the multiprocessors wait for blocks, not for warps.";
  f.evidence = {{"start_share", share}, {"grid", grid}, {"factor", factor}};
  return f;
}

}  // namespace

std::unique_ptr<Tool> MakeParCtaRate() {
  return MakeTool({.id = "par.cta_rate",
                   .title = "Block start rate is the limit",
                   .classes = {},
                   .metrics = {metric::kGridSize},
                   .examine = &Examine});
}

}  // namespace kernelpro::diagnose
