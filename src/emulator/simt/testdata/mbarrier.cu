// SPDX-License-Identifier: Apache-2.0
// mbarriers alone and with asynchronous copies.
#include <cuda_pipeline.h>

#include <cuda/barrier>

constexpr int kThreads = 128;

__device__ unsigned Shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void Init(unsigned long long* m, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(Shared(m)), "r"(count) : "memory");
}

__device__ void WaitParity(unsigned long long* m, unsigned parity) {
  asm volatile(
      "{ .reg .pred p;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra again; }" ::"r"(Shared(m)),
      "r"(parity)
      : "memory");
}

__device__ void Arrive(unsigned long long* m) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(Shared(m)) : "memory");
}

// Rounds of writing and reading with cuda::barrier in the place of __syncthreads.
extern "C" __global__ void barrier_object(float* y, int rounds) {
  __shared__ float s[kThreads];
  __shared__ alignas(8) char room[sizeof(cuda::barrier<cuda::thread_scope_block>)];
  auto& bar = *reinterpret_cast<cuda::barrier<cuda::thread_scope_block>*>(room);
  const int t = threadIdx.x;
  if (t == 0) init(&bar, kThreads);
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < rounds; ++i) {
    s[t] = t + i;
    bar.arrive_and_wait();
    sum += s[kThreads - 1 - t];
    bar.arrive_and_wait();
  }
  y[t] = sum;
}

// flags: 1 no wait, 2 no barrier behind the initialisation.
extern "C" __global__ void parity(float* y, int rounds, int flags) {
  __shared__ float s[kThreads];
  __shared__ unsigned long long m;
  const int t = threadIdx.x;
  if (t == 0) Init(&m, kThreads);
  if ((flags & 2) == 0) __syncthreads();
  float sum = 0;
  for (int i = 0; i < rounds; ++i) {
    s[t] = t + i;
    Arrive(&m);
    if ((flags & 1) == 0) WaitParity(&m, 0);
    sum += s[kThreads - 1 - t];
    Arrive(&m);
    if ((flags & 1) == 0) WaitParity(&m, 1);
  }
  y[t] = sum;
}

// One tile by asynchronous copies whose arrival completes the phase. flags: 1 no wait.
extern "C" __global__ void copies_arrive(const float* x, float* y, int noinc, int flags) {
  __shared__ float s[kThreads];
  __shared__ unsigned long long m;
  const int t = threadIdx.x;
  if (t == 0) Init(&m, kThreads);
  __syncthreads();
  __pipeline_memcpy_async(&s[t], x + t, 4);
  if (noinc) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(Shared(&m)) : "memory");
  } else {
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(Shared(&m)) : "memory");
    Arrive(&m);
  }
  if ((flags & 1) == 0) WaitParity(&m, 0);
  y[t] = s[kThreads - 1 - t];
}

extern "C" __global__ void never_initialised(float* y) {
  __shared__ unsigned long long m;
  Arrive(&m);
  y[threadIdx.x] = 1;
}

// Waits for more arrivals than come.
extern "C" __global__ void one_too_few(float* y) {
  __shared__ unsigned long long m;
  if (threadIdx.x == 0) Init(&m, 33);
  __syncwarp();
  Arrive(&m);
  WaitParity(&m, 0);
  y[threadIdx.x] = 1;
}

extern "C" __global__ void one_too_many(float* y, int count) {
  __shared__ unsigned long long m;
  if (threadIdx.x == 0) {
    Init(&m, 2);
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0], %1; }" ::"r"(Shared(&m)), "r"(count) : "memory");
  }
  y[threadIdx.x] = 1;
}

extern "C" __global__ void bytes_expected(float* y) {
  __shared__ unsigned long long m;
  Init(&m, 1);
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16;" ::"r"(Shared(&m)) : "memory");
  y[threadIdx.x] = 1;
}
