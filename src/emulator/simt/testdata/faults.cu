// SPDX-License-Identifier: Apache-2.0
// Planted bugs, each beside a kernel that is right.
extern "C" __global__ void off_by_one(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = 1.0f;
}

extern "C" __global__ void in_bounds(float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 1.0f;
}

extern "C" __global__ void before_start(const float* x, float* y) { y[threadIdx.x] = x[(int)threadIdx.x - 1]; }

extern "C" __global__ void null_pointer(float* y) { *(float*)nullptr = y[0]; }

extern "C" __global__ void misaligned(const float* x, float4* y, int shift) {
  y[threadIdx.x] = *(const float4*)(x + threadIdx.x * 4 + shift);
}

extern "C" __global__ void shared_index(float* y, int limit) {
  __shared__ float s[32];
  if (threadIdx.x < limit) s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x & 31];
}

extern "C" __global__ void local_index(int* y, int limit) {
  int a[8];
  for (int k = 0; k < 8; ++k) a[k] = y[k];
  int s = 0;
  for (int k = 0; k < limit; ++k) {
    s += a[k];
    a[(k * 5) & 7] = s;
  }
  y[threadIdx.x] = s;
}

extern "C" __global__ void barrier_in_half_warp(float* y) {
  if (threadIdx.x < 16) __syncthreads();
  y[threadIdx.x] = 1.0f;
}

extern "C" __global__ void barrier_in_some_warps(float* y) {
  if (threadIdx.x < 32) __syncthreads();
  y[threadIdx.x] = 1.0f;
}

extern "C" __global__ void early_return(float* y, int n) {
  __shared__ float s[64];
  if (threadIdx.x >= n) return;
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = s[0];
}

extern "C" __global__ void barrier_ids(float* y) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;");
  } else {
    asm volatile("bar.sync 2, 64;");
  }
  y[threadIdx.x] = 1.0f;
}

extern "C" __global__ void never_set(int* flag) {
  while (*(volatile int*)flag == 0) {
  }
}

extern "C" __global__ void endless(int* out) {
  unsigned v = threadIdx.x;
  while (v != 0xffffffffu) v = v * 2 + 2;
  *out = v;
}

extern "C" __global__ void asserting(const int* x) {
  if (x[threadIdx.x] != 0) __trap();
}

extern "C" __global__ void exited_lanes(int* y) {
  int v = threadIdx.x;
  if (v >= 16) return;
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
  y[threadIdx.x] = v;
}

extern "C" __global__ void lane_not_named(int* y) {
  y[threadIdx.x] = __shfl_sync(0x0000ffffu, (int)threadIdx.x, 0);
}

extern "C" __global__ void tile_without_first_barrier(const float* a, float* c) {
  __shared__ float s[256];
  int t = threadIdx.x;
  for (int k = 0; k < 4; ++k) {
    s[t] = a[k * 256 + t];
    c[k * 256 + t] = s[255 - t];
    __syncthreads();
  }
}

extern "C" __global__ void tile_without_second_barrier(const float* a, float* c) {
  __shared__ float s[256];
  int t = threadIdx.x;
  for (int k = 0; k < 4; ++k) {
    s[t] = a[k * 256 + t];
    __syncthreads();
    c[k * 256 + t] = s[255 - t];
  }
}

extern "C" __global__ void tile_with_barriers(const float* a, float* c) {
  __shared__ float s[256];
  int t = threadIdx.x;
  for (int k = 0; k < 4; ++k) {
    s[t] = a[k * 256 + t];
    __syncthreads();
    c[k * 256 + t] = s[255 - t];
    __syncthreads();
  }
}

extern "C" __global__ void bytes_of_one_word(const char* a, char* c) {
  __shared__ char s[128];
  int t = threadIdx.x;
  s[(t % 32) * 4 + t / 32] = a[t];
  __syncthreads();
  c[t] = s[127 - t];
}

extern "C" __global__ void reads_unwritten(float* c, int n) {
  __shared__ float s[64];
  if (threadIdx.x < n) s[threadIdx.x] = 1.0f;
  __syncthreads();
  c[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void unsupported_texture(unsigned long long texture, float* y) {
  y[0] = tex1Dfetch<float>(texture, 0);
}
