// SPDX-License-Identifier: Apache-2.0
// Holdout pairs about data that is loaded again although a thread or its block had it.
#include "pairs.h"

// Morphological dilation by 9 x 9: 81 loads an output, or 144 for eight outputs of a column.
KERNEL dilate__bad(const float* __restrict__ in, float* __restrict__ out, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  float m = -1e30f;
#pragma unroll
  for (int r = 0; r < 9; ++r) {
#pragma unroll
    for (int c = 0; c < 9; ++c) {
      m = fmaxf(m, in[size_t(y + r) * (width + 8) + x + c]);
    }
  }
  out[size_t(y) * width + x] = m;
}

KERNEL dilate__good(const float* __restrict__ in, float* __restrict__ out, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * 8;
  float m[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    m[k] = -1e30f;
  }
#pragma unroll
  for (int r = 0; r < 16; ++r) {
    float row = -1e30f;
#pragma unroll
    for (int c = 0; c < 9; ++c) {
      row = fmaxf(row, in[size_t(y + r) * (width + 8) + x + c]);
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (r >= k && r < k + 9) {
        m[k] = fmaxf(m[k], row);
      }
    }
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    out[size_t(y + k) * width + x] = m[k];
  }
}

static void AddDilate() {
  const int width = 4096, height = 4096;
  float* in = suite::Buffer<float>(size_t(width + 8) * (height + 8));
  float* out = suite::Buffer<float>(size_t(width) * height, suite::Fill::kZero);
  pairs::Add(
      "dilate", [=] { dilate__bad<<<dim3(width / 128, height), 128>>>(in, out, width); },
      [=] { dilate__good<<<dim3(width / 128, height / 8), 128>>>(in, out, width); }, out,
      size_t(width) * height, 0);
}

// Scores of 64 queries against keys stored component by component: both factors of every product
// are loaded, or a thread keeps 8 queries by 2 keys.
KERNEL querying__bad(const float* __restrict__ query, const float* __restrict__ key,
                     float* __restrict__ out, int keys, int depth) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x, q = blockIdx.y;
  float s = 0;
#pragma unroll 8
  for (int d = 0; d < depth; ++d) {
    s = fmaf(query[d * 64 + q], key[size_t(d) * keys + k], s);
  }
  out[size_t(q) * keys + k] = s;
}

KERNEL querying__good(const float* __restrict__ query, const float* __restrict__ key,
                      float* __restrict__ out, int keys, int depth) {
  const int k = (blockIdx.x * blockDim.x + threadIdx.x) * 2, q = blockIdx.y * 8;
  float s[8][2] = {};
#pragma unroll 4
  for (int d = 0; d < depth; ++d) {
    const float2 v = *reinterpret_cast<const float2*>(key + size_t(d) * keys + k);
    const float4 a = *reinterpret_cast<const float4*>(query + d * 64 + q);
    const float4 b = *reinterpret_cast<const float4*>(query + d * 64 + q + 4);
    const float w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      s[j][0] = fmaf(w[j], v.x, s[j][0]);
      s[j][1] = fmaf(w[j], v.y, s[j][1]);
    }
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    *reinterpret_cast<float2*>(out + size_t(q + j) * keys + k) = make_float2(s[j][0], s[j][1]);
  }
}

static void AddQuerying() {
  const int keys = 1 << 17, depth = 128;
  float *query = suite::Buffer<float>(64 * depth),
        *key = suite::Buffer<float>(size_t(keys) * depth);
  float* out = suite::Buffer<float>(size_t(keys) * 64, suite::Fill::kZero);
  pairs::Add(
      "querying",
      [=] { querying__bad<<<dim3(keys / 128, 64), 128>>>(query, key, out, keys, depth); },
      [=] { querying__good<<<dim3(keys / 256, 8), 128>>>(query, key, out, keys, depth); }, out,
      size_t(keys) * 64);
}

// Histories of a market: exponential averages are updated in memory at each tick of a series,
// since the averages could overlap the ticks, or in a register.
KERNEL averages__bad(const float* tick, const float* rate, float* average, int ticks) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  average[i] = 0;
  for (int k = 0; k < ticks; ++k) {
    average[i] += rate[i] * (tick[k] - average[i]);
  }
}

KERNEL averages__good(const float* __restrict__ tick, const float* __restrict__ rate,
                      float* __restrict__ average, int ticks) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float own = 0;
  const float r = rate[i];
  for (int k = 0; k < ticks; ++k) {
    own += r * (tick[k] - own);
  }
  average[i] = own;
}

static void AddAverages() {
  const int n = pairs::kSms * 2048, ticks = 512;
  float *tick = suite::Buffer<float>(ticks), *average = suite::Buffer<float>(n, suite::Fill::kZero);
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) {
    host[i] = 0.01f + 0.0001f * (i % 1009);
  }
  const float* rate = pairs::Upload(host);
  pairs::Add(
      "averages", [=] { averages__bad<<<n / 256, 256>>>(tick, rate, average, ticks); },
      [=] { averages__good<<<n / 256, 256>>>(tick, rate, average, ticks); }, average, n);
}

// Sixteen views of 256 MiB in slices: a grid that runs slices fastest and reads everything for each
// view, or a block that computes all views of what it reads.
__device__ float View(float4 v, int view) {
  return (v.x + view) * v.y + (v.z - view) * v.w;
}

KERNEL views__bad(const float4* __restrict__ x, float* __restrict__ out, int length) {
  const int slice = blockIdx.x, view = blockIdx.y;
  float s = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < length; i += 256) {
    s += View(x[size_t(slice) * length + i], view);
  }
  s = pairs::WarpSum(s);
  if (threadIdx.x % 32 == 0) {
    out[(slice * 16 + view) * 8 + threadIdx.x / 32] = s;
  }
}

KERNEL views__good(const float4* __restrict__ x, float* __restrict__ out, int length) {
  const int slice = blockIdx.x;
  float s[16] = {};
#pragma unroll 4
  for (int i = threadIdx.x; i < length; i += 256) {
    const float4 v = x[size_t(slice) * length + i];
#pragma unroll
    for (int view = 0; view < 16; ++view) {
      s[view] += View(v, view);
    }
  }
#pragma unroll
  for (int view = 0; view < 16; ++view) {
    const float all = pairs::WarpSum(s[view]);
    if (threadIdx.x % 32 == 0) {
      out[(slice * 16 + view) * 8 + threadIdx.x / 32] = all;
    }
  }
}

static void AddViews() {
  const int slices = 4096, length = 4096;
  float4* x = suite::Buffer<float4>(size_t(slices) * length);
  float* out = suite::Buffer<float>(slices * 128, suite::Fill::kZero);
  pairs::Add(
      "views", [=] { views__bad<<<dim3(slices, 16), 256>>>(x, out, length); },
      [=] { views__good<<<slices, 256>>>(x, out, length); }, out, slices * 128);
}

int main(int argc, char** argv) {
  AddDilate();
  AddQuerying();
  AddAverages();
  AddViews();
  return pairs::Main(argc, argv);
}
