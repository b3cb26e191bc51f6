// SPDX-License-Identifier: Apache-2.0
// Times a candidate's library on a real GPU, for comparing modelled with measured times:
//   time_candidate LIBRARY ARG...      ARG as of TaskArgs, in order: i64:N i32:N f32:X f64:X buf:BYTES
// Prints the median of 20 calls in microseconds, each after a flush of the L2 cache. Not a referee: what
// it times was checked elsewhere.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kRepeats = 20;
constexpr size_t kFlushBytes = 256U << 20U;

void Must(cudaError_t error, const char* doing) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s: %s\n", doing, cudaGetErrorString(error));
    std::exit(1);
  }
}

template <class T>
void Append(std::vector<char>* block, T value) {
  block->resize((block->size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
  const char* const bytes = reinterpret_cast<const char*>(&value);
  block->insert(block->end(), bytes, bytes + sizeof(T));
}

/// Uniform in [-1, 1): bits that toggle, unlike zeros.
__global__ void FillRandom(float* x, size_t count) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    unsigned h = static_cast<unsigned>(i) * 2654435761U;
    h = (h ^ (h >> 16)) * 0x45d9f3bU;
    x[i] = static_cast<float>(h ^ (h >> 16)) * (2.0f / 4294967296.0f) - 1.0f;
  }
}

void AddArgument(const std::string& text, std::vector<char>* block) {
  const std::string kind = text.substr(0, text.find(':'));
  const char* const value = text.c_str() + kind.size() + 1;
  if (kind == "i64") {
    Append(block, static_cast<long long>(std::atoll(value)));
  } else if (kind == "i32") {
    Append(block, std::atoi(value));
  } else if (kind == "f32") {
    Append(block, static_cast<float>(std::atof(value)));
  } else if (kind == "f64") {
    Append(block, std::atof(value));
  } else if (kind == "buf") {
    float* buffer = nullptr;
    const size_t bytes = std::strtoull(value, nullptr, 10);
    Must(cudaMalloc(&buffer, bytes), "cudaMalloc");
    FillRandom<<<1024, 256>>>(buffer, bytes / sizeof(float));
    Append(block, buffer);
  } else {
    std::fprintf(stderr, "unknown argument %s\n", text.c_str());
    std::exit(2);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: time_candidate LIBRARY ARG...\n");
    return 2;
  }
  void* const library = dlopen(argv[1], RTLD_NOW);
  auto* const run = library == nullptr ? nullptr
                                       : reinterpret_cast<cudaError_t (*)(const void*, cudaStream_t)>(
                                             dlsym(library, "kernelpro_run"));
  if (run == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  std::vector<char> block;
  for (int i = 2; i < argc; ++i) {
    AddArgument(argv[i], &block);
  }
  void* flush = nullptr;
  Must(cudaMalloc(&flush, kFlushBytes), "cudaMalloc");
  cudaEvent_t begin;
  cudaEvent_t end;
  Must(cudaEventCreate(&begin), "cudaEventCreate");
  Must(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> times;
  for (int i = 0; i < kRepeats + 3; ++i) {  // Three to warm up.
    Must(cudaMemset(flush, i, kFlushBytes), "flush");
    Must(cudaEventRecord(begin), "record");
    Must(run(block.data(), nullptr), "kernelpro_run");
    Must(cudaEventRecord(end), "record");
    Must(cudaDeviceSynchronize(), "run");
    float ms = 0;
    Must(cudaEventElapsedTime(&ms, begin, end), "elapsed");
    if (i >= 3) {
      times.push_back(ms * 1000);
    }
  }
  std::sort(times.begin(), times.end());
  std::printf("%.2f\n", times[times.size() / 2]);
  return 0;
}
