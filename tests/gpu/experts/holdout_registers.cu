// SPDX-License-Identifier: Apache-2.0
// Holdout pairs about registers: spills and arrays that do not fit them.
#include "pairs.h"

// 48 moments of a stream of values, all in registers, or capped at 32 registers.
__device__ void Moments(const float* __restrict__ x, float* __restrict__ out, int terms) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  float m[48];
#pragma unroll
  for (int k = 0; k < 48; ++k) {
    m[k] = 0;
  }
#pragma unroll 1
  for (int t = 0; t < terms; ++t) {
    const float v = x[size_t(t) * n + i];
    float p = v;
#pragma unroll
    for (int k = 0; k < 48; ++k) {
      m[k] = fmaf(m[k], 0.5f, p);
      p = fmaf(p, v, 0.01f * (k + 1));
    }
  }
  // All moments are needed at the end: a recurrence that runs backwards through them.
  float s = 0;
#pragma unroll
  for (int k = 47; k >= 0; --k) {
    s = fmaf(s, 0.9f, m[k]);
  }
  out[i] = s;
}

KERNEL __launch_bounds__(1024, 2) moments__bad(const float* x, float* out, int terms) {
  Moments(x, out, terms);
}

KERNEL __launch_bounds__(256) moments__good(const float* x, float* out, int terms) {
  Moments(x, out, terms);
}

static void AddMoments() {
  const int n = pairs::kSms * 8192, terms = 64;
  float *x = suite::Buffer<float>(size_t(n) * terms),
        *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "moments", [=] { moments__bad<<<n / 256, 256>>>(x, out, terms); },
      [=] { moments__good<<<n / 256, 256>>>(x, out, terms); }, out, n);
}

// Chains of 4 x 4 transforms of 8 skeletons, one a warp: a product of two matrices a joint,
// uncapped, or capped at 32 registers.
__device__ void Joints(const float4* __restrict__ joint, float4* __restrict__ out, int joints) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  float m[16];
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    m[k] = (k % 5 == 0 ? 1.0f : 0.0f) + 0.01f * static_cast<float>((i + k) % 16);
  }
#pragma unroll 1
  for (int j = 0; j < joints; ++j) {
    float a[16], r[16];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      *reinterpret_cast<float4*>(a + 4 * k) = joint[(j * 4 + k) * 8 + i / 32 % 8];
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      const int row = k / 4 * 4, col = k % 4;
      r[k] = m[row] * a[col] + m[row + 1] * a[4 + col] + m[row + 2] * a[8 + col] +
             m[row + 3] * a[12 + col];
    }
    // Half the transpose blended in keeps all three matrices alive.
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      m[k] = 0.3f * r[k] + 0.1f * r[k % 4 * 4 + k / 4] + 0.05f * a[15 - k];
    }
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    out[size_t(k) * n + i] = make_float4(m[4 * k], m[4 * k + 1], m[4 * k + 2], m[4 * k + 3]);
  }
}

KERNEL __launch_bounds__(1024, 2) joints__bad(const float4* joint, float4* out, int joints) {
  Joints(joint, out, joints);
}

KERNEL __launch_bounds__(256) joints__good(const float4* joint, float4* out, int joints) {
  Joints(joint, out, joints);
}

static void AddJoints() {
  const int n = pairs::kSms * 16384, joints = 24;
  float4* joint = suite::Buffer<float4>(8 * 4 * joints);
  float4* out = suite::Buffer<float4>(size_t(n) * 4, suite::Fill::kZero);
  pairs::Add(
      "joints", [=] { joints__bad<<<n / 256, 256>>>(joint, out, joints); },
      [=] { joints__good<<<n / 256, 256>>>(joint, out, joints); }, reinterpret_cast<float*>(out),
      size_t(n) * 16);
}

// Intervals in a bounding hierarchy of 4096 leaves: a stack of nodes in a local array, or the path
// read off the number of the node.
constexpr int kLeaves = 4096;

KERNEL hierarchy__bad(const float2* __restrict__ box, const float* __restrict__ query,
                      int* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float q = query[i];
  int stack[32];
  int top = 0, hits = 0;
  stack[top++] = 1;
  while (top > 0) {
    const int node = stack[--top];
    const float2 b = box[node];
    if (q >= b.x && q <= b.y) {
      if (node >= kLeaves) {
        hits += node & 15;
      } else {
        stack[top++] = 2 * node + 1;
        stack[top++] = 2 * node;
      }
    }
  }
  out[i] = hits;
}

KERNEL hierarchy__good(const float2* __restrict__ box, const float* __restrict__ query,
                       int* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float q = query[i];
  int node = 1, hits = 0;
  while (node > 0) {
    const float2 b = box[node];
    if (q >= b.x && q <= b.y && node < kLeaves) {
      node = 2 * node;
    } else {
      hits += q >= b.x && q <= b.y ? node & 15 : 0;
      // Up past all right children, then to the sibling.
      node = node + 1;
      node >>= __ffs(node) - 1;
      node = node == 1 ? 0 : node;
    }
  }
  out[i] = hits;
}

static void AddHierarchy() {
  const int n = 4 << 20;
  std::vector<float2> box(2 * kLeaves);
  for (int k = 0; k < kLeaves; ++k) {
    const float x = static_cast<float>(k) / (kLeaves / 2) - 1.0f;
    box[kLeaves + k] = make_float2(x, x + 0.0015f);
  }
  for (int k = kLeaves - 1; k > 0; --k) {
    box[k] = make_float2(std::min(box[2 * k].x, box[2 * k + 1].x),
                         std::max(box[2 * k].y, box[2 * k + 1].y));
  }
  const float2* d_box = pairs::Upload(box);
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) {
    host[i] = static_cast<float>(i) / (n / 2) - 1.0f;
  }
  const float* query = pairs::Upload(host);
  int* out = suite::Buffer<int>(n, suite::Fill::kZero);
  pairs::Add(
      "hierarchy", [=] { hierarchy__bad<<<n / 128, 128>>>(d_box, query, out); },
      [=] { hierarchy__good<<<n / 128, 128>>>(d_box, query, out); }, out, n, 0);
}

// A delay line of 16 samples a thread with a delay that varies: a local array, or a column of
// shared memory.
template <class Line>
__device__ void Flanger(const float* __restrict__ x, float* __restrict__ y, int samples,
                        Line line) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < 16; ++k) {
    line(k) = 0;
  }
  float v = x[i];
#pragma unroll 1
  for (int s = 0; s < samples; ++s) {
    line(s & 15) = v;
    const int delay = __float_as_int(v) >> 8 & 15;
    const float a = line((s - delay) & 15), b = line((s + delay + 3) & 15);
    v = fmaf(v, 0.6f, fmaf(a, 0.3f, fmaf(b, 0.2f, 0.01f)));
  }
  y[i] = v;
}

KERNEL flanger__bad(const float* x, float* y, int samples) {
  float line[16];
  Flanger(x, y, samples, [&](int k) -> float& { return line[k]; });
}

KERNEL flanger__good(const float* x, float* y, int samples) {
  __shared__ float line[16 * 128];
  Flanger(x, y, samples, [&](int k) -> float& { return line[k * 128 + threadIdx.x]; });
}

static void AddFlanger() {
  const int n = pairs::kSms * 8192;
  float *x = suite::Buffer<float>(n), *y = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "flanger", [=] { flanger__bad<<<n / 128, 128>>>(x, y, 256); },
      [=] { flanger__good<<<n / 128, 128>>>(x, y, 256); }, y, n);
}

int main(int argc, char** argv) {
  AddMoments();
  AddJoints();
  AddHierarchy();
  AddFlanger();
  return pairs::Main(argc, argv);
}
