// SPDX-License-Identifier: Apache-2.0
// Holdout pairs about atomics, locks and waiting for other blocks.
#include "pairs.h"

// Label propagation: an atomic maximum an edge, or only where a plain read shows that it would
// change something.
KERNEL components__bad(const unsigned* __restrict__ edge, unsigned* label, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const unsigned e = edge[i];
    atomicMax(label + (e & 0x3fff), e >> 14);
  }
}

KERNEL components__good(const unsigned* __restrict__ edge, unsigned* label, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const unsigned e = edge[i];
    if (label[e & 0x3fff] < e >> 14) {
      atomicMax(label + (e & 0x3fff), e >> 14);
    }
  }
}

static void AddComponents() {
  const int n = 64 << 20, grid = pairs::kSms * 8;
  unsigned* edge = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  unsigned* label = suite::Buffer<unsigned>(1 << 14, suite::Fill::kZero);
  pairs::Add(
      "components", [=] { components__bad<<<grid, 256>>>(edge, label, n); },
      [=] { components__good<<<grid, 256>>>(edge, label, n); }, label, 1 << 14, 0);
}

// Charge of sorted particles deposited in two cells each, 32 particles a thread: two atomics a
// particle, or two whenever the cell changes.
KERNEL deposit__bad(const int* __restrict__ cell, const float* __restrict__ at,
                    float* __restrict__ charge, int threads) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 8
  for (int k = 0; k < 32; ++k) {
    const int c = cell[k * threads + t];
    const float w = fabsf(at[k * threads + t]);
    atomicAdd(charge + c, 1.0f - w);
    atomicAdd(charge + c + 1, w);
  }
}

KERNEL deposit__good(const int* __restrict__ cell, const float* __restrict__ at,
                     float* __restrict__ charge, int threads) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int own = cell[t];
  float left = 0, right = 0;
#pragma unroll 8
  for (int k = 0; k < 32; ++k) {
    const int c = cell[k * threads + t];
    const float w = fabsf(at[k * threads + t]);
    if (c != own) {
      atomicAdd(charge + own, left);
      atomicAdd(charge + own + 1, right);
      own = c;
      left = right = 0;
    }
    left += 1.0f - w;
    right += w;
  }
  atomicAdd(charge + own, left);
  atomicAdd(charge + own + 1, right);
}

static void AddDeposit() {
  const int threads = 1 << 20, n = threads * 32, cells = 1 << 17;
  std::vector<int> cell(n);
  for (int t = 0; t < threads; ++t) {
    for (int k = 0; k < 32; ++k) {
      cell[k * threads + t] = (t * 32 + k) / (n / cells) * 7919 % cells;
    }
  }
  const int* d_cell = pairs::Upload(cell);
  float *at = suite::Buffer<float>(n),
        *charge = suite::Buffer<float>(cells + 1, suite::Fill::kZero);
  pairs::Add(
      "deposit", [=] { deposit__bad<<<threads / 256, 256>>>(d_cell, at, charge, threads); },
      [=] { deposit__good<<<threads / 256, 256>>>(d_cell, at, charge, threads); }, charge, cells);
}

// The next frontier of a breadth-first search: room for a vertex's edges is taken from a counter
// thread by thread, or warp by warp.
KERNEL frontier__bad(const unsigned* __restrict__ vertex, unsigned* __restrict__ queue,
                     unsigned* counter, unsigned capacity) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned degree = vertex[i] >> 30;
  unsigned at = atomicAdd(counter, degree);
  for (unsigned k = 0; k < degree; ++k) {
    queue[(at + k) % capacity] = i + k;
  }
}

KERNEL frontier__good(const unsigned* __restrict__ vertex, unsigned* __restrict__ queue,
                      unsigned* counter, unsigned capacity) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const unsigned degree = vertex[i] >> 30;
  unsigned sum = degree;
  for (int d = 1; d < 32; d *= 2) {
    const unsigned below = __shfl_up_sync(~0u, sum, d);
    sum += lane >= d ? below : 0;
  }
  unsigned at = 0;
  if (lane == 31) {
    at = atomicAdd(counter, sum);
  }
  at = __shfl_sync(~0u, at, 31) + sum - degree;
  for (unsigned k = 0; k < degree; ++k) {
    queue[(at + k) % capacity] = i + k;
  }
}

static void AddFrontier() {
  const int n = 4 << 20;
  const unsigned capacity = 8u << 20;
  unsigned* vertex = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  unsigned* queue = suite::Buffer<unsigned>(capacity, suite::Fill::kZero);
  unsigned* counter = suite::Buffer<unsigned>(4, suite::Fill::kZero);
  pairs::Add(
      "frontier", [=] { frontier__bad<<<n / 256, 256>>>(vertex, queue, counter, capacity); },
      [=] { frontier__good<<<n / 256, 256>>>(vertex, queue, counter, capacity); }, counter, 1, 0);
}

// Bookings on 16 Ki accounts: under a lock an account, or by an atomic addition.
KERNEL ledger__bad(const unsigned* __restrict__ booking, int* lock, volatile int* balance, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned b = booking[i], account = b & 0x3fff;
  bool done = false;
  while (!done) {
    if (atomicCAS(lock + account, 0, 1) == 0) {
      __threadfence();
      balance[account] = balance[account] + static_cast<int>(b >> 24);
      __threadfence();
      atomicExch(lock + account, 0);
      done = true;
    }
  }
}

KERNEL ledger__good(const unsigned* __restrict__ booking, int* balance, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned b = booking[i];
  atomicAdd(balance + (b & 0x3fff), static_cast<int>(b >> 24));
}

static void AddLedger() {
  const int n = 1 << 19;
  unsigned* booking = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  int* lock = suite::Buffer<int>(1 << 14, suite::Fill::kZero);
  int* balance = suite::Buffer<int>(1 << 14, suite::Fill::kZero);
  pairs::Add(
      "ledger", [=] { ledger__bad<<<n / 256, 256>>>(booking, lock, balance, n); },
      [=] { ledger__good<<<n / 256, 256>>>(booking, balance, n); }, balance, 1 << 14, 0);
}

// A wavefront of an alignment: block b may fill its part of a step when block b - 1 has; it sleeps
// 5 us between looks, or looks all the time. All blocks are resident.
template <bool kSleep>
__device__ void Wavefront(const float* __restrict__ score, float* out, volatile int* done,
                          int epoch, int steps) {
  const int b = blockIdx.x, t = threadIdx.x;
  float best = 0;
  for (int s = 0; s < steps; ++s) {
    if (b > 0 && t == 0) {
      while (done[b - 1] < epoch * steps + s + 1) {
        if (kSleep) {
          __nanosleep(5000);
        }
      }
      __threadfence();
    }
    __syncthreads();
    const float above = b > 0 ? *reinterpret_cast<volatile float*>(out + (b - 1) * 128 + t) : 0.0f;
    best = fmaxf(best * 0.9f + score[(s * gridDim.x + b) * 128 + t], 0.0f);
    if (s == steps - 1) {
      out[b * 128 + t] = fmaxf(best, b > 0 ? 0.5f * above : 0.0f);
    }
    __threadfence();
    __syncthreads();
    if (t == 0) {
      done[b] = epoch * steps + s + 1;
    }
  }
}

KERNEL wavefront__bad(const float* score, float* out, int* done, int epoch, int steps) {
  Wavefront<true>(score, out, done, epoch, steps);
}

KERNEL wavefront__good(const float* score, float* out, int* done, int epoch, int steps) {
  Wavefront<false>(score, out, done, epoch, steps);
}

static void AddWavefront() {
  const int blocks = pairs::kSms, steps = 48, n = blocks * 128;
  float* score = suite::Buffer<float>(size_t(n) * steps);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  int* done = suite::Buffer<int>(blocks, suite::Fill::kZero);
  static int epoch = 0;
  pairs::Add(
      "wavefront", [=] { wavefront__bad<<<blocks, 128>>>(score, out, done, ++epoch, steps); },
      [=] { wavefront__good<<<blocks, 128>>>(score, out, done, ++epoch, steps); }, out, n);
}

// A vote of 4 Mi threads for one of 64 candidates with a system-wide atomic (as if the host counted
// along), each followed by a fence, or a device-wide count of the block first.
KERNEL ballot__bad(const unsigned* __restrict__ vote, unsigned* __restrict__ count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd_system(count + (vote[i] >> 26), 1u);
  __threadfence_system();
}

KERNEL ballot__good(const unsigned* __restrict__ vote, unsigned* __restrict__ count) {
  __shared__ unsigned mine[64];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 64) {
    mine[threadIdx.x] = 0;
  }
  __syncthreads();
  atomicAdd(mine + (vote[i] >> 26), 1u);
  __syncthreads();
  if (threadIdx.x < 64) {
    atomicAdd(count + threadIdx.x, mine[threadIdx.x]);
  }
}

static void AddBallot() {
  const int n = 4 << 20;
  unsigned* vote = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  unsigned* count = suite::Buffer<unsigned>(64, suite::Fill::kZero);
  pairs::Add(
      "ballot", [=] { ballot__bad<<<n / 1024, 1024>>>(vote, count); },
      [=] { ballot__good<<<n / 1024, 1024>>>(vote, count); }, count, 64, 0);
}

int main(int argc, char** argv) {
  AddComponents();
  AddDeposit();
  AddFrontier();
  AddLedger();
  AddWavefront();
  AddBallot();
  return pairs::Main(argc, argv);
}
