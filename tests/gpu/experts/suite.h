// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder have in common: cases with a name, timed, profiled or listed.
// A case is one launch of one kernel that has the case's name, so that the profile of a case is
// found by it.
//   program list             names, one a line
//   program time [NAME]      NAME,median_us of 11 cold launches (L2 flushed), CUDA events
//   program profile [NAME]   each case twice warm, then once between cudaProfilerStart and Stop
#pragma once

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#define CHECK(call)                                                                    \
  do {                                                                                 \
    const cudaError_t e_ = (call);                                                     \
    if (e_ != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      std::exit(1);                                                                    \
    }                                                                                  \
  } while (0)

namespace suite {

struct Case {
  std::string name;
  std::function<void()> launch;
};

inline std::vector<Case>& Cases() {
  static std::vector<Case> cases;
  return cases;
}

inline void Add(std::string name, std::function<void()> launch) {
  Cases().push_back({std::move(name), std::move(launch)});
}

__global__ void suite_fill(unsigned* p, size_t n, unsigned seed, int kind) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(gridDim.x) * blockDim.x) {
    unsigned x = static_cast<unsigned>(i) * 2654435761u ^ seed;
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    // 0: float in [-1, 1); 1: two bf16 in [-1, 1); 2: raw bits; 3: two fp16 in [-1, 1)
    if (kind == 0) {
      p[i] = __float_as_uint(static_cast<float>(x) * 4.656612873e-10f - 1.0f);
    } else if (kind == 1) {
      p[i] = (x & 0x807f807fu) | 0x3f003f00u;
    } else if (kind == 3) {
      p[i] = (x & 0x83ff83ffu) | 0x38003800u;
    } else {
      p[i] = x;
    }
  }
}

enum class Fill { kFloat = 0, kBf16 = 1, kBits = 2, kHalf = 3, kZero = 9 };

/// Device memory of `bytes` (a multiple of 4), filled; lives as long as the program.
template <class T>
T* Buffer(size_t count, Fill fill = Fill::kFloat, unsigned seed = 1) {
  const size_t bytes = (count * sizeof(T) + 15) / 16 * 16;
  void* p = nullptr;
  CHECK(cudaMalloc(&p, bytes));
  CHECK(cudaMemset(p, 0, bytes));
  if (fill != Fill::kZero) {
    suite_fill<<<1024, 256>>>(static_cast<unsigned*>(p), bytes / 4, seed, static_cast<int>(fill));
    CHECK(cudaDeviceSynchronize());
  }
  return static_cast<T*>(p);
}

inline void FlushL2() {
  static char* scratch = nullptr;
  constexpr size_t kBytes = 256u << 20;
  if (scratch == nullptr) {
    CHECK(cudaMalloc(&scratch, kBytes));
  }
  CHECK(cudaMemsetAsync(scratch, 1, kBytes));
}

inline double MedianMicroseconds(const Case& c) {
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  c.launch();
  c.launch();
  CHECK(cudaDeviceSynchronize());
  std::vector<float> times;
  for (int i = 0; i < 11; ++i) {
    FlushL2();
    CHECK(cudaEventRecord(start));
    c.launch();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  CHECK(cudaGetLastError());
  return 1000.0 * times[times.size() / 2];
}

inline int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "list";
  const std::string only = argc > 2 ? argv[2] : "";
  for (const Case& c : Cases()) {
    if (!only.empty() && c.name != only) {
      continue;
    }
    if (mode == "list") {
      std::printf("%s\n", c.name.c_str());
    } else if (mode == "time") {
      std::printf("%s,%.3f\n", c.name.c_str(), MedianMicroseconds(c));
    } else {
      c.launch();
      c.launch();
      CHECK(cudaDeviceSynchronize());
      CHECK(cudaProfilerStart());
      c.launch();
      CHECK(cudaDeviceSynchronize());
      CHECK(cudaProfilerStop());
    }
    std::fflush(stdout);
  }
  CHECK(cudaGetLastError());
  return 0;
}

}  // namespace suite
