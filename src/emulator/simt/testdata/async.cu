// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies: what they must do, and planted bugs beside kernels that are right.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>

#include <cuda/pipeline>

constexpr int kThreads = 128;
constexpr int kStages = 3;

__device__ unsigned Shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Sums tiles of 128 words that arrive through a ring of three; each thread reads another's words.
// `left` groups may be in flight at the wait; sync_ready and sync_free say which barriers are there;
// `ahead` is the stage that is read, counted from the one that is ready.
__device__ void Ring(const float* x, float* y, int tiles, int left, bool sync_ready, bool sync_free, int ahead) {
  __shared__ float ring[kStages][kThreads];
  const int t = threadIdx.x;
  for (int i = 0; i < kStages - 1; ++i) {
    if (i < tiles) __pipeline_memcpy_async(&ring[i][t], x + i * kThreads + t, 4);
    __pipeline_commit();
  }
  float sum = 0;
  for (int i = 0; i < tiles; ++i) {
    if (left == 0) __pipeline_wait_prior(0);
    if (left == 1) __pipeline_wait_prior(1);
    if (left == 2) __pipeline_wait_prior(2);
    if (sync_ready) __syncthreads();
    sum += ring[(i + ahead) % kStages][kThreads - 1 - t];
    if (sync_free) __syncthreads();
    const int next = i + kStages - 1;
    if (next < tiles) __pipeline_memcpy_async(&ring[next % kStages][t], x + next * kThreads + t, 4);
    __pipeline_commit();
  }
  y[t] = sum;
}

extern "C" __global__ void ring_right(const float* x, float* y, int n) { Ring(x, y, n, 1, true, true, 0); }
extern "C" __global__ void ring_drained(const float* x, float* y, int n) { Ring(x, y, n, 0, true, true, 0); }
extern "C" __global__ void ring_without_wait(const float* x, float* y, int n) { Ring(x, y, n, -1, true, true, 0); }
extern "C" __global__ void ring_wait_off_by_one(const float* x, float* y, int n) { Ring(x, y, n, 2, true, true, 0); }
// The barrier behind the wait is missing.
extern "C" __global__ void ring_without_ready(const float* x, float* y, int n) { Ring(x, y, n, 1, false, true, 0); }
// One barrier an iteration is enough: it lies between the reads of a stage and its next copy.
extern "C" __global__ void ring_one_barrier(const float* x, float* y, int n) { Ring(x, y, n, 1, true, false, 0); }
extern "C" __global__ void ring_without_barriers(const float* x, float* y, int n) { Ring(x, y, n, 1, false, false, 0); }
extern "C" __global__ void ring_later_stage(const float* x, float* y, int n) { Ring(x, y, n, 1, true, true, 1); }

// Two stages, refilled while slower warps still read them.
extern "C" __global__ void refilled_too_early(const float* x, float* y, int tiles) {
  __shared__ float s[kThreads];
  const int t = threadIdx.x;
  float sum = 0;
  for (int i = 0; i < tiles; ++i) {
    __pipeline_memcpy_async(&s[t], x + i * kThreads + t, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    sum += s[kThreads - 1 - t];
  }
  y[t] = sum;
}

// A second copy to the same place while the first is in flight.
extern "C" __global__ void copied_twice(const float* x, float* y, int again) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  for (int i = 0; i <= again; ++i) {
    __pipeline_memcpy_async(&s[t], x + i * 32 + t, 4);
    __pipeline_commit();
  }
  __pipeline_wait_prior(0);
  y[t] = s[t];
}

// A thread's own word, before and behind its own wait.
extern "C" __global__ void own_word(const float* x, float* y, int early) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = 5;
  __pipeline_memcpy_async(&s[t], x + t, 4);
  __pipeline_commit();
  float v = 0;
  if (early) v = *(volatile float*)&s[t];
  __pipeline_wait_prior(0);
  if (!early) v = s[t];
  y[t] = v;
}

extern "C" __global__ void stored_in_flight(const float* x, float* y, int early) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], x + t, 4);
  __pipeline_commit();
  if (early) s[t] = 1;
  __pipeline_wait_prior(0);
  if (!early) s[t] = 1;
  y[t] = s[t];
}

// wait_all also covers what was never committed; wait_group 0 does not.
extern "C" __global__ void not_committed(const float* x, float* y, int all) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = 5;
  __pipeline_memcpy_async(&s[t], x + t, 4);
  if (all) {
    asm volatile("cp.async.wait_all;" ::: "memory");
  } else {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  }
  y[t] = s[t];
}

extern "C" __global__ void source_overwritten(float* x, float* y, int early) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], x + t, 4);
  __pipeline_commit();
  if (early) x[t] = -1;
  __pipeline_wait_prior(0);
  if (!early) x[t] = -1;
  y[t] = s[t];
}

extern "C" __global__ void left_in_flight(const float* x, float* y) {
  __shared__ float s[32];
  __pipeline_memcpy_async(&s[threadIdx.x], x + threadIdx.x, 4);
  __pipeline_commit();
  y[threadIdx.x] = 1;
}

// Lanes with different numbers of groups: each waits for its own.
extern "C" __global__ void groups_of_lanes(const float* x, float* y) {
  __shared__ float s[2][32];
  const int t = threadIdx.x;
  s[0][t] = s[1][t] = -1;
  __pipeline_memcpy_async(&s[0][t], x + t, 4);
  __pipeline_commit();
  if (t % 2 == 1) {
    __pipeline_memcpy_async(&s[1][t], x + 32 + t, 4);
    __pipeline_commit();
  }
  __pipeline_wait_prior(1);
  // Odd lanes have their first word, even lanes nothing.
  y[t] = t % 2 == 1 ? s[0][t] : -1;
  __pipeline_wait_prior(0);
  y[32 + t] = s[0][t];
  y[64 + t] = s[1][t];
}

extern "C" __global__ void sizes(const char* x, char* y) {
  __shared__ alignas(16) char s[3][32 * 16];
  const int t = threadIdx.x;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(Shared(&s[0][t * 4])), "l"(x + t * 4) : "memory");
  asm volatile("cp.async.ca.shared::cta.global.L2::128B [%0], [%1], 8;" ::"r"(Shared(&s[1][t * 8])), "l"(x + t * 8) : "memory");
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(Shared(&s[2][t * 16])), "l"(x + t * 16) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (int i = 0; i < 4; ++i) y[t * 4 + i] = s[0][t * 4 + i];
  for (int i = 0; i < 8; ++i) y[128 + t * 8 + i] = s[1][t * 8 + i];
  for (int i = 0; i < 16; ++i) y[384 + t * 16 + i] = s[2][t * 16 + i];
}

// Thread t takes `bytes[t]` of its 16; with `x` of fewer than 512 bytes the last ones must take none.
extern "C" __global__ void zero_fill(const char* x, const int* bytes, char* y) {
  __shared__ alignas(16) char s[32 * 16];
  const int t = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(Shared(&s[t * 16])), "l"(x + t * 16), "r"(bytes[t]) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (int i = 0; i < 16; ++i) y[t * 16 + i] = s[t * 16 + i];
}

extern "C" __global__ void ignore_source(const float* x, float* y, int n, unsigned long long policy) {
  __shared__ float s[2][32];
  const int t = threadIdx.x;
  asm volatile(
      "{ .reg .pred p; setp.ge.s32 p, %2, %3;\n"
      "  cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 4, p, %4; }" ::"r"(Shared(&s[0][t])),
      "l"(x + t), "r"(t), "r"(n), "l"(policy)
      : "memory");
  asm volatile(
      "{ .reg .pred p; setp.lt.s32 p, %2, %3;\n"
      "  cp.async.ca.shared.global [%0], [%1], 4, !p; }" ::"r"(Shared(&s[1][t])),
      "l"(x + t), "r"(t), "r"(n)
      : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  y[t] = s[0][t];
  y[32 + t] = s[1][t];
}

// One copy of 16 bytes; offsets in bytes.
extern "C" __global__ void one_copy(const char* x, char* y, int from, int to) {
  __shared__ alignas(16) char s[64];
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(Shared(s) + to), "l"(x + from) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  y[threadIdx.x] = s[to];
}

extern "C" __global__ void group_copy(const float* x, float* y) {
  __shared__ alignas(16) float s[512];
  const auto block = cooperative_groups::this_thread_block();
  cooperative_groups::memcpy_async(block, s, x, sizeof s);
  cooperative_groups::wait(block);
  for (int i = threadIdx.x; i < 512; i += blockDim.x) y[i] = s[511 - i];
}

extern "C" __global__ void pipeline_object(const float4* x, float4* y, int tiles) {
  __shared__ float4 s[2][kThreads];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  const int t = threadIdx.x;
  const auto fetch = [&](int i) {
    pipe.producer_acquire();
    cuda::memcpy_async(&s[i % 2][t], x + i * kThreads + t, cuda::aligned_size_t<16>(16), pipe);
    pipe.producer_commit();
  };
  fetch(0);
  float4 sum = {0, 0, 0, 0};
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) fetch(i + 1);
    if (i + 1 < tiles) {
      cuda::pipeline_consumer_wait_prior<1>(pipe);
    } else {
      cuda::pipeline_consumer_wait_prior<0>(pipe);
    }
    __syncthreads();
    sum.x += s[i % 2][kThreads - 1 - t].x;
    sum.w += s[i % 2][kThreads - 1 - t].w;
    __syncthreads();
    pipe.consumer_release();
  }
  y[t] = sum;
}

// 32 lanes, 16 bytes each, `stride` floats apart in global memory and `pitch` floats in shared memory.
extern "C" __global__ void traffic(const float* x, float* y, int stride, int pitch) {
  extern __shared__ __align__(16) float dynamic[];
  const int t = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(Shared(&dynamic[t * pitch])), "l"(x + t * stride) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  y[t] = dynamic[t * pitch];
}

extern "C" __global__ void bulk(const float* x, float* y) {
  __shared__ alignas(16) float s[32];
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(y), "r"(Shared(s)) : "memory");
}
