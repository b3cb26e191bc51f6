// SPDX-License-Identifier: Apache-2.0
// What well-behaved candidates do, one behaviour per value of Arguments::what.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "arguments.h"

#define TRY(call)                   \
  do {                              \
    const cudaError_t error = call; \
    if (error != cudaSuccess) {     \
      return error;                 \
    }                               \
  } while (false)

__constant__ float factors[4];
__device__ float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};

__global__ void Add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i] + b[i];
  }
}

__global__ void Scale(const float* a, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i] * factors[1] + table[i % 8];
  }
}

__global__ void ThroughShared(const float* a, float* c, int n) {
  extern __shared__ float tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? a[i] : 0;
  __syncthreads();
  if (i < n) {
    c[i] = tile[threadIdx.x];
  }
}

__global__ void CopyVectors(const float4* a, float4* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i];
  }
}

static cudaError_t RunAdd(const Arguments& args, cudaStream_t stream) {
  Add<<<(args.n + 255) / 256, 256, 0, stream>>>(args.a, args.b, args.c, args.n);
  return cudaGetLastError();
}

static cudaError_t PutResults(const Arguments& args, const std::vector<double>& results) {
  return cudaMemcpy(args.results, results.data(), results.size() * sizeof(double),
                    cudaMemcpyHostToDevice);
}

static cudaError_t RunSymbols(const Arguments& args, cudaStream_t stream) {
  const float values[4] = {1, 10, 100, 1000};
  TRY(cudaMemcpyToSymbol(factors, values, sizeof values));
  const float ninth = 50;
  TRY(cudaMemcpyToSymbol(table, &ninth, sizeof ninth, 7 * sizeof(float)));
  float back[2] = {0, 0};
  TRY(cudaMemcpyFromSymbol(back, table, sizeof back, 6 * sizeof(float)));
  void* address = nullptr;
  size_t bytes = 0;
  TRY(cudaGetSymbolAddress(&address, table));
  TRY(cudaGetSymbolSize(&bytes, table));
  float direct = 0;
  TRY(cudaMemcpy(&direct, static_cast<float*>(address) + 2, sizeof direct, cudaMemcpyDefault));
  Scale<<<(args.n + 127) / 128, 128, 0, stream>>>(args.a, args.c, args.n);
  TRY(cudaGetLastError());
  return PutResults(args, {back[0], back[1], double(bytes), direct});
}

static cudaError_t RunStreamsAndEvents(const Arguments& args, cudaStream_t stream) {
  cudaStream_t mine = nullptr;
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  cudaEvent_t silent = nullptr;
  TRY(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking));
  TRY(cudaEventCreate(&start));
  TRY(cudaEventCreate(&stop));
  TRY(cudaEventCreateWithFlags(&silent, cudaEventDisableTiming));
  TRY(cudaEventRecord(start, mine));
  TRY(RunAdd(args, mine));
  TRY(cudaEventRecord(stop, mine));
  TRY(cudaEventRecord(silent, mine));
  TRY(cudaStreamWaitEvent(stream, silent, 0));
  TRY(cudaEventSynchronize(stop));
  TRY(cudaStreamSynchronize(mine));
  TRY(cudaStreamQuery(mine));
  float milliseconds = -1;
  TRY(cudaEventElapsedTime(&milliseconds, start, stop));
  const cudaError_t untimed = cudaEventElapsedTime(&milliseconds, start, silent);
  float timed = -1;
  TRY(cudaEventElapsedTime(&timed, start, stop));
  (void)cudaGetLastError();
  TRY(cudaEventDestroy(start));
  TRY(cudaEventDestroy(stop));
  TRY(cudaEventDestroy(silent));
  TRY(cudaStreamDestroy(mine));
  const cudaError_t gone = cudaStreamSynchronize(mine);
  const cudaError_t last = cudaGetLastError();
  const cudaError_t cleared = cudaGetLastError();
  TRY(cudaDeviceSynchronize());
  return PutResults(args, {timed, double(untimed), double(gone), double(last), double(cleared)});
}

static cudaError_t RunOccupancy(const Arguments& args) {
  int blocks = 0;
  TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Add, 256, 0));
  int grid = 0;
  int block = 0;
  TRY(cudaOccupancyMaxPotentialBlockSize(&grid, &block, Add, 0, 0));
  cudaFuncAttributes attributes{};
  TRY(cudaFuncGetAttributes(&attributes, ThroughShared));
  return PutResults(
      args, {double(blocks), double(grid), double(block), double(attributes.numRegs),
             double(attributes.maxThreadsPerBlock), double(attributes.maxDynamicSharedSizeBytes),
             double(attributes.binaryVersion)});
}

static cudaError_t RunProperties(const Arguments& args) {
  cudaDeviceProp p{};
  TRY(cudaGetDeviceProperties(&p, 0));
  int sms = 0;
  int optin = 0;
  int device = -1;
  int count = 0;
  TRY(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  TRY(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  TRY(cudaGetDevice(&device));
  TRY(cudaGetDeviceCount(&count));
  size_t free_bytes = 0;
  size_t total = 0;
  TRY(cudaMemGetInfo(&free_bytes, &total));
  int version = 0;
  TRY(cudaRuntimeGetVersion(&version));
  const cudaError_t second = cudaSetDevice(1);
  (void)cudaGetLastError();
  return PutResults(args, {double(p.multiProcessorCount),
                           double(sms),
                           double(p.sharedMemPerBlockOptin),
                           double(optin),
                           double(p.major),
                           double(p.minor),
                           double(p.warpSize),
                           double(p.maxThreadsPerMultiProcessor),
                           double(p.maxGridSize[1]),
                           double(p.maxThreadsDim[2]),
                           double(p.sharedMemPerBlock),
                           double(device),
                           double(count),
                           double(free_bytes <= total && total > 0),
                           double(version),
                           double(second),
                           double(p.totalGlobalMem == total),
                           double(std::strstr(p.name, "NVIDIA") != nullptr),
                           double(p.regsPerMultiprocessor),
                           double(p.maxBlocksPerMultiProcessor),
                           double(p.sharedMemPerMultiprocessor)});
}

static cudaError_t RunCopies(const Arguments& args) {
  const int n = args.n;
  std::vector<float> host(n);
  TRY(cudaMemcpy(host.data(), args.a, n * sizeof(float), cudaMemcpyDeviceToHost));
  float* device = nullptr;
  TRY(cudaMalloc(&device, n * sizeof(float)));
  TRY(cudaMemset(device, 0, n * sizeof(float)));
  TRY(cudaMemcpyAsync(device, host.data(), n / 2 * sizeof(float), cudaMemcpyHostToDevice, nullptr));
  TRY(cudaMemcpy(args.c, device, n * sizeof(float), cudaMemcpyDeviceToDevice));
  float* pinned = nullptr;
  TRY(cudaMallocHost(&pinned, 64));
  // The first 2 columns of a 4 x 2 matrix of floats.
  TRY(cudaMemcpy2D(pinned, 2 * sizeof(float), args.a, 4 * sizeof(float), 2 * sizeof(float), 2,
                   cudaMemcpyDeviceToHost));
  const std::vector<double> corner = {pinned[0], pinned[1], pinned[2], pinned[3]};
  TRY(cudaFreeHost(pinned));
  TRY(cudaFree(device));
  const cudaError_t twice = cudaFree(device);
  (void)cudaGetLastError();
  std::vector<double> results = corner;
  results.push_back(twice);
  return PutResults(args, results);
}

static cudaError_t RunLaunchExtended(const Arguments& args, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = (args.n + 255) / 256;
  config.blockDim = 256;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, Add, args.a, args.b, args.c, args.n);
}

static cudaError_t RunLargeShared(const Arguments& args, cudaStream_t stream) {
  const size_t bytes = 96 * 1024;
  TRY(cudaFuncSetAttribute(ThroughShared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  ThroughShared<<<(args.n + 127) / 128, 128, bytes, stream>>>(args.a, args.c, args.n);
  return cudaGetLastError();
}

static cudaError_t RunHostThread(const Arguments& args, cudaStream_t stream) {
  cudaError_t error = cudaErrorUnknown;
  std::thread worker([&] { error = RunAdd(args, stream); });
  worker.join();
  return error;
}

static cudaError_t RunModestMemory(const Arguments& args, cudaStream_t stream) {
  std::vector<char> host(16 << 20, 1);
  void* device = nullptr;
  TRY(cudaMalloc(&device, 16 << 20));
  TRY(cudaMemset(device, host[7], 16 << 20));
  TRY(cudaFree(device));
  return RunAdd(args, stream);
}

extern "C" cudaError_t kernelpro_run(const Arguments* args, cudaStream_t stream) {
  switch (args->what) {
    case kVectorAdd:
      return RunAdd(*args, stream);
    case kSymbols:
      return RunSymbols(*args, stream);
    case kStreamsAndEvents:
      return RunStreamsAndEvents(*args, stream);
    case kOccupancy:
      return RunOccupancy(*args);
    case kProperties:
      return RunProperties(*args);
    case kCopies:
      return RunCopies(*args);
    case kLaunchExtended:
      return RunLaunchExtended(*args, stream);
    case kLargeShared:
      return RunLargeShared(*args, stream);
    case kHostThread:
      return RunHostThread(*args, stream);
    case kPrintOnce:
      std::printf("hello from the host\n");
      return RunAdd(*args, stream);
    case kModestMemory:
      return RunModestMemory(*args, stream);
    case kShortSleep:
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return RunAdd(*args, stream);
    case kAlignedVector:
      CopyVectors<<<1, 64, 0, stream>>>(reinterpret_cast<const float4*>(args->a),
                                        reinterpret_cast<float4*>(args->c), args->n / 4);
      return cudaGetLastError();
    case kUniformBarrier:
      ThroughShared<<<(args->n + 127) / 128, 128, 512, stream>>>(args->a, args->c, args->n);
      return cudaGetLastError();
    default:
      return cudaSuccess;
  }
}

extern "C" cudaError_t kernelpro_prepare(const Arguments* args, cudaStream_t) {
  return cudaMemset(args->c, 0x3f, args->n * sizeof(float));
}
