// SPDX-License-Identifier: Apache-2.0
// Latency: what warps wait for.
#include "cases.h"

__global__ void make_ring(unsigned* next, unsigned mask) {
  // a full-period generator modulo a power of two visits every element once
  for (unsigned i = Tid(); i <= mask; i += Threads()) next[i] = (i * 1664525u + 1013904223u) & mask;
}
// --- lat.long_scoreboard: a linked list: each address is the value loaded before.
KERNEL lat_long_scoreboard__fires(const unsigned* __restrict__ next, unsigned* o, int steps, unsigned mask) {
  unsigned at = (Tid() * 2654435761u) & mask;
#pragma unroll 1
  for (int i = 0; i < steps; ++i) at = next[at];
  o[Tid()] = at;
}
KERNEL lat_long_scoreboard__silent(float* o, int steps) {
  float x = threadIdx.x, y = x + 1, z = x + 2, w = x + 3;
#pragma unroll 8
  for (int i = 0; i < steps; ++i) {
    x = fmaf(x, 0.999f, 0.5f);
    y = fmaf(y, 0.998f, 0.5f);
    z = fmaf(z, 0.997f, 0.5f);
    w = fmaf(w, 0.996f, 0.5f);
  }
  o[Tid()] = x + y + z + w;
}
// Gather whose value is used in the next instruction, few warps.
KERNEL lat_long_scoreboard__fires2(const unsigned* __restrict__ index, const float* __restrict__ a,
                                   float* __restrict__ o, int n, unsigned mask) {
  float s = 0;
#pragma unroll 1
  for (int i = Tid(); i < n; i += Threads()) s = s * 0.5f + a[index[i] & mask];
  o[Tid()] = s;
}

// --- lat.barrier: a tree with a barrier a step in blocks of 1024, one block an SM.
KERNEL __launch_bounds__(1024) lat_barrier__fires(const float* __restrict__ a, float* __restrict__ o, int tiles) {
  __shared__ float s[1024];
  const int t = threadIdx.x;
  for (int b = blockIdx.x; b < tiles; b += gridDim.x) {
    s[t] = a[b * 1024 + t];
    __syncthreads();
    for (int k = 512; k; k >>= 1) {
      if (t < k) s[t] += s[t + k];
      __syncthreads();
    }
    if (t == 0) o[b] = s[0];
    __syncthreads();
  }
}
// One warp reduces one tile: no barrier at all.
KERNEL __launch_bounds__(1024) lat_barrier__silent(const float4* __restrict__ a, float* __restrict__ o, int tiles) {
  for (int b = Tid() / 32; b < tiles; b += Threads() / 32) {
    float s = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float4 v = a[b * 256 + k * 32 + threadIdx.x % 32];
      s += v.x + v.y + v.z + v.w;
    }
    s = WarpSum(s);
    if (threadIdx.x % 32 == 0) o[b] = s;
  }
}

// --- lat.throttle: a byte an instruction fills the load/store queue.
template <class T>
INLINE void CopyRuns(const T* __restrict__ a, T* __restrict__ o, int n) {
  for (int i = Tid(); i * 16 < n; i += Threads()) {
    T v[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) v[k] = a[i * 16 + k];
#pragma unroll
    for (int k = 0; k < 16; ++k) o[i * 16 + k] = v[k];
  }
}
KERNEL lat_throttle__fires(const unsigned char* a, unsigned char* o, int n) { CopyRuns(a, o, n); }
KERNEL lat_throttle__silent(const uint4* __restrict__ a, uint4* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[i];
}
// The same bytes, neighbouring lanes side by side: coalesced, still a byte an instruction.
KERNEL lat_throttle__fires2(const unsigned char* __restrict__ a, unsigned char* __restrict__ o, int n) {
  const int step = Threads();
  for (int i = Tid(); i < n; i += 16 * step) {
    unsigned char v[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) v[k] = a[i + k * step];
#pragma unroll
    for (int k = 0; k < 16; ++k) o[i + k * step] = v[k] ^ 1;
  }
}

// --- lat.ilp: Horner with one accumulator and one warp a scheduler.
KERNEL lat_ilp__fires(float* o, int steps) {
  float x = 0.1f * threadIdx.x;
#pragma unroll 32
  for (int i = 0; i < steps; ++i) x = fmaf(x, 0.999f, 0.5f);
  o[Tid()] = x;
}
KERNEL lat_ilp__silent(float* o, int steps) {
  float x = threadIdx.x, y = x + 1, z = x + 2, w = x + 3;
#pragma unroll 8
  for (int i = 0; i < steps; ++i) {
    x = fmaf(x, 0.999f, 0.5f);
    y = fmaf(y, 0.998f, 0.5f);
    z = fmaf(z, 0.997f, 0.5f);
    w = fmaf(w, 0.996f, 0.5f);
  }
  o[Tid()] = x + y + z + w;
}
// Dot product of two vectors in shared memory, one running sum.
KERNEL lat_ilp__fires2(const float* __restrict__ a, float* __restrict__ o, int rounds) {
  __shared__ float4 s[512];
  for (int i = threadIdx.x; i < 2048; i += blockDim.x) reinterpret_cast<float*>(s)[i] = a[i];
  __syncthreads();
  float sum = threadIdx.x;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
#pragma unroll 8
    for (int k = 0; k < 256; ++k) {
      const float4 x = s[k], y = s[k + 256];
      sum = fmaf(x.x, y.x, sum);
      sum = fmaf(x.y, y.y, sum);
      sum = fmaf(x.z, y.z, sum);
      sum = fmaf(x.w, y.w, sum);
    }
    sum *= 0.5f;
  }
  o[Tid()] = sum;
}

// --- lat.short_scoreboard: a shuffle tree for every element.
KERNEL lat_short_scoreboard__fires(const float* __restrict__ a, float* __restrict__ o, int n) {
  float s = 0;
  for (int i = Tid(); i < n; i += Threads()) s = s * 0.5f + WarpSum(a[i]);
  o[Tid()] = s;
}
KERNEL lat_short_scoreboard__silent(const float* __restrict__ a, float* __restrict__ o, int n) {
  float s = 0;
  for (int i = Tid(); i < n; i += Threads()) s = s * 0.5f + a[i];
  o[Tid()] = WarpSum(s);
}

// --- lat.sync_misc: a device-wide fence after each element.
KERNEL lat_sync_misc__fires(const float* __restrict__ a, float* o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    o[i] = a[i] + 1.0f;
    __threadfence();
  }
}
KERNEL lat_sync_misc__silent(const float* __restrict__ a, float* o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[i] + 1.0f;
  __syncthreads();
  if (threadIdx.x == 0) __threadfence();
}

// --- lat.fetch: a loop body of 256 KB, more than the instruction caches hold.
template <int kUnroll>
INLINE void LongCode(float* o, int rounds, float p, float q) {
  float x = threadIdx.x, y = x + 1, z = x + 2, w = x + 3;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
#pragma unroll kUnroll
    for (int i = 0; i < 4096; ++i) {
      x = fmaf(x, p, q);
      y = fmaf(y, q, p);
      z = fmaf(z, p, x);
      w = fmaf(w, q, y);
    }
  }
  o[Tid()] = x + y + z + w;
}
KERNEL lat_fetch__fires(float* o, int rounds, float p, float q) { LongCode<4096>(o, rounds, p, q); }
KERNEL lat_fetch__silent(float* o, int rounds, float p, float q) { LongCode<8>(o, rounds, p, q); }

// --- lat.not_selected: 64 warps an SM where a quarter would do.
KERNEL lat_not_selected__fires(float* o, int steps, float p) {
  float x = threadIdx.x, y = x + 1, z = x + 2, w = x + 3;
#pragma unroll 8
  for (int i = 0; i < steps; ++i) {
    x = fmaf(x, p, 0.5f);
    y = fmaf(y, p, 0.4f);
    z = fmaf(z, p, 0.3f);
    w = fmaf(w, p, 0.2f);
  }
  o[Tid()] = x + y + z + w;
}
KERNEL lat_not_selected__silent(const float4* __restrict__ a, float4* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = a[i];
}

int main(int argc, char** argv) {
  using suite::Add;
  float *a = In(), *o = Out();
  const int sms = Sms();
  auto* a4 = reinterpret_cast<float4*>(a);
  auto* o4 = reinterpret_cast<float4*>(o);
  auto* ab = reinterpret_cast<unsigned char*>(a);
  auto* ob = reinterpret_cast<unsigned char*>(o);
  auto* ou = reinterpret_cast<unsigned*>(o);
  const unsigned mask = kN - 1;
  auto* ring = suite::Buffer<unsigned>(kN, suite::Fill::kZero);
  make_ring<<<1024, 256>>>(ring, mask);
  CHECK(cudaDeviceSynchronize());
  auto* index = suite::Buffer<unsigned>(1 << 24, suite::Fill::kBits);
  Add("lat_long_scoreboard__fires", [=] { lat_long_scoreboard__fires<<<2 * sms, 256>>>(ring, ou, 200, mask); });
  Add("lat_long_scoreboard__silent", [=] { lat_long_scoreboard__silent<<<8 * sms, 256>>>(o, 4096); });
  Add("lat_long_scoreboard__fires2", [=] { lat_long_scoreboard__fires2<<<2 * sms, 256>>>(index, a, o, 1 << 24, mask); });
  Add("lat_barrier__fires", [=] { lat_barrier__fires<<<sms, 1024, 100 * 1024>>>(a, o, kN / 1024); });
  Add("lat_barrier__silent", [=] { lat_barrier__silent<<<2 * sms, 1024>>>(a4, o, kN / 1024); });
  CHECK(cudaFuncSetAttribute(lat_barrier__fires, cudaFuncAttributeMaxDynamicSharedMemorySize, 128 * 1024));
  Add("lat_throttle__fires", [=] { lat_throttle__fires<<<8 * sms, 256>>>(ab, ob, kN); });
  Add("lat_throttle__silent", [=] { lat_throttle__silent<<<8 * sms, 256>>>(reinterpret_cast<uint4*>(a), reinterpret_cast<uint4*>(o), kN / 4); });
  Add("lat_throttle__fires2", [=] { lat_throttle__fires2<<<1024, 256>>>(ab, ob, 1 << 28); });
  Add("lat_ilp__fires", [=] { lat_ilp__fires<<<sms, 128>>>(o, 65536); });
  Add("lat_ilp__silent", [=] { lat_ilp__silent<<<4 * sms, 256>>>(o, 16384); });
  Add("lat_ilp__fires2", [=] { lat_ilp__fires2<<<sms, 128>>>(a, o, 48); });
  Add("lat_short_scoreboard__fires", [=] { lat_short_scoreboard__fires<<<8 * sms, 256>>>(a, o, kN); });
  Add("lat_short_scoreboard__silent", [=] { lat_short_scoreboard__silent<<<8 * sms, 256>>>(a, o, kN); });
  Add("lat_sync_misc__fires", [=] { lat_sync_misc__fires<<<8 * sms, 256>>>(a, o, kN / 4); });
  Add("lat_sync_misc__silent", [=] { lat_sync_misc__silent<<<8 * sms, 256>>>(a, o, kN / 4); });
  Add("lat_fetch__fires", [=] { lat_fetch__fires<<<4 * sms, 128>>>(o, 4, 0.5f, 0.25f); });
  Add("lat_fetch__silent", [=] { lat_fetch__silent<<<4 * sms, 128>>>(o, 4, 0.5f, 0.25f); });
  Add("lat_not_selected__fires", [=] { lat_not_selected__fires<<<8 * sms, 256>>>(o, 8192, 0.999f); });
  Add("lat_not_selected__silent", [=] { lat_not_selected__silent<<<8 * sms, 256>>>(a4, o4, kN / 4); });
  return suite::Main(argc, argv);
}
