// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernelpro/tool.h"

/// The three forms of an upper bound (docs/tools.md, "Bounds"). Every bound is a fraction of the
/// kernel's time that could disappear at most; speed-up = 1 / (1 - bound).
namespace kernelpro::diagnose {

/// clamp((x - a) / (b - a), 0, 1)
[[nodiscard]] double Ramp(double x, double a, double b);

/// A share of the work on each resource.
struct Shares {
  double dram = 0, l2 = 0, l1 = 0, lsu = 0, tensor = 0, fma = 0, alu = 0, fp64 = 0, xu = 0,
         issue = 0;
};

/// Utilisations against what a resource sustains in practice: DRAM by the achievable bandwidth,
/// the tensor pipe by 0.80 of its peak (power limited). Unknown ones are 0, capped at 1.
[[nodiscard]] Shares Normalised(const Utilisation& use, const Hardware& hardware);

/// The largest normalised utilisation, instruction issue excepted.
[[nodiscard]] double MaxUse(const Shares& use);

/// max(0, min(max_r w_r, 1 - max_q (1 - w_q) u_q)): the work that a defect adds vanishes on all
/// resources that it touches at once, everything else overlaps perfectly.
[[nodiscard]] double Cut(const Shares& use, const Shares& removed);

/// 1 - the largest utilisation that a rewrite leaves: DRAM, L2, and the arithmetic pipes.
[[nodiscard]] double RewriteFloor(const Shares& use);

/// min(s, 1 - I, 1 - U): a stall reason with share s of the warp latency goes away.
[[nodiscard]] double StallGain(const Shares& use, double share);

/// min(1 - o0/o1, 1 - I, 1 - U): more warps hide more latency.
[[nodiscard]] double OccupancyGain(const Shares& use, double now, double then);

}  // namespace kernelpro::diagnose
