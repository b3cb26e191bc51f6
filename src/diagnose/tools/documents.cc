// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools/documents.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "kernelpro/tool.h"

namespace kernelpro::diagnose {
namespace {

struct Document {
  std::string_view id, looks_for, severity, bound, source, not_when, fires, silent;
  bool core = false;
};

constexpr std::string_view kNcu = "Nsight Compute's rules";
constexpr std::string_view kOwn = "own measurements on an H200 (docs/measurements)";
constexpr std::string_view kBoth = "Nsight Compute's rules; own measurements on an H200";
constexpr std::string_view kHeuristic = "heuristic, checked on an H200";

// clang-format off
constexpr std::array<Document, 27> kDocuments = {{
    {"mem.coalesce_ld", "global loads use only a part of each 32-byte sector",
     "w = 1 - bytes used per sector / 32: ramp(w; .15, .75) x ramp(share of L1 sectors; .05, .3)",
     "cut(l1, l2, dram), each with the share of its work that scatter adds", kBoth,
     "L1 hits above 90 % at low L1 load; random gathers", "o[i] = a[(i % n) * 32]", "o[i] = a[i], also as float4", true},
    {"mem.coalesce_st", "global stores fill only a part of each 32-byte sector",
     "ramp(w; .2, .75) x ramp(share; .05, .3)", "cut(l1, l2, dram)", kBoth,
     "output below 5 % of the traffic; scatter semantics", "o[i * 16] = x", "o[i] = x", true},
    {"mem.width", "consecutive addresses are accessed with 4 bytes a lane or less",
     "ramp(share of <= 4-byte instructions; .3, .9) x max(lsu, queue stalls, n.dram)",
     "cut(lsu, issue); below a full DRAM what DRAM leaves", kOwn,
     "rows that do not start on 16 bytes; registers at an occupancy step", "one bf16 a thread", "eight bf16 a thread", true},
    {"mem.l1_reuse", "threads request the same global data many times",
     "requested / unique bytes: ramp(log2; 2, 5) x ramp(L1, L2 or stalls; .3, .7)", "floor of the rewritten form", kOwn,
     "stencils that L1 serves well", "one output a thread, matrix product from global memory", "a 128 x 128 tile", true},
    {"mem.excess", "DRAM moves more than the task's compulsory bytes", "ramp(bytes / compulsory; 1.15, 2.5)",
     "cut(dram)", kHeuristic, "cold-cache profiles of small problems", "mean and variance in two passes", "one pass", true},
    {"mem.dram_roof", "DRAM delivers what it can", "ramp(n.dram; .6, .9)", "what the task's floor leaves", kNcu,
     "scattered or excess bytes are open", "a device copy", "a large matrix product", true},
    {"mem.inflight", "too few bytes are in flight for bandwidth x latency",
     "d = in flight / needed: ramp(1 - d; .2, .8)", "min(1 - d, 1 - U)", "Little's law; own measurements on an H200",
     "pointer chasing", "one 4-byte load a thread at 25 % occupancy", "unrolled by 8, float4", true},
    {"mem.atomics", "atomics meet on few addresses", "ramp(busiest L2 atomic unit; .3, .8)", "floor without the atomics", kOwn,
     "counters of a work queue", "atomicAdd(sum, x) in each thread", "block sums, one atomic a block", true},
    {"mem.spill", "registers spill to local memory", ".3 + by bytes; ramp(local share; .01, .2)", "cut(l1, l2, lsu)", kNcu,
     "spills outside of loops", "64 accumulators under __launch_bounds__(1024, 2)", "8 accumulators", true},
    {"mem.local_array", "an array with a run-time index lives in local memory", "max(.4, ramp(share; .005, .1))",
     "cut(l1, l2, lsu)", kNcu, "small arrays outside of loops", "t[(k * n + i) & 63]", "constant indices", true},
    {"smem.bank", "lanes of a warp meet in one bank of shared memory", "conflicts / shared wavefronts: ramp(w; .1, .6) x ramp(l1; .2, .6)",
     "cut(l1)", kBoth, "vector accesses, whose several wavefronts are no conflict", "a column of t[32][32]", "t[32][33]", true},
    {"smem.pressure", "shared memory is busy and feeds few multiply-adds", "multiply-adds per wavefront < 8: ramp(l1; .5, .85)",
     "floor of the rewritten form", kOwn, "bank conflicts explain it", "tiled product, one output a thread", "8 x 8 outputs a thread", true},
    {"par.small_grid", "fewer blocks than multiprocessors", "ramp(1 - grid / SMs; .1, .6)", "1 - grid / SMs", kNcu,
     "persistent kernels", "softmax over 16 rows, a block a row", "8192 rows", true},
    {"par.tail", "a nearly empty last wave of blocks", "1 <= W < 8: ramp(1 - W / ceil W; .05, .4)", "1 - W / ceil W", kNcu,
     "block durations vary strongly", "one block more than fits at once", "20 waves", true},
    {"par.block_size", "a block that is no multiple of 32, or too small", "lanes lost; below 64 threads and capped by blocks",
     "lanes lost; occ", kNcu, "warp roles need exact counts", "40 threads", "128 threads", false},
    {"par.cta_rate", "starting blocks takes a large part of the time", "tau = blocks / (start rate x T): ramp(tau; .4, .9)",
     "min(1 - 1/k, 1 - max(U, tau / k)), k <= 8", kOwn, "long blocks", "a copy with blocks of 32 threads", "a grid-stride loop", true},
    {"occ.registers", "registers are the tightest limit of occupancy and schedulers idle",
     "ramp(.6 - I; 0, .4) x ramp(1 - eligible; 0, .8) x ramp(.8 - occupancy; 0, .5)", "occ(now -> next)", kNcu,
     "good products run at 12 to 25 %", "200 registers, waiting for memory", "a tuned product", true},
    {"occ.smem", "shared memory is the tightest limit of occupancy and schedulers idle", "as occ.registers", "occ(now -> next)", kNcu,
     "deep pipelines by design", "100 KB of shared memory a block", "32 KB", true},
    {"occ.shape", "the block's shape is the tightest limit of occupancy and schedulers idle", "as occ.registers", "occ(now -> next)", kNcu,
     "warp roles", "blocks of 32 threads", "blocks of 256", true},
    {"lat.long_scoreboard", "warps wait for global or local memory", "ramp(stall; .3, .7)", "stall, at most 1 - n.dram", kNcu,
     "a flag that another block sets", "a linked list", "multiply-adds on registers", true},
    {"lat.barrier", "warps wait at barriers", "ramp(stall; .15, .45); without sampling, barriers per element", "stall; floor",
     kBoth, "a producer and consumer ring", "a tree reduction in 1024 threads", "shuffles", true},
    {"lat.ilp", "dependent instructions with little to overlap", "stall wait (or the model's latency) x ramp(1 - I; .1, .6)",
     "min(.75, 1 - I, 1 - U)", kHeuristic, "busy schedulers", "one accumulator at 4 warps", "4 accumulators", true},
    {"cmp.fp64", "doubles although the data is narrower", ".3 to .8 by their share; else ramp(fp64; .15, .6)", "cut(fp64, xu, ...)", kNcu,
     "double precision is the task", "a[i] * 0.5 + 1.0 / 3.0", "0.5f", true},
    {"cmp.sfu", "the special-function pipe is busy", "ramp(xu; .35, .75)", "cut(xu: .5)", kOwn,
     "memory-bound kernels", "8 sinf an element", "ReLU", true},
    {"cmp.int", "index arithmetic takes the issue slots", "share: ramp(.35, .65) x max(I, alu)", "cut(issue, alu, fma)", kHeuristic,
     "integers are the work", "three divisions an element", "templated extents", true},
    {"cmp.divergence", "lanes are off on average", "1 - lanes / 32: ramp(.15, .6)", "w x max(I, fma, alu)", kNcu,
     "blocks at the edge only", "if (lane & 1) ... else ...", "a branch on blockIdx", true},
    {"cmp.nonfused", "multiplications and additions that could be one instruction", "min(fadd, fmul) / all: ramp(.05, .35) x ramp(fma; .3, .7)",
     "cut(fma)", kNcu, "bitwise reproducibility", "built with -fmad=false", "the default", true},
}};
// clang-format on

}  // namespace

ToolDocument DocumentOf(std::string_view id) {
  ToolDocument document;
  const auto* const found = std::ranges::find(kDocuments, id, &Document::id);
  if (found == kDocuments.end()) {
    return document;
  }
  document.looks_for = found->looks_for;
  document.severity = found->severity;
  document.bound = found->bound;
  document.source = found->source;
  document.not_when = found->not_when;
  document.fires = found->fires;
  document.silent = found->silent;
  document.core = found->core;
  document.origin = "built in (code)";
  return document;
}

}  // namespace kernelpro::diagnose
