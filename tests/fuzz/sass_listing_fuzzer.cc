// SPDX-License-Identifier: Apache-2.0
// Any bytes as a listing, and everything that is made of it. Beyond not crashing: addresses rise,
// percentages are in range, the hot loop lies in the function, a producer is one of its
// instructions.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "sass/listing.h"
#include "sass/slicing.h"
#include "sass/statistics.h"

using kernelpro::sass::Function;

namespace {

void Check(const Function& function) {
  for (std::size_t i = 1; i < function.instructions.size(); ++i) {
    KP_CHECK(function.instructions[i - 1].address < function.instructions[i].address);
  }
  const auto statistics = kernelpro::sass::Analyze(function);
  for (const auto& [name, metric] : statistics.metrics) {
    KP_CHECK(std::isfinite(metric.value) && metric.value >= 0) << name;
  }
  KP_CHECK(statistics.metrics.at("sass.unknown.pct").value <= 100);
  if (statistics.hot_loop) {
    KP_CHECK(statistics.hot_loop->first <= statistics.hot_loop->last);
  }
  const kernelpro::sass::Slicer slicer(function);
  for (std::size_t i = 0; i < function.instructions.size() && i < 8; ++i) {
    for (const std::string_view reason : {"long_scoreboard", "short_scoreboard", "wait", "gmma"}) {
      const auto producer = slicer.Find(function.instructions[i].address, reason);
      KP_CHECK(!producer || !producer->text.empty());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto listing = kernelpro::sass::ParseListing(text, "fuzz");
  if (!listing.ok()) {
    KP_CHECK(!listing.error().message.empty());
    return 0;
  }
  for (const Function& function : listing->functions) {
    Check(function);
  }
  return 0;
}
