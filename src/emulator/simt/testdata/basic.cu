// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

// Kernels whose results a CPU loop repeats exactly.
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void matmul_naive(const float* a, const float* b, float* c, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = fmaf(a[y * n + k], b[k * n + x], sum);
  c[y * n + x] = sum;
}

extern "C" __global__ void matmul_tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][16], bs[16][16];
  int x = blockIdx.x * 16 + threadIdx.x;
  int y = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    as[threadIdx.y][threadIdx.x] = a[y * n + t + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + x];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum = fmaf(as[threadIdx.y][k], bs[k][threadIdx.x], sum);
    __syncthreads();
  }
  c[y * n + x] = sum;
}

// Sums blocks of 256 with a shared-memory tree and a warp-synchronous tail.
extern "C" __global__ void block_sum(const int* in, int* out, int n) {
  __shared__ int s[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  s[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 128; d >= 32; d >>= 1) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    int v = s[threadIdx.x];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) out[blockIdx.x] = v;
  }
}

// The tail works in shared memory, with __syncwarp between steps.
extern "C" __global__ void block_sum_syncwarp(const int* in, int* out) {
  __shared__ volatile int s[64];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    for (int d = 32; d > 0; d >>= 1) {
      int v = s[t + (t + d < 64 ? d : 0)];
      __syncwarp();
      if (t < d) s[t] = s[t] + v;
      __syncwarp();
    }
    if (t == 0) out[blockIdx.x] = s[0];
  }
}

extern "C" __global__ void softmax_rows(const float* in, float* out, int columns) {
  extern __shared__ float row[];
  __shared__ float total, largest;
  const float* src = in + blockIdx.x * columns;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) row[c] = src[c];
  __syncthreads();
  if (threadIdx.x == 0) {
    float m = row[0];
    for (int c = 1; c < columns; ++c) m = fmaxf(m, row[c]);
    largest = m;
    float s = 0;
    for (int c = 0; c < columns; ++c) s += row[c] - m;
    total = s;
  }
  __syncthreads();
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    out[blockIdx.x * columns + c] = (row[c] - largest) + total;
  }
}

// A spin lock taken by every thread, also by threads of one warp.
extern "C" __global__ void spin_lock(int* lock, int* value) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      int v = *(volatile int*)value;
      *(volatile int*)value = v + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

extern "C" __global__ void spin_lock_tight(int* lock, int* value) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *(volatile int*)value = *(volatile int*)value + 1;
  __threadfence();
  atomicExch(lock, 0);
}

// Blocks wait for the block after them.
extern "C" __global__ void chain(int* flags) {
  if (threadIdx.x == 0) {
    if (blockIdx.x + 1 < gridDim.x) {
      while (*(volatile int*)&flags[blockIdx.x + 1] == 0) {
      }
    }
    flags[blockIdx.x] = flags[(blockIdx.x + 1) % gridDim.x] + 1;
  }
}

extern "C" __global__ void collatz(const int* in, int* steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = in[i], s = 0;
  while (v != 1) {
    v = (v & 1) ? 3 * v + 1 : v / 2;
    ++s;
  }
  steps[i] = s;
}

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern "C" __global__ void recursion(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

__device__ __noinline__ float2 rotate(float2 v, const float* table) {
  return make_float2(v.y * table[0], -v.x * table[1]);
}

extern "C" __global__ void call_struct(const float2* in, const float* table, float2* out) {
  int i = threadIdx.x;
  float2 r = in[i];
  if (i % 3 != 0) r = rotate(r, table);
  out[i] = r;
}

extern "C" __global__ void switch_cases(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = in[i];
  switch (v) {
    case 0: v = 17; break;
    case 1: v = v * 3 + n; break;
    case 2: v = out[i] + 5; break;
    case 3: v = 1 << (n & 15); break;
    case 4: v = n / 3; break;
    case 5: v = -n; break;
    case 6: v = n * n; break;
    default: v = 99;
  }
  out[i] = v;
}

// Dynamically indexed: the compiler cannot keep it in registers.
extern "C" __global__ void local_array(const int* in, int* out, int n) {
  int a[16];
  int i = threadIdx.x;
  for (int k = 0; k < 16; ++k) a[k] = in[i * 16 + k];
  int s = 0;
  for (int k = 0; k < n; ++k) {
    int j = (i + k * 7) & 15;
    s += a[j] * (k + 1);
    a[(j + 3) & 15] = s;
  }
  out[i] = s;
}

__constant__ int kTable[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int counter = 40;
__device__ const int* pointer_to_counter = &counter;

extern "C" __global__ void module_variables(int* out) {
  out[threadIdx.x] = kTable[threadIdx.x & 7] + *pointer_to_counter;
  if (threadIdx.x == 0) counter = 41;
}

struct Big {
  int n;
  float values[6];
  double scale;
};

extern "C" __global__ void by_value(Big big, double* out) {
  int i = threadIdx.x;
  out[i] = big.values[i % big.n] * big.scale;
}

extern "C" __global__ void widths(const signed char* c8, const unsigned short* u16, const float4* f4,
                                  const double2* d2, long long* out) {
  int i = threadIdx.x;
  float4 f = f4[i];
  double2 d = d2[i];
  out[i] = (long long)c8[i] * 1000 + u16[i] + (long long)(f.x + f.y + f.z + f.w) +
           (long long)(d.x - d.y);
}

extern "C" __global__ void store_widths(signed char* c8, short* s16, float4* f4, int v) {
  int i = threadIdx.x;
  c8[i] = (signed char)(v + i);
  s16[i] = (short)(v - i);
  f4[i] = make_float4(i, v, i + v, i - v);
}

extern "C" __global__ void printing(int n) {
  if (threadIdx.x < 2) {
    printf("thread %d of %s: %5.2f %x %lld %c%%\n", threadIdx.x, "block", 1.5 * n, 255,
           (long long)n * 1000000000LL, 'z');
  }
}
