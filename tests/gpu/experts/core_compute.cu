// SPDX-License-Identifier: Apache-2.0
// Arithmetic pipes. (-fmad=false has a program of its own: flags_nonfused.cu.)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cases.h"

// --- cmp.nonfused: multiply and add kept apart by intrinsics.
KERNEL cmp_nonfused__fires2(float* o, int steps, float p, float q) {
  float x[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) x[k] = threadIdx.x + k;
  for (int i = 0; i < steps; ++i)
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = __fadd_rn(__fmul_rn(x[k], p), q);
  float s = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) s += x[k];
  o[Tid()] = s;
}
KERNEL cmp_nonfused__silent(float* o, int steps, float p, float q) {
  float x[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) x[k] = threadIdx.x + k;
  for (int i = 0; i < steps; ++i)
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = x[k] * p + q;
  float s = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) s += x[k];
  o[Tid()] = s;
}

// --- cmp.fp64: literals without f turn float data into double arithmetic.
KERNEL cmp_fp64__fires(const float* __restrict__ a, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    float v = a[i];
#pragma unroll
    for (int k = 0; k < 16; ++k) v = v * 0.5 + 1.0 / 3.0 * a[i];
    o[i] = v;
  }
}
KERNEL cmp_fp64__silent(const float* __restrict__ a, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    float v = a[i];
#pragma unroll
    for (int k = 0; k < 16; ++k) v = v * 0.5f + 1.0f / 3.0f * a[i];
    o[i] = v;
  }
}

// --- cmp.sfu: sines, exponentials and divisions bound by the special unit.
KERNEL cmp_sfu__fires(const float* __restrict__ a, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    float v = a[i];
#pragma unroll
    for (int k = 0; k < 16; ++k) v = __expf(v) * 0.25f + __fdividef(1.0f, 1.0f + v * v);
    o[i] = v;
  }
}
KERNEL cmp_sfu__silent(const float* __restrict__ a, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = fmaxf(a[i], 0.0f);
}
KERNEL cmp_sfu__fires2(const float* __restrict__ a, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    float v = a[i], s = 0;
#pragma unroll
    for (int k = 1; k <= 32; ++k) s += __sinf(v * k);
    o[i] = s;
  }
}

// --- cmp.int: [B][S][H][D] to [B][H][S][D], one element a thread, extents known at run time only.
KERNEL cmp_int__fires(const float* __restrict__ a, float* __restrict__ o, int n, int seq, int heads, int dim) {
  for (int i = Tid(); i < n; i += Threads()) {
    const int d = i % dim, s = i / dim % seq, h = i / dim / seq % heads, b = i / dim / seq / heads;
    o[i] = a[((b * seq + s) * heads + h) * dim + d];
  }
}
template <int kSeq, int kHeads, int kDim>
INLINE void Permute(const float* __restrict__ a, float* __restrict__ o, unsigned n) {
  for (unsigned i = Tid(); i < n; i += Threads()) {
    const unsigned d = i % kDim, s = i / kDim % kSeq, h = i / kDim / kSeq % kHeads, b = i / kDim / kSeq / kHeads;
    o[i] = a[((b * kSeq + s) * kHeads + h) * kDim + d];
  }
}
KERNEL cmp_int__silent(const float* a, float* o, int n) { Permute<1024, 16, 64>(a, o, n); }

// --- cmp.divergence: odd and even lanes take different long paths.
INLINE float PathA(float v) {
#pragma unroll 4
  for (int k = 0; k < 64; ++k) v = fmaf(v, 0.9f, 0.3f) * v;
  return v;
}
INLINE float PathB(float v) {
#pragma unroll 4
  for (int k = 0; k < 64; ++k) v = fabsf(v - 0.7f) + v * v * 0.2f;
  return v;
}
KERNEL cmp_divergence__fires(const float* __restrict__ a, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    const float v = a[i];
    if (threadIdx.x & 1) {
      o[i] = PathA(v);
    } else {
      o[i] = PathB(v);
    }
  }
}
KERNEL cmp_divergence__silent(const float* __restrict__ a, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    const float v = a[i];
    if (blockIdx.x & 1) {
      o[i] = PathA(v);
    } else {
      o[i] = PathB(v);
    }
  }
}
// Rows of random length, a row a lane: the warp runs as long as its longest row.
KERNEL cmp_divergence__fires2(const unsigned* __restrict__ len, float* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    const int steps = (len[i] & 15) == 0 ? 256 : len[i] & 15;
    float v = i;
#pragma unroll 1
    for (int k = 0; k < steps; ++k) v = fmaf(v, 0.9f, 0.3f) + fabsf(v);
    o[i] = v;
  }
}
// The textbook tree with t % (2k): it looks divergent, its lanes are nearly all active.
KERNEL cmp_divergence__silent2(const float* __restrict__ a, float* __restrict__ o) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = a[Tid()];
  __syncthreads();
  for (int k = 1; k < 256; k *= 2) {
    if (t % (2 * k) == 0) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) o[blockIdx.x] = s[0];
}

// --- cmp.convert: every int8 weight goes through integer, half and float, once a use.
KERNEL cmp_convert__fires(const char* __restrict__ w, const __half* __restrict__ scale,
                          float* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    float s = 0;
#pragma unroll
    for (int k = 0; k < 32; ++k) {
      s += __half2float(__float2half(static_cast<float>(w[i + k]) * 0.01f)) * __half2float(scale[k]);
    }
    o[i] = s;
  }
}
KERNEL cmp_convert__silent(const uint4* __restrict__ a, uint4* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    uint4 v = a[i];
    __nv_bfloat162* h = reinterpret_cast<__nv_bfloat162*>(&v);
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int k = 0; k < 4; ++k) h[k] = __hfma2(h[k], h[k], __nv_bfloat162(0.5f, 0.5f));
    o[i] = v;
  }
}

// --- cmp.precision: a float temporary between two bf16 operators.
KERNEL cmp_precision__fires(const __nv_bfloat162* __restrict__ a, float2* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) {
    const float2 v = __bfloat1622float2(a[i]);
    o[i] = make_float2(fmaxf(v.x, 0.0f), fmaxf(v.y, 0.0f));
  }
}
KERNEL cmp_precision__silent(const __nv_bfloat162* __restrict__ a, __nv_bfloat162* __restrict__ o, int n) {
  for (int i = Tid(); i < n; i += Threads()) o[i] = __hmax2(a[i], __nv_bfloat162(0.0f, 0.0f));
}

// --- cmp.issue: one element an iteration, bounds tests and 64-bit addresses around one addition.
KERNEL cmp_issue__fires(const float* a, float* o, long n, long lo, long hi, int rounds) {
  float s = 0;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r)
#pragma unroll 1
    for (long i = Tid(); i < n; i += Threads())
      if (i >= lo && i < hi && i != r) s += a[i & 0xffff];
  o[Tid()] = s;
}
KERNEL cmp_issue__silent(const float4* __restrict__ a, float* __restrict__ o, int n, int rounds) {
  float s = 0, t = 0;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r)
#pragma unroll 8
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      const float4 v = a[i];
      s += v.x * v.y;
      t += v.z * v.w;
    }
  o[Tid()] = s + t;
}

int main(int argc, char** argv) {
  using suite::Add;
  float *a = In(), *o = Out();
  const int wide = 8 * Sms();
  auto* bits = suite::Buffer<unsigned>(1 << 24, suite::Fill::kBits);
  auto* half = suite::Buffer<__half>(1 << 20, suite::Fill::kHalf);
  auto* b2 = suite::Buffer<__nv_bfloat162>(kN / 2, suite::Fill::kBf16);
  Add("cmp_nonfused__fires2", [=] { cmp_nonfused__fires2<<<wide, 256>>>(o, 2048, 0.999f, 0.5f); });
  Add("cmp_nonfused__silent", [=] { cmp_nonfused__silent<<<wide, 256>>>(o, 2048, 0.999f, 0.5f); });
  Add("cmp_fp64__fires", [=] { cmp_fp64__fires<<<wide, 256>>>(a, o, kN); });
  Add("cmp_fp64__silent", [=] { cmp_fp64__silent<<<wide, 256>>>(a, o, kN); });
  Add("cmp_sfu__fires", [=] { cmp_sfu__fires<<<wide, 256>>>(a, o, kN); });
  Add("cmp_sfu__silent", [=] { cmp_sfu__silent<<<wide, 256>>>(a, o, kN); });
  Add("cmp_sfu__fires2", [=] { cmp_sfu__fires2<<<wide, 256>>>(a, o, kN / 2); });
  Add("cmp_int__fires", [=] { cmp_int__fires<<<wide, 256>>>(a, o, kN, 1024, 16, 64); });
  Add("cmp_int__silent", [=] { cmp_int__silent<<<wide, 256>>>(a, o, kN); });
  Add("cmp_divergence__fires", [=] { cmp_divergence__fires<<<wide, 256>>>(a, o, kN / 2); });
  Add("cmp_divergence__silent", [=] { cmp_divergence__silent<<<wide, 256>>>(a, o, kN / 2); });
  Add("cmp_divergence__fires2", [=] { cmp_divergence__fires2<<<wide, 256>>>(bits, o, 1 << 24); });
  Add("cmp_divergence__silent2", [=] { cmp_divergence__silent2<<<kN / 256, 256>>>(a, o); });
  Add("cmp_convert__fires", [=] { cmp_convert__fires<<<wide, 256>>>(reinterpret_cast<char*>(bits), half, o, 1 << 24); });
  Add("cmp_convert__silent", [=] { cmp_convert__silent<<<wide, 256>>>(reinterpret_cast<uint4*>(b2), reinterpret_cast<uint4*>(o), kN / 8); });
  Add("cmp_precision__fires", [=] { cmp_precision__fires<<<wide, 256>>>(b2, reinterpret_cast<float2*>(o), kN / 2); });
  Add("cmp_precision__silent", [=] { cmp_precision__silent<<<wide, 256>>>(b2, reinterpret_cast<__nv_bfloat162*>(o), kN / 2); });
  Add("cmp_issue__fires", [=] { cmp_issue__fires<<<wide, 256>>>(a, o, kN, 5, kN - 5, 2); });
  Add("cmp_issue__silent", [=] { cmp_issue__silent<<<wide, 256>>>(reinterpret_cast<float4*>(a), o, 2048, 64); });
  return suite::Main(argc, argv);
}
