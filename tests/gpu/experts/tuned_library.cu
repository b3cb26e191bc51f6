// SPDX-License-Identifier: Apache-2.0
// flags: -lcublas
// Kernels of libraries that experts wrote: hardly any finding about them can be right. A case is
// one call; tuned.toml says which of its kernels counts.
#include <cublas_v2.h>
#include <cuda_bf16.h>

#include <cub/cub.cuh>

#include "suite.h"

#define CHECK_BLAS(call)                                                       \
  do {                                                                         \
    const cublasStatus_t s_ = (call);                                          \
    if (s_ != CUBLAS_STATUS_SUCCESS) {                                         \
      std::fprintf(stderr, "%s:%d: cuBLAS status %d\n", __FILE__, __LINE__, s_); \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

static cublasHandle_t Handle() {
  static cublasHandle_t handle = [] {
    cublasHandle_t h;
    CHECK_BLAS(cublasCreate(&h));
    return h;
  }();
  return handle;
}

static void AddGemm(const char* name, int m, int n, int k, cudaDataType type,
                    cublasComputeType_t compute, int batch) {
  const size_t unit = type == CUDA_R_32F ? 4 : 2;
  const suite::Fill fill = type == CUDA_R_32F ? suite::Fill::kFloat : suite::Fill::kBf16;
  char* a = suite::Buffer<char>(unit * m * k * batch, fill, 1);
  char* b = suite::Buffer<char>(unit * k * n * batch, fill, 2);
  char* c = suite::Buffer<char>(unit * m * n * batch, suite::Fill::kZero);
  const long long sa = 1ll * m * k, sb = 1ll * k * n, sc = 1ll * m * n;
  suite::Add(name, [=] {
    const float one = 1, zero = 0;
    CHECK_BLAS(cublasGemmStridedBatchedEx(Handle(), CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a,
                                          type, m, sa, b, type, k, sb, &zero, c, type, m, sc,
                                          batch, compute, CUBLAS_GEMM_DEFAULT));
  });
}

/// `call(temp, bytes)` in CUB's two-step form; the temporary memory is allocated here, once.
template <class Call>
static void AddCub(const char* name, Call call) {
  size_t bytes = 0;
  CHECK(call(nullptr, bytes));
  void* temp = suite::Buffer<char>(std::max<size_t>(bytes, 16), suite::Fill::kZero);
  suite::Add(name, [=] {
    size_t size = bytes;
    CHECK(call(temp, size));
  });
}

static void AddDevicePrimitives() {
  const int n = 64 << 20;
  float *x = suite::Buffer<float>(n), *out = suite::Buffer<float>(n, suite::Fill::kZero);
  unsigned* keys = suite::Buffer<unsigned>(n, suite::Fill::kBits);
  unsigned* sorted = suite::Buffer<unsigned>(n, suite::Fill::kZero);
  unsigned char* bytes = suite::Buffer<unsigned char>(size_t(n) * 4, suite::Fill::kBits);
  int* bins = suite::Buffer<int>(256, suite::Fill::kZero);
  AddCub("cub_reduce",
         [=](void* t, size_t& s) { return cub::DeviceReduce::Sum(t, s, x, out, n); });
  AddCub("cub_max", [=](void* t, size_t& s) { return cub::DeviceReduce::Max(t, s, x, out, n); });
  AddCub("cub_scan",
         [=](void* t, size_t& s) { return cub::DeviceScan::InclusiveSum(t, s, x, out, n); });
  AddCub("cub_sort", [=](void* t, size_t& s) {
    return cub::DeviceRadixSort::SortKeys(t, s, keys, sorted, n);
  });
  AddCub("cub_histogram", [=](void* t, size_t& s) {
    return cub::DeviceHistogram::HistogramEven(t, s, bytes, bins, 257, 0, 256, n);
  });
}

int main(int argc, char** argv) {
  AddGemm("blas_sgemm", 4096, 4096, 4096, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1);
  AddGemm("blas_tf32", 4096, 4096, 4096, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 1);
  AddGemm("blas_bf16", 4096, 4096, 4096, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1);
  AddGemm("blas_bf16_8192", 8192, 8192, 8192, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1);
  AddGemm("blas_batched", 512, 512, 512, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 128);
  float *a = suite::Buffer<float>(size_t(16384) * 8192), *x = suite::Buffer<float>(16384);
  float* y = suite::Buffer<float>(16384);
  suite::Add("blas_gemv", [=] {
    const float one = 1, zero = 0;
    CHECK_BLAS(
        cublasSgemv(Handle(), CUBLAS_OP_T, 8192, 16384, &one, a, 8192, x, 1, &zero, y, 1));
  });
  AddDevicePrimitives();
  return suite::Main(argc, argv);
}
