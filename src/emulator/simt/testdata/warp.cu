// SPDX-License-Identifier: Apache-2.0
// Cross-lane instructions; every thread writes what it got.
extern "C" __global__ void shuffles(const int* in, int* out, int width, int delta) {
  int t = threadIdx.x;
  int v = in[t];
  out[t] = __shfl_sync(0xffffffffu, v, delta, width);
  out[32 + t] = __shfl_up_sync(0xffffffffu, v, delta, width);
  out[64 + t] = __shfl_down_sync(0xffffffffu, v, delta, width);
  out[96 + t] = __shfl_xor_sync(0xffffffffu, v, delta, width);
}

extern "C" __global__ void shuffle_predicate(const int* in, int* out, int delta, int clamp) {
  int t = threadIdx.x, v = in[t], r, p;
  asm volatile(
      "{ .reg .pred q; shfl.sync.down.b32 %0|q, %2, %3, %4, -1; selp.b32 %1, 1, 0, q; }"
      : "=r"(r), "=r"(p)
      : "r"(v), "r"(delta), "r"(clamp));
  out[t] = r * 2 + p;
}

extern "C" __global__ void votes(const int* in, unsigned* out) {
  int t = threadIdx.x;
  bool p = in[t] != 0;
  out[t] = __ballot_sync(0xffffffffu, p);
  out[32 + t] = __any_sync(0xffffffffu, p);
  out[64 + t] = __all_sync(0xffffffffu, p);
  out[96 + t] = __match_any_sync(0xffffffffu, in[t]);
  int same;
  out[128 + t] = __match_all_sync(0xffffffffu, in[t], &same);
  out[160 + t] = same;
  out[192 + t] = __reduce_add_sync(0xffffffffu, (unsigned)in[t]);
  out[224 + t] = __reduce_max_sync(0xffffffffu, in[t]);
  out[256 + t] = __reduce_min_sync(0xffffffffu, in[t]);
  out[288 + t] = __reduce_xor_sync(0xffffffffu, (unsigned)in[t]);
}

// Each half of the warp votes among itself, in one instruction.
extern "C" __global__ void tile_votes(const int* in, unsigned* out) {
  int t = threadIdx.x;
  unsigned mask = t < 16 ? 0xffffu : 0xffff0000u;
  out[t] = __ballot_sync(mask, in[t] != 0);
  out[32 + t] = __shfl_xor_sync(mask, in[t], 1);
}

extern "C" __global__ void active_mask(unsigned* out) {
  int t = threadIdx.x;
  if (t % 3 == 0) {
    out[t] = __activemask();
  } else {
    out[t] = __activemask();
  }
}

// Lanes reach the shuffle by different ways and must meet there.
extern "C" __global__ void meet(const int* in, int* out) {
  int t = threadIdx.x;
  int v = in[t];
  if (t & 1) {
    for (int k = 0; k < t; ++k) v += in[k];
  }
  __syncwarp();
  out[t] = __shfl_xor_sync(0xffffffffu, v, 1);
}

extern "C" __global__ void lane_masks(unsigned* out) {
  unsigned le, lt, ge, gt, eq, lane;
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
  asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  int t = threadIdx.x;
  out[t * 6] = le;
  out[t * 6 + 1] = lt;
  out[t * 6 + 2] = ge;
  out[t * 6 + 3] = gt;
  out[t * 6 + 4] = eq;
  out[t * 6 + 5] = lane;
}

extern "C" __global__ void syncthreads_count(const int* in, int* out) {
  int t = threadIdx.x;
  out[t * 3] = __syncthreads_count(in[t] > 0);
  out[t * 3 + 1] = __syncthreads_and(in[t] > 0);
  out[t * 3 + 2] = __syncthreads_or(in[t] > 0);
}

// Producer and consumer warps on named barriers.
extern "C" __global__ void named_barriers(const int* in, int* out, int rounds) {
  __shared__ int box[32];
  int t = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int r = 0; r < rounds; ++r) {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      box[t] = in[r * 32 + t] * 2;
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  } else {
    for (int r = 0; r < rounds; ++r) {
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
      out[r * 32 + t] = box[t] + 1;
    }
  }
}

extern "C" __global__ void atomics_global(unsigned* u, int* s, float* f, unsigned long long* w,
                                          unsigned* old) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  old[t] = atomicAdd(&u[0], 1u);
  atomicMax(&s[0], t - 50);
  atomicMin(&s[1], 50 - t);
  atomicInc(&u[1], 6);
  atomicDec(&u[2], 9);
  atomicAnd(&u[3], ~(1u << (t & 31)));
  atomicOr(&u[4], 1u << (t & 15));
  atomicXor(&u[5], t);
  atomicAdd(&f[0], 0.5f);
  atomicAdd(&w[0], (unsigned long long)t << 32);
  atomicCAS(&u[6], t, t + 1);
}

extern "C" __global__ void histogram(const unsigned char* in, unsigned* out, int n) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
    atomicAdd(&bins[in[i]], 1u);
  }
  __syncthreads();
  atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
