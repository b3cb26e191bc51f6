// SPDX-License-Identifier: Apache-2.0
// Pairs about how much is moved and in which portions.
#include "pairs.h"

// Embedding gather, dimension 1024 in fp16: 2 or 16 bytes a lane.
KERNEL embedding__bad(const __half* __restrict__ table, const int* __restrict__ ids,
                      __half* __restrict__ out, int dim) {
  const __half* row = table + size_t(ids[blockIdx.x]) * dim;
  for (int d = threadIdx.x; d < dim; d += blockDim.x) {
    out[size_t(blockIdx.x) * dim + d] = row[d];
  }
}

KERNEL embedding__good(const __half* __restrict__ table, const int* __restrict__ ids,
                       __half* __restrict__ out, int dim) {
  const int4* row = reinterpret_cast<const int4*>(table + size_t(ids[blockIdx.x]) * dim);
  reinterpret_cast<int4*>(out + size_t(blockIdx.x) * dim)[threadIdx.x] = row[threadIdx.x];
}

static void AddEmbedding() {
  const int dim = 1024, words = 50000, tokens = 131072;
  std::vector<int> ids(tokens);
  for (int i = 0; i < tokens; ++i) {
    ids[i] = static_cast<int>(i * 2654435761u % words);
  }
  const int* d_ids = pairs::Upload(ids);
  __half* table = suite::Buffer<__half>(size_t(words) * dim, suite::Fill::kHalf);
  __half* out = suite::Buffer<__half>(size_t(tokens) * dim, suite::Fill::kZero);
  pairs::Add(
      "embedding", [=] { embedding__bad<<<tokens, 128>>>(table, d_ids, out, dim); },
      [=] { embedding__good<<<tokens, 128>>>(table, d_ids, out, dim); }, out,
      size_t(tokens) * dim);
}

// RGB bytes to grey: three byte loads a pixel, or 12 bytes for four pixels.
__device__ unsigned Grey(unsigned r, unsigned g, unsigned b) {
  return (77 * r + 150 * g + 29 * b) >> 8;
}

KERNEL grey__bad(const unsigned char* __restrict__ rgb, unsigned char* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    out[i] = static_cast<unsigned char>(Grey(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]));
  }
}

KERNEL grey__good(const unsigned* __restrict__ rgb, unsigned* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
    const unsigned a = rgb[3 * i], b = rgb[3 * i + 1], c = rgb[3 * i + 2];
    out[i] = Grey(a & 255, a >> 8 & 255, a >> 16 & 255) |
             Grey(a >> 24, b & 255, b >> 8 & 255) << 8 |
             Grey(b >> 16 & 255, b >> 24, c & 255) << 16 |
             Grey(c >> 8 & 255, c >> 16 & 255, c >> 24) << 24;
  }
}

static void AddGrey() {
  const int n = 128 << 20;
  unsigned char* rgb = suite::Buffer<unsigned char>(size_t(n) * 3, suite::Fill::kBits);
  unsigned char* out = suite::Buffer<unsigned char>(n, suite::Fill::kZero);
  const int grid = pairs::kSms * 8;
  pairs::Add(
      "grey", [=] { grey__bad<<<grid, 256>>>(rgb, out, n); },
      [=] {
        grey__good<<<grid, 256>>>(reinterpret_cast<unsigned*>(rgb),
                                  reinterpret_cast<unsigned*>(out), n);
      },
      out, n);
}

// fp32 to bf16 with a residual: 2-byte stores or 16-byte stores.
KERNEL residual__bad(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ r,
                     __nv_bfloat16* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    out[i] = __float2bfloat16(__bfloat162float(x[i]) + 0.5f * __bfloat162float(r[i]));
  }
}

KERNEL residual__good(const uint4* __restrict__ x, const uint4* __restrict__ r,
                      uint4* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 8; i += gridDim.x * blockDim.x) {
    uint4 a = x[i], b = r[i];
    __nv_bfloat162* av = reinterpret_cast<__nv_bfloat162*>(&a);
    const __nv_bfloat162* bv = reinterpret_cast<const __nv_bfloat162*>(&b);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 p = __bfloat1622float2(av[k]), q = __bfloat1622float2(bv[k]);
      av[k] = __floats2bfloat162_rn(p.x + 0.5f * q.x, p.y + 0.5f * q.y);
    }
    out[i] = a;
  }
}

static void AddResidual() {
  const int n = 128 << 20;
  auto* x = suite::Buffer<__nv_bfloat16>(n, suite::Fill::kBf16);
  auto* r = suite::Buffer<__nv_bfloat16>(n, suite::Fill::kBf16, 2);
  auto* out = suite::Buffer<__nv_bfloat16>(n, suite::Fill::kZero);
  const int grid = pairs::kSms * 8;
  pairs::Add(
      "residual", [=] { residual__bad<<<grid, 256>>>(x, r, out, n); },
      [=] {
        residual__good<<<grid, 256>>>(reinterpret_cast<uint4*>(x), reinterpret_cast<uint4*>(r),
                                      reinterpret_cast<uint4*>(out), n);
      },
      out, n);
}

// Row scaling where the pitch of 4097 floats forbids vectors, or is padded to 4100.
KERNEL rowscale__bad(const float* __restrict__ x, const float* __restrict__ s,
                     float* __restrict__ out, int cols, int pitch) {
  const float f = s[blockIdx.x];
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    out[size_t(blockIdx.x) * cols + c] = x[size_t(blockIdx.x) * pitch + c] * f;
  }
}

KERNEL rowscale__good(const float* __restrict__ x, const float* __restrict__ s,
                      float* __restrict__ out, int cols, int pitch) {
  const float f = s[blockIdx.x];
  const float4* row = reinterpret_cast<const float4*>(x + size_t(blockIdx.x) * pitch);
  float4* to = reinterpret_cast<float4*>(out + size_t(blockIdx.x) * cols);
#pragma unroll 4
  for (int c = threadIdx.x; c < cols / 4; c += blockDim.x) {
    const float4 v = row[c];
    to[c] = make_float4(v.x * f, v.y * f, v.z * f, v.w * f);
  }
}

static void AddRowScale() {
  const int rows = 32768, cols = 4096, pitch = 4097, padded = 4100;
  float* x = suite::Buffer<float>(size_t(rows) * pitch);
  float* y = suite::Buffer<float>(size_t(rows) * padded, suite::Fill::kZero);
  CHECK(cudaMemcpy2D(y, padded * 4, x, pitch * 4, cols * 4, rows, cudaMemcpyDeviceToDevice));
  float *s = suite::Buffer<float>(rows, suite::Fill::kFloat, 3);
  float* out = suite::Buffer<float>(size_t(rows) * cols, suite::Fill::kZero);
  pairs::Add(
      "rowscale", [=] { rowscale__bad<<<rows, 128>>>(x, s, out, cols, pitch); },
      [=] { rowscale__good<<<rows, 128>>>(y, s, out, cols, padded); }, out,
      size_t(rows) * cols);
}

// Decode scores of grouped-query attention: 8 query heads share a key head. The grid runs the
// query heads slowest (keys come from DRAM 8 times) or fastest (from L2).
__device__ void GroupScores(const __half* q, const __half* k, float* out, int batch, int head,
                            int chunk, int heads, int tokens) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const __half2* qv = reinterpret_cast<const __half2*>(q + (size_t(batch) * heads + head) * 128);
  const float2 q0 = __half22float2(qv[2 * lane]), q1 = __half22float2(qv[2 * lane + 1]);
  const __half* keys = k + (size_t(batch) * (heads / 8) + head / 8) * tokens * 128;
#pragma unroll 8
  for (int i = warp; i < 128; i += 8) {
    const int t = chunk * 128 + i;
    const uint2 raw = reinterpret_cast<const uint2*>(keys + size_t(t) * 128)[lane];
    const float2 k0 = __half22float2(*reinterpret_cast<const __half2*>(&raw.x));
    const float2 k1 = __half22float2(*reinterpret_cast<const __half2*>(&raw.y));
    const float s = pairs::WarpSum(q0.x * k0.x + q0.y * k0.y + q1.x * k1.x + q1.y * k1.y);
    if (lane == 0) {
      out[(size_t(batch) * heads + head) * tokens + t] = s;
    }
  }
}

KERNEL gqa__bad(const __half* __restrict__ q, const __half* __restrict__ k,
                float* __restrict__ out, int heads, int tokens) {
  GroupScores(q, k, out, blockIdx.y, blockIdx.z, blockIdx.x, heads, tokens);
}

KERNEL gqa__good(const __half* __restrict__ q, const __half* __restrict__ k,
                 float* __restrict__ out, int heads, int tokens) {
  GroupScores(q, k, out, blockIdx.z, blockIdx.y * 8 + blockIdx.x % 8, blockIdx.x / 8, heads,
              tokens);
}

static void AddGqa() {
  const int batch = 32, heads = 64, tokens = 4096;
  __half* q = suite::Buffer<__half>(size_t(batch) * heads * 128, suite::Fill::kHalf);
  const size_t keys = size_t(batch) * heads / 8 * tokens * 128;
  __half* k = suite::Buffer<__half>(keys, suite::Fill::kHalf, 2);
  float* out = suite::Buffer<float>(size_t(batch) * heads * tokens, suite::Fill::kZero);
  const dim3 bad(tokens / 128, batch, heads), good(tokens / 128 * 8, heads / 8, batch);
  pairs::Add(
      "gqa", [=] { gqa__bad<<<bad, 256>>>(q, k, out, heads, tokens); },
      [=] { gqa__good<<<good, 256>>>(q, k, out, heads, tokens); }, out,
      size_t(batch) * heads * tokens);
}

// Cross entropy of a vocabulary of 65536: maximum, sum and pick in three passes, or online.
__device__ float BlockReduce(float x, bool max) {
  __shared__ float part[32];
  x = max ? pairs::WarpMax(x) : pairs::WarpSum(x);
  __syncthreads();
  part[threadIdx.x / 32] = x;
  __syncthreads();
  x = part[threadIdx.x % (blockDim.x / 32)];
  for (int d = blockDim.x / 64; d > 0; d /= 2) {
    const float y = __shfl_xor_sync(~0u, x, d);
    x = max ? fmaxf(x, y) : x + y;
  }
  return x;
}

KERNEL crossentropy__bad(const float4* __restrict__ logits, const int* __restrict__ label,
                         float* __restrict__ loss, int words) {
  const float4* row = logits + size_t(blockIdx.x) * words / 4;
  float m = -INFINITY, sum = 0, mean = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < words / 4; i += blockDim.x) {
    m = fmaxf(m, fmaxf(fmaxf(row[i].x, row[i].y), fmaxf(row[i].z, row[i].w)));
  }
  m = BlockReduce(m, true);
#pragma unroll 4
  for (int i = threadIdx.x; i < words / 4; i += blockDim.x) {
    const float4 v = row[i];
    sum += __expf(v.x - m) + __expf(v.y - m) + __expf(v.z - m) + __expf(v.w - m);
  }
  sum = BlockReduce(sum, false);
#pragma unroll 4
  for (int i = threadIdx.x; i < words / 4; i += blockDim.x) {  // label smoothing
    mean += row[i].x + row[i].y + row[i].z + row[i].w;
  }
  mean = BlockReduce(mean, false) / words;
  if (threadIdx.x == 0) {
    const float hit = reinterpret_cast<const float*>(row)[label[blockIdx.x]];
    loss[blockIdx.x] = m + logf(sum) - 0.9f * hit - 0.1f * mean;
  }
}

KERNEL crossentropy__good(const float4* __restrict__ logits, const int* __restrict__ label,
                          float* __restrict__ loss, int words) {
  const float4* row = logits + size_t(blockIdx.x) * words / 4;
  float m = -INFINITY, sum = 0, mean = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < words / 4; i += blockDim.x) {
    const float4 v = row[i];
    const float top = fmaxf(m, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    sum = sum * __expf(m - top) + __expf(v.x - top) + __expf(v.y - top) + __expf(v.z - top) +
          __expf(v.w - top);
    m = top;
    mean += v.x + v.y + v.z + v.w;
  }
  const float all = BlockReduce(m, true);
  sum = BlockReduce(sum * __expf(m - all), false);
  mean = BlockReduce(mean, false) / words;
  if (threadIdx.x == 0) {
    const float hit = reinterpret_cast<const float*>(row)[label[blockIdx.x]];
    loss[blockIdx.x] = all + logf(sum) - 0.9f * hit - 0.1f * mean;
  }
}

static void AddCrossEntropy() {
  const int rows = 4096, words = 65536;
  float4* logits = suite::Buffer<float4>(size_t(rows) * words / 4);
  std::vector<int> label(rows);
  for (int i = 0; i < rows; ++i) {
    label[i] = i * 40503 % words;
  }
  const int* d_label = pairs::Upload(label);
  float* loss = suite::Buffer<float>(rows, suite::Fill::kZero);
  pairs::Add(
      "crossentropy",
      [=] { crossentropy__bad<<<rows, 512>>>(logits, d_label, loss, words); },
      [=] { crossentropy__good<<<rows, 512>>>(logits, d_label, loss, words); }, loss, rows);
}

// A sum of pinned host memory, or of the same data on the device.
__device__ void SumBlocks(const float4* x, float* out, int n) {
  float s = 0;
#pragma unroll 4
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
    const float4 v = x[i];
    s += v.x + v.y + v.z + v.w;
  }
  s = BlockReduce(s, false);
  if (threadIdx.x == 0) {
    out[blockIdx.x] = s;
  }
}

KERNEL hostsum__bad(const float4* __restrict__ x, float* __restrict__ out, int n) {
  SumBlocks(x, out, n);
}

KERNEL hostsum__good(const float4* __restrict__ x, float* __restrict__ out, int n) {
  SumBlocks(x, out, n);
}

static void AddHostSum() {
  const int n = 24 << 20, grid = pairs::kSms * 4;
  float4* x = suite::Buffer<float4>(n / 4);
  float4* host = nullptr;
  CHECK(cudaHostAlloc(&host, size_t(n) * 4, cudaHostAllocMapped));
  CHECK(cudaMemcpy(host, x, size_t(n) * 4, cudaMemcpyDeviceToHost));
  float* out = suite::Buffer<float>(grid, suite::Fill::kZero);
  pairs::Add(
      "hostsum", [=] { hostsum__bad<<<grid, 256>>>(host, out, n); },
      [=] { hostsum__good<<<grid, 256>>>(x, out, n); }, out, grid);
}

int main(int argc, char** argv) {
  AddEmbedding();
  AddGrey();
  AddResidual();
  AddRowScale();
  AddGqa();
  AddCrossEntropy();
  AddHostSum();
  return pairs::Main(argc, argv);
}
