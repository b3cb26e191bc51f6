// SPDX-License-Identifier: Apache-2.0
// Pairs of kernels that compute the same, one with a planted defect (NAME__bad) and one without
// (NAME__good). Beside the modes of suite.h:
//   program check [NAME]   NAME,largest |bad - good| over largest |good|,ok or DIFFERS
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

#include "suite.h"

#define KERNEL extern "C" __global__ void

namespace pairs {

constexpr int kSms = 132;  // H200; the grids that are planted too small or just too large use it

struct Comparison {
  std::string name;
  std::function<void()> bad, good;
  std::function<std::vector<double>()> read;
  std::function<void()> clear;
  double tolerance;
};

inline std::vector<Comparison>& Comparisons() {
  static std::vector<Comparison> all;
  return all;
}

inline double ToDouble(__half x) {
  return __half2float(x);
}

inline double ToDouble(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

template <class T>
double ToDouble(T x) {
  return static_cast<double>(x);
}

/// Both launches write `count` values to `out`; the check clears it before each. At most the first
/// 4 Mi values are compared.
template <class T>
void Add(const std::string& name, std::function<void()> bad, std::function<void()> good, T* out,
         size_t count, double tolerance = 1e-3) {
  suite::Add(name + "__bad", bad);
  suite::Add(name + "__good", good);
  const size_t compared = std::min<size_t>(count, size_t{4} << 20);
  auto read = [out, compared] {
    std::vector<T> host(compared);
    CHECK(cudaMemcpy(host.data(), out, compared * sizeof(T), cudaMemcpyDefault));
    std::vector<double> values(compared);
    std::transform(host.begin(), host.end(), values.begin(), [](T x) { return ToDouble(x); });
    return values;
  };
  auto clear = [out, count] { CHECK(cudaMemset(out, 0, count * sizeof(T))); };
  Comparisons().push_back({name, bad, good, read, clear, tolerance});
}

template <class T>
T* Upload(const std::vector<T>& host) {
  T* p = suite::Buffer<T>(host.size(), suite::Fill::kZero);
  CHECK(cudaMemcpy(p, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}

inline bool CheckOne(const Comparison& c) {
  c.clear();
  c.bad();
  CHECK(cudaDeviceSynchronize());
  const std::vector<double> bad = c.read();
  c.clear();
  c.good();
  CHECK(cudaDeviceSynchronize());
  const std::vector<double> good = c.read();
  double difference = 0, scale = 0;
  bool finite = true;
  for (size_t i = 0; i < bad.size(); ++i) {
    finite = finite && std::isfinite(bad[i]) && std::isfinite(good[i]);
    difference = std::max(difference, std::fabs(bad[i] - good[i]));
    scale = std::max(scale, std::fabs(good[i]));
  }
  // Nothing but zeros means that a kernel did not run or wrote elsewhere.
  const bool ok = finite && scale > 0 && difference <= c.tolerance * scale;
  std::printf("%s,%.3g,%s\n", c.name.c_str(), scale > 0 ? difference / scale : INFINITY,
              ok ? "ok" : "DIFFERS");
  std::fflush(stdout);
  return ok;
}

inline int Main(int argc, char** argv) {
  if (argc < 2 || std::string(argv[1]) != "check") {
    return suite::Main(argc, argv);
  }
  bool ok = true;
  for (const Comparison& c : Comparisons()) {
    if (argc < 3 || c.name == argv[2]) {
      ok = CheckOne(c) && ok;
    }
  }
  return ok ? 0 : 1;
}

__device__ inline float WarpSum(float x) {
  for (int d = 16; d > 0; d /= 2) {
    x += __shfl_xor_sync(~0u, x, d);
  }
  return x;
}

__device__ inline float WarpMax(float x) {
  for (int d = 16; d > 0; d /= 2) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, d));
  }
  return x;
}

}  // namespace pairs
