// SPDX-License-Identifier: Apache-2.0
// Validation pairs about atomics and about waiting for other blocks.
#include "pairs.h"

// Rows counted by group: an atomic of each row on 256 counters, or counters of the block.
KERNEL groupby__bad(const unsigned* __restrict__ key, int* __restrict__ count, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(count + (key[i] >> 24), 1);
  }
}

KERNEL groupby__good(const unsigned* __restrict__ key, int* __restrict__ count, int n) {
  __shared__ int mine[4][256];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
    mine[i / 256][i % 256] = 0;
  }
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&mine[threadIdx.x / 32 % 4][key[i] >> 24], 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) {
    atomicAdd(count + i, mine[0][i] + mine[1][i] + mine[2][i] + mine[3][i]);
  }
}

static void AddGroupBy() {
  const int n = 24 << 20, grid = pairs::kSms * 8;
  unsigned* key = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  int* count = suite::Buffer<int>(256, suite::Fill::kZero);
  pairs::Add(
      "groupby", [=] { groupby__bad<<<grid, 256>>>(key, count, n); },
      [=] { groupby__good<<<grid, 256>>>(key, count, n); }, count, 256, 0);
}

// Energy of Monte Carlo tracks deposited in 64 x 64 cells: a compare-and-swap loop on doubles
// written for an old device, or sums of the block and the instruction.
__device__ double AddByCas(double* to, double v) {
  unsigned long long* bits = reinterpret_cast<unsigned long long*>(to);
  unsigned long long old = *bits, expected;
  do {
    expected = old;
    old = atomicCAS(bits, expected, __double_as_longlong(v + __longlong_as_double(expected)));
  } while (old != expected);
  return __longlong_as_double(old);
}

KERNEL tally__bad(const unsigned* __restrict__ track, double* __restrict__ cell, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const unsigned t = track[i];
    AddByCas(cell + (t & 4095), 1e-3 * (t >> 20));
  }
}

KERNEL tally__good(const unsigned* __restrict__ track, double* __restrict__ cell, int n) {
  extern __shared__ double mine[];
  for (int i = threadIdx.x; i < 4096; i += blockDim.x) {
    mine[i] = 0;
  }
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const unsigned t = track[i];
    atomicAdd(mine + (t & 4095), 1e-3 * (t >> 20));
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 4096; i += blockDim.x) {
    atomicAdd(cell + i, mine[i]);
  }
}

static void AddTally() {
  const int n = 3 << 20, grid = pairs::kSms;
  unsigned* track = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  double* cell = suite::Buffer<double>(4096, suite::Fill::kZero);
  pairs::Add(
      "tally", [=] { tally__bad<<<grid, 1024>>>(track, cell, n); },
      [=] { tally__good<<<grid, 1024, 32768>>>(track, cell, n); }, cell, 4096, 1e-6);
}

// Sum of the orders of each customer, sorted by customer (128 in a row): an atomic an order, or
// one a warp after a segmented sum.
KERNEL orders__bad(const int* __restrict__ customer, const float* __restrict__ amount,
                   float* __restrict__ sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(sum + customer[i], amount[i]);
}

KERNEL orders__good(const int* __restrict__ customer, const float* __restrict__ amount,
                    float* __restrict__ sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const int own = customer[i];
  float s = amount[i];
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const float other = __shfl_down_sync(~0u, s, d);
    const int whose = __shfl_down_sync(~0u, own, d);
    s += lane + d < 32 && whose == own ? other : 0.0f;
  }
  const int before = __shfl_up_sync(~0u, own, 1);
  if (lane == 0 || before != own) {
    atomicAdd(sum + own, s);
  }
}

static void AddOrders() {
  const int n = 32 << 20, customers = n / 128;
  std::vector<int> customer(n);
  for (int i = 0; i < n; ++i) {
    customer[i] = std::min(customers - 1, (i + 37) / 128);
  }
  const int* d_customer = pairs::Upload(customer);
  float *amount = suite::Buffer<float>(n), *sum = suite::Buffer<float>(customers);
  pairs::Add(
      "orders", [=] { orders__bad<<<n / 256, 256>>>(d_customer, amount, sum); },
      [=] { orders__good<<<n / 256, 256>>>(d_customer, amount, sum); }, sum, customers);
}

// Running total over blocks, each waiting for the flag of the one before: by sleeping 10 us
// between looks, or by looking all the time. All blocks are resident.
template <bool kSleep>
__device__ void Chain(const float* __restrict__ x, float* out, volatile int* flag, int epoch) {
  __shared__ float part[8];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = fabsf(x[i]);
  const float w = pairs::WarpSum(v);
  if (threadIdx.x % 32 == 0) {
    part[threadIdx.x / 32] = w;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float s = 0;
    for (int k = 0; k < 8; ++k) {
      s += part[k];
    }
    if (blockIdx.x > 0) {
      while (flag[blockIdx.x - 1] != epoch) {
        if (kSleep) {
          __nanosleep(10000);
        }
      }
      __threadfence();
      s += *reinterpret_cast<volatile float*>(out + blockIdx.x - 1);
    }
    *reinterpret_cast<volatile float*>(out + blockIdx.x) = s;
    __threadfence();
    flag[blockIdx.x] = epoch;
  }
}

KERNEL chain__bad(const float* x, float* out, int* flag, int epoch) {
  Chain<true>(x, out, flag, epoch);
}

KERNEL chain__good(const float* x, float* out, int* flag, int epoch) {
  Chain<false>(x, out, flag, epoch);
}

static void AddChain() {
  const int blocks = pairs::kSms * 2, n = blocks * 256;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(blocks, suite::Fill::kZero);
  int* flag = suite::Buffer<int>(blocks, suite::Fill::kZero);
  static int epoch = 0;
  pairs::Add(
      "chain", [=] { chain__bad<<<blocks, 256>>>(x, out, flag, ++epoch); },
      [=] { chain__good<<<blocks, 256>>>(x, out, flag, ++epoch); }, out, blocks);
}

// Sensor log of 32 readings a thread: a system-wide fence after each, as if the host read along,
// or one at the end.
KERNEL sensorlog__bad(const float* __restrict__ x, float* log, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float level = x[i];
  for (int k = 0; k < 32; ++k) {
    level = 0.9f * level + 0.1f * k;
    log[size_t(k) * n + i] = level;
    __threadfence_system();
  }
}

KERNEL sensorlog__good(const float* __restrict__ x, float* log, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float level = x[i];
  for (int k = 0; k < 32; ++k) {
    level = 0.9f * level + 0.1f * k;
    log[size_t(k) * n + i] = level;
  }
  __threadfence_system();
}

static void AddSensorLog() {
  const int n = 1 << 20;
  float *x = suite::Buffer<float>(n), *log = suite::Buffer<float>(n * 32, suite::Fill::kZero);
  pairs::Add(
      "sensorlog", [=] { sensorlog__bad<<<n / 128, 128>>>(x, log, n); },
      [=] { sensorlog__good<<<n / 128, 128>>>(x, log, n); }, log, n * 32);
}

int main(int argc, char** argv) {
  AddGroupBy();
  AddTally();
  AddOrders();
  AddChain();
  AddSensorLog();
  return pairs::Main(argc, argv);
}
