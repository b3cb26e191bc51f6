// SPDX-License-Identifier: Apache-2.0
// Holdout pairs about the kind of arithmetic and the way through it.
#include "pairs.h"

// Great-circle distances of float coordinates: in double because of the literals, or in float.
KERNEL haversine__bad(const float2* __restrict__ at, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float2 p = at[i], q = at[(i + 4096) & (n - 1)];
  const double a = sin((q.x - p.x) * 0.5), b = sin((q.y - p.y) * 0.5);
  const double h = a * a + cos(p.x * 1.0) * cos(q.x * 1.0) * b * b;
  out[i] = static_cast<float>(12742.0 * asin(sqrt(fmin(h, 1.0))));
}

KERNEL haversine__good(const float2* __restrict__ at, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float2 p = at[i], q = at[(i + 4096) & (n - 1)];
  const float a = sinf((q.x - p.x) * 0.5f), b = sinf((q.y - p.y) * 0.5f);
  const float h = a * a + cosf(p.x) * cosf(q.x) * b * b;
  out[i] = 12742.0f * asinf(sqrtf(fminf(h, 1.0f)));
}

static void AddHaversine() {
  const int n = 16 << 20;
  float2* at = suite::Buffer<float2>(n);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "haversine", [=] { haversine__bad<<<n / 256, 256>>>(at, out, n); },
      [=] { haversine__good<<<n / 256, 256>>>(at, out, n); }, out, n);
}

// Bonded forces of molecular dynamics: r^-12 and r^-6 with the constants in double, or in float.
KERNEL lennard__bad(const float4* __restrict__ pos, float* __restrict__ out) {
  __shared__ float4 cell[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  const float4 own = cell[threadIdx.x] = pos[i];
  __syncthreads();
  double e = 0;
#pragma unroll 4
  for (int j = 0; j < 64; ++j) {
    const double x = own.x - cell[j].x, y = own.y - cell[j].y, z = own.z - cell[j].z;
    const double s = 1.0 / (x * x + y * y + z * z + 0.5), s3 = s * s * s;
    e += 4.0 * (s3 * s3 - s3);
  }
  out[i] = static_cast<float>(e);
}

KERNEL lennard__good(const float4* __restrict__ pos, float* __restrict__ out) {
  __shared__ float4 cell[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  const float4 own = cell[threadIdx.x] = pos[i];
  __syncthreads();
  float e = 0;
#pragma unroll 4
  for (int j = 0; j < 64; ++j) {
    const float x = own.x - cell[j].x, y = own.y - cell[j].y, z = own.z - cell[j].z;
    const float s = 1.0f / (x * x + y * y + z * z + 0.5f), s3 = s * s * s;
    e += 4.0f * (s3 * s3 - s3);
  }
  out[i] = e;
}

static void AddLennard() {
  const int n = 1 << 20;
  float4* pos = suite::Buffer<float4>(n);
  float* out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "lennard", [=] { lennard__bad<<<n / 64, 64>>>(pos, out); },
      [=] { lennard__good<<<n / 64, 64>>>(pos, out); }, out, n);
}

__device__ float Reciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

// 128 Lorentz lines at each point of a spectrum: a reciprocal a line, or one for four lines on a
// common denominator.
KERNEL lorentz__bad(const float* __restrict__ x, float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  float s = 0;
#pragma unroll
  for (int k = 0; k < 128; ++k) {
    const float d = v - 0.015f * k;
    s += Reciprocal(fmaf(d, d, 0.3f));
  }
  out[i] = s;
}

KERNEL lorentz__good(const float* __restrict__ x, float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = x[i];
  float s = 0;
#pragma unroll
  for (int k = 0; k < 128; k += 4) {
    float q[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float d = v - 0.015f * (k + j);
      q[j] = fmaf(d, d, 0.3f);
    }
    const float a = q[0] * q[1], b = q[2] * q[3];
    s = fmaf(fmaf(q[0] + q[1], b, (q[2] + q[3]) * a), Reciprocal(a * b), s);
  }
  out[i] = s;
}

static void AddLorentz() {
  const int n = 8 << 20;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "lorentz", [=] { lorentz__bad<<<n / 256, 256>>>(x, out); },
      [=] { lorentz__good<<<n / 256, 256>>>(x, out); }, out, n);
}

// CRC-32 of 16 words a thread: bit after bit, or by four tables in shared memory.
KERNEL crc32__bad(const unsigned* __restrict__ word, unsigned* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned c = ~0u;
#pragma unroll 1
  for (int k = 0; k < 16; ++k) {
    c ^= word[k * n + i];
#pragma unroll
    for (int b = 0; b < 32; ++b) {
      c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0u);
    }
  }
  out[i] = ~c;
}

KERNEL crc32__good(const unsigned* __restrict__ word, const unsigned* __restrict__ table,
                   unsigned* __restrict__ out, int n) {
  __shared__ unsigned t[8][16];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 128) {
    t[threadIdx.x / 16][threadIdx.x % 16] = table[threadIdx.x];
  }
  __syncthreads();
  unsigned c = ~0u;
#pragma unroll 1
  for (int k = 0; k < 16; ++k) {
    c ^= word[k * n + i];
    unsigned r = 0;
#pragma unroll
    for (int b = 0; b < 8; ++b) {
      r ^= t[b][c >> 4 * b & 15];
    }
    c = r;
  }
  out[i] = ~c;
}

static void AddCrc() {
  const int n = 2 << 20;
  std::vector<unsigned> table(128);
  for (int nibble = 0; nibble < 8; ++nibble) {
    for (unsigned v = 0; v < 16; ++v) {
      unsigned c = v << 4 * nibble;
      for (int b = 0; b < 32; ++b) {
        c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0u);
      }
      table[nibble * 16 + v] = c;
    }
  }
  const unsigned* d_table = pairs::Upload(table);
  unsigned* word = suite::Buffer<unsigned>(size_t(n) * 16, suite::Fill::kBits);
  unsigned* out = suite::Buffer<unsigned>(n, suite::Fill::kZero);
  pairs::Add(
      "crc32", [=] { crc32__bad<<<n / 256, 256>>>(word, out, n); },
      [=] { crc32__good<<<n / 256, 256>>>(word, d_table, out, n); }, out, n, 0);
}

// Days of a calendar with months of run-time length: three 64-bit divisions a time stamp, or
// 32-bit ones by a reciprocal found once.
KERNEL stamps__bad(const unsigned* __restrict__ stamp, int* __restrict__ out, long long day,
                   long long month, long long year) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int s = 0;
#pragma unroll 1
  for (int k = 0; k < 8; ++k) {
    const long long t = stamp[i] + k * 86399ll, d = t / day;
    s += static_cast<int>(d % month + 31 * (d / month % 12) + 372 * (d / year));
  }
  out[i] = s;
}

/// x / y for x below 2^32 - y, with m = floor((2^32 - 1) / y): the estimate is at most one too low.
__device__ unsigned Quotient(unsigned x, unsigned y, unsigned m) {
  unsigned q = __umulhi(x, m);
  const unsigned r = x - q * y;
  q += r >= y ? 1 : 0;
  return q;
}

KERNEL stamps__good(const unsigned* __restrict__ stamp, int* __restrict__ out, unsigned day,
                    unsigned month, unsigned year) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned by_day = 0xffffffffu / day, by_month = 0xffffffffu / month;
  const unsigned by_year = 0xffffffffu / year;
  int s = 0;
#pragma unroll 1
  for (int k = 0; k < 8; ++k) {
    const unsigned d = Quotient(stamp[i] + k * 86399u, day, by_day);
    const unsigned m = Quotient(d, month, by_month);
    s += static_cast<int>(d - m * month + 31 * (m % 12) + 372 * Quotient(d, year, by_year));
  }
  out[i] = s;
}

static void AddStamps() {
  const int n = 4 << 20;
  std::vector<unsigned> host(n);
  for (int i = 0; i < n; ++i) {
    host[i] = static_cast<unsigned>(i) * 2654435761u >> 1;
  }
  const unsigned* stamp = pairs::Upload(host);
  int* out = suite::Buffer<int>(n, suite::Fill::kZero);
  pairs::Add(
      "stamps", [=] { stamps__bad<<<n / 256, 256>>>(stamp, out, 86400, 30, 365); },
      [=] { stamps__good<<<n / 256, 256>>>(stamp, out, 86400, 30, 365); }, out, n, 0);
}

// Cells of two phases iterate by different laws: the phases lie in every warp side by side, or each
// warp has one.
__device__ float Phase(float v, int phase) {
  if (phase == 0) {
#pragma unroll 8
    for (int k = 0; k < 256; ++k) {
      v = fmaf(v, fmaf(v, -0.3f, 0.9f), 0.05f);
    }
  } else {
#pragma unroll 8
    for (int k = 0; k < 256; ++k) {
      v = fmaf(fmaxf(v, 0.1f), -0.7f, 0.4f) * 0.99f;
    }
  }
  return v;
}

KERNEL phases__bad(const float* __restrict__ x, float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = Phase(x[i], i & 1);
}

KERNEL phases__good(const float* __restrict__ x, float* __restrict__ out) {
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t / 64 * 64 + t % 32 * 2 + (t / 32 & 1);
  out[i] = Phase(x[i], t / 32 & 1);
}

static void AddPhases() {
  const int n = 8 << 20;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "phases", [=] { phases__bad<<<n / 256, 256>>>(x, out); },
      [=] { phases__good<<<n / 256, 256>>>(x, out); }, out, n);
}

// Reads of 16 to 1024 bases, hashed by a thread each: as they came, or sorted by length.
KERNEL reads__bad(const int2* __restrict__ read, unsigned* __restrict__ out) {
  const int2 r = read[blockIdx.x * blockDim.x + threadIdx.x];
  unsigned h = r.x;
#pragma unroll 4
  for (int k = 0; k < r.y; ++k) {
    h = (h ^ (h >> 15)) * 0x2c1b3c6du + k;
  }
  out[r.x] = h >> 8;
}

KERNEL reads__good(const int2* __restrict__ read, unsigned* __restrict__ out) {
  const int2 r = read[blockIdx.x * blockDim.x + threadIdx.x];
  unsigned h = r.x;
#pragma unroll 4
  for (int k = 0; k < r.y; ++k) {
    h = (h ^ (h >> 15)) * 0x2c1b3c6du + k;
  }
  out[r.x] = h >> 8;
}

static void AddReads() {
  const int n = 2 << 20;
  std::vector<int2> read(n);
  for (int i = 0; i < n; ++i) {
    const unsigned h = static_cast<unsigned>(i) * 2654435761u >> 12;
    read[i] = make_int2(
        i, h % 8 == 0 ? 512 + static_cast<int>(h >> 3 & 511) : 16 + static_cast<int>(h >> 3 & 31));
  }
  const int2* as_came = pairs::Upload(read);
  std::stable_sort(read.begin(), read.end(), [](int2 a, int2 b) { return a.y > b.y; });
  const int2* sorted = pairs::Upload(read);
  unsigned* out = suite::Buffer<unsigned>(n, suite::Fill::kZero);
  pairs::Add(
      "reads", [=] { reads__bad<<<n / 256, 256>>>(as_came, out); },
      [=] { reads__good<<<n / 256, 256>>>(sorted, out); }, out, n, 0);
}

// Noise shaping rounds 64 times a sample: by conversion to a 64-bit integer and back, or by the
// addition of 1.5 * 2^23.
template <bool kConvert>
__device__ void Shape(const float* __restrict__ x, float* __restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float v = 50.0f * x[i];
  float error = 0, s = 0;
#pragma unroll
  for (int k = 0; k < 64; ++k) {
    const float wanted = fmaf(v, 1.0f + 0.015625f * k, error);
    const float q = kConvert ? static_cast<float>(__float2ll_rn(wanted))
                             : __fadd_rn(__fadd_rn(wanted, 12582912.0f), -12582912.0f);
    error = wanted - q;
    s += q;
  }
  out[i] = s;
}

KERNEL noiseshape__bad(const float* x, float* out) {
  Shape<true>(x, out);
}

KERNEL noiseshape__good(const float* x, float* out) {
  Shape<false>(x, out);
}

static void AddNoiseShape() {
  const int n = 8 << 20;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  pairs::Add(
      "noiseshape", [=] { noiseshape__bad<<<n / 256, 256>>>(x, out); },
      [=] { noiseshape__good<<<n / 256, 256>>>(x, out); }, out, n);
}

int main(int argc, char** argv) {
  AddHaversine();
  AddLennard();
  AddLorentz();
  AddCrc();
  AddStamps();
  AddPhases();
  AddReads();
  AddNoiseShape();
  return pairs::Main(argc, argv);
}
