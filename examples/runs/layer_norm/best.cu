#include "kernelpro_task.h"

constexpr int kWarps = 4;

__device__ float WarpSum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

// Any extent: each warp normalises one row, three passes over memory.
__global__ void __launch_bounds__(kWarps * 32)
    LayerNormAny(const float* __restrict__ x, const float* __restrict__ gain,
                 const float* __restrict__ bias, float* __restrict__ y, int rows, int cols) {
  const int row = blockIdx.x * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* in = x + static_cast<size_t>(row) * cols;
  float* out = y + static_cast<size_t>(row) * cols;
  const float inv = 1.0f / cols;
  float sum = 0.0f;
  for (int col = lane; col < cols; col += 32) sum += in[col];
  const float mean = WarpSum(sum) * inv;
  float squares = 0.0f;
  for (int col = lane; col < cols; col += 32) {
    const float d = in[col] - mean;
    squares += d * d;
  }
  const float rstd = rsqrtf(WarpSum(squares) * inv + 1e-5f);
  for (int col = lane; col < cols; col += 32)
    out[col] = (in[col] - mean) * rstd * gain[col] + bias[col];
}

// cols = 128 * kVec: each warp keeps its row in registers, float4 accesses.
template <int kVec>
__global__ void __launch_bounds__(kWarps * 32)
    LayerNormVec(const float4* __restrict__ x, const float4* __restrict__ gain,
                 const float4* __restrict__ bias, float4* __restrict__ y, int rows) {
  // Two rows a warp, both loaded before either is reduced; gain and bias serve both.
  const int row = (blockIdx.x * kWarps + threadIdx.x / 32) * 2;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  const bool two = row + 1 < rows;
  const float4* in = x + static_cast<size_t>(row) * (32 * kVec) + lane;
  const float4* in2 = two ? in + 32 * kVec : in;
  float4* out = y + static_cast<size_t>(row) * (32 * kVec) + lane;
  constexpr float kInv = 1.0f / (128 * kVec);
  float4 v[kVec];
  float4 w[kVec];
#pragma unroll
  for (int i = 0; i < kVec; ++i) v[i] = __ldcs(in + i * 32);
#pragma unroll
  for (int i = 0; i < kVec; ++i) w[i] = __ldcs(in2 + i * 32);
  float sum = 0.0f;
  float sum2 = 0.0f;
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    sum += (v[i].x + v[i].y) + (v[i].z + v[i].w);
    sum2 += (w[i].x + w[i].y) + (w[i].z + w[i].w);
  }
  const float mean = WarpSum(sum) * kInv;
  const float mean2 = WarpSum(sum2) * kInv;
  float squares = 0.0f;
  float squares2 = 0.0f;
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    v[i].x -= mean;
    v[i].y -= mean;
    v[i].z -= mean;
    v[i].w -= mean;
    squares += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
    w[i].x -= mean2;
    w[i].y -= mean2;
    w[i].z -= mean2;
    w[i].w -= mean2;
    squares2 += w[i].x * w[i].x + w[i].y * w[i].y + w[i].z * w[i].z + w[i].w * w[i].w;
  }
  const float rstd = rsqrtf(WarpSum(squares) * kInv + 1e-5f);
  const float rstd2 = rsqrtf(WarpSum(squares2) * kInv + 1e-5f);
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    const float4 g = __ldg(gain + i * 32 + lane);
    const float4 b = __ldg(bias + i * 32 + lane);
    __stcs(out + i * 32,
           make_float4(v[i].x * rstd * g.x + b.x, v[i].y * rstd * g.y + b.y,
                       v[i].z * rstd * g.z + b.z, v[i].w * rstd * g.w + b.w));
    if (two)
      __stcs(out + (i + kVec) * 32,
             make_float4(w[i].x * rstd2 * g.x + b.x, w[i].y * rstd2 * g.y + b.y,
                         w[i].z * rstd2 * g.z + b.z, w[i].w * rstd2 * g.w + b.w));
  }
}

static bool Aligned(const void* p) { return (reinterpret_cast<uintptr_t>(p) & 15) == 0; }

template <int kVec>
static void Launch(const TaskArgs* args, int blocks, int rows, cudaStream_t stream) {
  LayerNormVec<kVec><<<(blocks + 1) / 2, kWarps * 32, 0, stream>>>(
      reinterpret_cast<const float4*>(args->x), reinterpret_cast<const float4*>(args->gain),
      reinterpret_cast<const float4*>(args->bias), reinterpret_cast<float4*>(args->y), rows);
}

extern "C" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {
  const int rows = static_cast<int>(args->rows);
  const int cols = static_cast<int>(args->cols);
  const int blocks = (rows + kWarps - 1) / kWarps;
  const bool aligned =
      Aligned(args->x) && Aligned(args->y) && Aligned(args->gain) && Aligned(args->bias);
  if (aligned && cols == 1024) {
    Launch<8>(args, blocks, rows, stream);
  } else if (aligned && cols == 512) {
    Launch<4>(args, blocks, rows, stream);
  } else if (aligned && cols == 256) {
    Launch<2>(args, blocks, rows, stream);
  } else {
    LayerNormAny<<<blocks, kWarps * 32, 0, stream>>>(args->x, args->gain, args->bias, args->y,
                                                     rows, cols);
  }
  return cudaGetLastError();
}
