// SPDX-License-Identifier: Apache-2.0
// Pairs about data that is loaded again and again from the caches.
#include "pairs.h"

constexpr int kWidth = 4096, kPad = 64, kChannels = 32, kShifts = 64;

// Stereo cost volume: for 64 shifts the product of left and shifted right features. Both operands
// of every multiply-add come from global memory, or from a tile with 4 x 8 results a thread.
KERNEL stereo__bad(const float* __restrict__ left, const float* __restrict__ right,
                   float* __restrict__ out) {
  const int x = blockIdx.x * 256 + threadIdx.x, shift = blockIdx.y, row = blockIdx.z;
  float s = 0;
#pragma unroll 8
  for (int c = 0; c < kChannels; ++c) {
    const int line = row * kChannels + c;
    s += left[line * kWidth + x] * right[line * (kWidth + kPad) + kPad + x - shift];
  }
  out[(size_t(row) * kShifts + shift) * kWidth + x] = s;
}

KERNEL stereo__good(const float* __restrict__ left, const float* __restrict__ right,
                    float* __restrict__ out) {
  __shared__ __align__(16) float l[kChannels][128], r[kChannels][128 + kPad];
  const int t = threadIdx.x, x0 = blockIdx.x * 128, row = blockIdx.y;
  for (int i = t; i < kChannels * 128; i += 256) {
    l[i / 128][i % 128] = left[(row * kChannels + i / 128) * kWidth + x0 + i % 128];
  }
  for (int i = t; i < kChannels * 192; i += 256) {
    r[i / 192][i % 192] = right[(row * kChannels + i / 192) * (kWidth + kPad) + x0 + i % 192];
  }
  __syncthreads();
  const int x = t % 32 * 4, shift = t / 32 * 8;
  float s[8][4] = {};
#pragma unroll 4
  for (int c = 0; c < kChannels; ++c) {
    float a[4], b[12];  // b[k] is the right feature at x - shift - 8 + k
    *reinterpret_cast<float4*>(a) = *reinterpret_cast<float4*>(&l[c][x]);
#pragma unroll
    for (int k = 0; k < 12; k += 4) {
      *reinterpret_cast<float4*>(b + k) =
          *reinterpret_cast<float4*>(&r[c][kPad + x - shift - 8 + k]);
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      s[i / 4][i % 4] += a[i % 4] * b[8 + i % 4 - i / 4];
    }
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    float* to = out + (size_t(row) * kShifts + shift + j) * kWidth + x0 + x;
    *reinterpret_cast<float4*>(to) = make_float4(s[j][0], s[j][1], s[j][2], s[j][3]);
  }
}

static void AddStereo() {
  const int rows = 256;
  float* left = suite::Buffer<float>(size_t(rows) * kChannels * kWidth);
  float* right = suite::Buffer<float>(size_t(rows) * kChannels * (kWidth + kPad),
                                      suite::Fill::kFloat, 2);
  float* out = suite::Buffer<float>(size_t(rows) * kShifts * kWidth, suite::Fill::kZero);
  pairs::Add(
      "stereo",
      [=] { stereo__bad<<<dim3(kWidth / 256, kShifts, rows), 256>>>(left, right, out); },
      [=] { stereo__good<<<dim3(kWidth / 128, rows), 256>>>(left, right, out); }, out,
      size_t(rows) * kShifts * kWidth);
}

// Self-interaction of small systems of 256 bodies: the positions are re-read from global memory
// for every body, in three scalar loads, or once into shared memory for four bodies a thread.
KERNEL bodies__bad(const float* __restrict__ p, float* __restrict__ out) {
  const int i = threadIdx.x;
  const float* mine = p + size_t(blockIdx.x) * 768;
  const float x = mine[i], y = mine[256 + i], z = mine[512 + i];
  float s = 0;
#pragma unroll 4
  for (int j = 0; j < 256; ++j) {
    const float dx = x - mine[j], dy = y - mine[256 + j], dz = z - mine[512 + j];
    s += fmaxf(0.0f, 0.5f - dx * dx - dy * dy - dz * dz);
  }
  out[blockIdx.x * 256 + i] = s;
}

KERNEL bodies__good(const float* __restrict__ p, float* __restrict__ out) {
  __shared__ float4 all[2][256];
  const int half = threadIdx.x / 64, t = threadIdx.x % 64;
  const size_t system = size_t(blockIdx.x) * 2 + half;
  const float* mine = p + system * 768;
  float4 own[4];
  float s[4] = {};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int i = t + 64 * k;
    own[k] = make_float4(mine[i], mine[256 + i], mine[512 + i], 0);
    all[half][i] = own[k];
  }
  __syncthreads();
#pragma unroll 4
  for (int j = 0; j < 256; ++j) {
    const float4 other = all[half][j];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float dx = own[k].x - other.x, dy = own[k].y - other.y, dz = own[k].z - other.z;
      s[k] += fmaxf(0.0f, 0.5f - dx * dx - dy * dy - dz * dz);
    }
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    out[system * 256 + t + 64 * k] = s[k];
  }
}

static void AddBodies() {
  const int systems = 32768;
  float* p = suite::Buffer<float>(size_t(systems) * 768);
  float* out = suite::Buffer<float>(size_t(systems) * 256, suite::Fill::kZero);
  pairs::Add(
      "bodies", [=] { bodies__bad<<<systems, 256>>>(p, out); },
      [=] { bodies__good<<<systems / 2, 128>>>(p, out); }, out, size_t(systems) * 256);
}

int main(int argc, char** argv) {
  AddStereo();
  AddBodies();
  return pairs::Main(argc, argv);
}
