// SPDX-License-Identifier: Apache-2.0
// Access patterns whose costs follow from the definitions.
extern "C" __global__ void copy(const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}

extern "C" __global__ void copy4(const float4* in, float4* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}

extern "C" __global__ void strided(const float* in, float* out, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i * stride];
}

extern "C" __global__ void uniform(const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[blockIdx.x];
}

extern "C" __global__ void transpose(const float* in, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  out[x * n + y] = in[y * n + x];
}

extern "C" __global__ void banks(float* out, int stride) {
  __shared__ float s[32 * 33];
  int t = threadIdx.x;
  s[t * stride] = t;
  __syncwarp();
  out[t] = s[t * stride];
}

extern "C" __global__ void banks8(double* out, int stride) {
  __shared__ double s[32 * 16];
  int t = threadIdx.x;
  s[t * stride] = t;
  __syncwarp();
  out[t] = s[t * stride];
}

extern "C" __global__ void banks16(float4* out, int stride) {
  __shared__ float4 s[32 * 8];
  int t = threadIdx.x;
  s[t * stride] = make_float4(t, t, t, t);
  __syncwarp();
  out[t] = s[t * stride];
}

extern "C" __global__ void half_active(const float* in, float* out) {
  int i = threadIdx.x;
  if (i & 1) out[i] = in[i];
}

extern "C" __global__ void contended(int* out) { atomicAdd(&out[threadIdx.x & 7], 1); }

// Every block reads the same 4 KiB twice. (asm: the compiler would keep the values.)
extern "C" __global__ void reread(const float* in, float* out) {
  float s = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int k = 0; k < 4; ++k) {
      float v;
      asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(in + k * 256 + threadIdx.x));
      s += v;
    }
    __syncthreads();
  }
  out[blockIdx.x * 256 + threadIdx.x] = s;
}

extern "C" __global__ void branches(const int* in, int* out) {
  int t = threadIdx.x;
  int v = in[t];
  if (v & 1) {
    for (int k = 0; k < 3; ++k) v = v * 5 + out[k];
  } else {
    v = out[v] * 2;
  }
  out[32 + t] = v;
}
