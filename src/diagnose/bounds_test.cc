// SPDX-License-Identifier: Apache-2.0
#include "diagnose/bounds.h"

#include <gtest/gtest.h>

namespace kernelpro::diagnose {
namespace {

TEST(Bounds, RampIsClamped) {
  EXPECT_DOUBLE_EQ(Ramp(0.3, 0.2, 0.4), 0.5);
  EXPECT_DOUBLE_EQ(Ramp(0.1, 0.2, 0.4), 0);
  EXPECT_DOUBLE_EQ(Ramp(9, 0.2, 0.4), 1);
}

TEST(Bounds, CutScalesAllTouchedResourcesTogether) {
  const Shares use{.dram = 0.3, .l2 = 0.4, .l1 = 0.9};
  // L1 alone: L2 stays at 0.4.
  EXPECT_DOUBLE_EQ(Cut(use, {.l1 = 0.9}), 0.6);
  // L1 and L2 together: 0.09 and 0.1 stay, so DRAM at 0.3 does.
  EXPECT_DOUBLE_EQ(Cut(use, {.l2 = 0.75, .l1 = 0.9}), 0.7);
  // A share of 0.2 saves at most 0.2, however busy the resource: 1 - 0.8 * 0.9 = 0.28.
  EXPECT_DOUBLE_EQ(Cut(use, {.l1 = 0.2}), 0.2);
  EXPECT_DOUBLE_EQ(Cut(use, {}), 0);
  // Nothing to gain where an untouched resource is full.
  EXPECT_NEAR(Cut({.dram = 1.0, .l1 = 0.9}, {.l1 = 0.5}), 0, 1e-12);
}

TEST(Bounds, StallAndOccupancyAreLimitedByWhatIsBusy) {
  const Shares use{.dram = 0.5, .issue = 0.2};
  EXPECT_DOUBLE_EQ(StallGain(use, 0.3), 0.3);
  EXPECT_DOUBLE_EQ(StallGain(use, 0.9), 0.5);
  EXPECT_DOUBLE_EQ(OccupancyGain(use, 0.25, 0.375), 1 - 0.25 / 0.375);
  EXPECT_DOUBLE_EQ(OccupancyGain(use, 0.25, 1.0), 0.5);
  EXPECT_DOUBLE_EQ(OccupancyGain(use, 0.5, 0.5), 0);
}

TEST(Bounds, UtilisationIsNormalisedByWhatIsSustained) {
  Utilisation use;
  use.dram = 0.45;
  use.tensor = 0.4;
  Hardware hardware;
  EXPECT_DOUBLE_EQ(Normalised(use, hardware).dram, 0.5);
  EXPECT_DOUBLE_EQ(Normalised(use, hardware).tensor, 0.5);
  hardware.dram_bytes_per_s = 3e12;
  hardware.dram_peak_bytes_per_s = 4e12;
  EXPECT_DOUBLE_EQ(Normalised(use, hardware).dram, 0.6);
}

}  // namespace
}  // namespace kernelpro::diagnose
