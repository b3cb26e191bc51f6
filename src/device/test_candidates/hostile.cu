// SPDX-License-Identifier: Apache-2.0
// What a candidate must not get away with, one behaviour per value of Arguments::what. Each has an
// honest twin in honest.cu.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "arguments.h"

__global__ void Add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i] + b[i];
  }
}

__global__ void Forever(volatile float* c) {
  while (c[0] >= 0) {
    c[1] = c[1] + 1;
  }
}

__global__ void PastTheEnd(float* c, int n) {
  c[n + threadIdx.x] = 1;
}

__global__ void Misaligned(float* c) {
  *reinterpret_cast<float4*>(c + 1) = make_float4(1, 2, 3, 4);
}

__global__ void DivergentBarrier(float* c) {
  if (threadIdx.x < 16) {
    __syncthreads();
  }
  c[threadIdx.x] = 1;
  if (threadIdx.x >= 40) {
    return;
  }
  asm volatile("barrier.sync 1, 128;");
}

__global__ void UsesShared(float* c) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = 1;
  c[threadIdx.x] = tile[threadIdx.x];
}

/// The envelope of the wire protocol, as a candidate that has read our sources would write it.
struct Envelope {
  unsigned payload_bytes;
  unsigned short version;
  unsigned short kind;
  unsigned long long sequence;
  int value;
} __attribute__((packed));

static void Send(int fd, unsigned short kind, unsigned long long sequence, int value) {
  const Envelope e{4, 1, kind, sequence, value};
  (void)!send(fd, &e, sizeof e, MSG_NOSIGNAL);
}

static cudaError_t HostileHost(const Arguments& args) {
  switch (args.what) {
    case kSegfault:
      *reinterpret_cast<volatile int*>(8) = 1;
      break;
    case kScribble:
      std::memset(args.c, 0, 4096);
      break;
    case kAbort:
      std::abort();
    case kExitZero:
      std::printf("verdict: ok\n");
      std::exit(0);
    case kFork:
      (void)fork();
      break;
    case kSystem:
      (void)!std::system("true");
      break;
    case kExec: {
      char name[] = "/bin/true";
      char* const argv[] = {name, nullptr};
      execv(name, argv);
      break;
    }
    case kSocket:
      (void)socket(AF_INET, SOCK_STREAM, 0);
      break;
    case kKillParent:
      (void)kill(1, 0);
      break;
    case kUnlink:
      (void)unlink("/tmp/kernelpro-does-not-exist");
      break;
    case kOpenForWriting:
      (void)open("/tmp/kernelpro-forbidden", O_WRONLY | O_CREAT, 0600);
      break;
    case kReadSecret: {
      // Refused, not punished: libraries look for files too. The call must get nothing.
      const int fd = open("/proc/self/maps", O_RDONLY);
      const int other = open("/etc/passwd", O_RDONLY);
      return fd < 0 && other < 0 ? cudaSuccess : cudaErrorUnknown;
    }
    case kReplaceHandler:
      (void)signal(SIGSYS, SIG_IGN);
      break;
    case kHostLoop:
      for (volatile int i = 0;; i = i + 1) {
      }
    case kPrintFlood:
      for (int i = 0; i < 200000; ++i) {
        std::printf("PASS PASS PASS PASS PASS PASS\n");
      }
      break;
    case kThrow:
      throw std::runtime_error("thrown by the candidate");
    default:
      return cudaErrorUnknown;
  }
  return cudaSuccess;
}

static cudaError_t Forger(const Arguments& args) {
  switch (args.what) {
    case kForgeReturn:
      // "kernelpro_run returned success", for every plausible call number, then work on.
      for (unsigned long long sequence = 1; sequence < 64; ++sequence) {
        Send(3, 5, sequence, 0);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      return cudaErrorUnknown;
    case kForgeGarbage:
      for (int i = 0; i < 100; ++i) {
        (void)!send(3, "no frame at all, just text", 26, MSG_NOSIGNAL);
      }
      std::this_thread::sleep_for(std::chrono::seconds(30));
      return cudaSuccess;
    case kCloseDescriptors:
      for (int fd = 3; fd < 64; ++fd) {
        close(fd);
      }
      std::this_thread::sleep_for(std::chrono::seconds(30));
      return cudaSuccess;
    case kForgeGpuFrame:
      (void)!send(4, "no frame at all, just text", 26, MSG_NOSIGNAL);
      return cudaDeviceSynchronize();
    default:
      return cudaErrorUnknown;
  }
}

static cudaError_t HostileMemory(const Arguments& args) {
  switch (args.what) {
    case kHugeDeviceMemory: {
      void* pointer = nullptr;
      return cudaMalloc(&pointer, 1ULL << 44);
    }
    case kHugeHostMemory: {
      std::vector<std::vector<char>> blocks;
      while (true) {
        blocks.emplace_back(4 << 20, 'x');
      }
    }
    case kHostMemoryCrash:
      while (true) {
        void* block = std::malloc(4 << 20);
        std::memset(block, 1, 4 << 20);
      }
    case kFreeReferees:
      return cudaFree(args.c);
    case kWriteInputFromHost:
      return cudaMemset(const_cast<float*>(args.a), 0, 16);
    case kWrongPointer: {
      float host[4] = {};
      return cudaMemcpy(reinterpret_cast<void*>(0x1234), host, sizeof host, cudaMemcpyHostToDevice);
    }
    default:
      return cudaErrorUnknown;
  }
}

static cudaError_t HostileKernels(const Arguments& args, cudaStream_t stream) {
  switch (args.what) {
    case kKernelLoop:
      Forever<<<1, 32, 0, stream>>>(args.c);
      break;
    case kOutOfBoundsWrite:
      PastTheEnd<<<1, 32, 0, stream>>>(args.c, args.n);
      break;
    case kMisaligned:
      Misaligned<<<1, 1, 0, stream>>>(args.c);
      break;
    case kDivergentBarrier:
      DivergentBarrier<<<1, 128, 0, stream>>>(args.c);
      break;
    case kTooManyThreads:
      Add<<<1, 5000, 0, stream>>>(args.a, args.b, args.c, args.n);
      break;
    case kTooManyThreadsIgnored:
      Add<<<1, 5000, 0, stream>>>(args.a, args.b, args.c, args.n);
      return cudaSuccess;
    case kSharedWithoutAttribute:
      UsesShared<<<1, 32, 64 * 1024, stream>>>(args.c);
      break;
    case kSharedTooMuch:
      return cudaFuncSetAttribute(UsesShared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  256 * 1024);
    case kWriteInput:
      Add<<<1, 32, 0, stream>>>(args.a, args.b, const_cast<float*>(args.a), 32);
      break;
    case kUnknownStream:
      Add<<<1, 32, 0, reinterpret_cast<cudaStream_t>(0x77)>>>(args.a, args.b, args.c, 32);
      break;
    default:
      return cudaErrorUnknown;
  }
  const cudaError_t error = cudaGetLastError();
  return error != cudaSuccess ? error : cudaDeviceSynchronize();
}

extern "C" cudaError_t kernelpro_run(const Arguments* args, cudaStream_t stream) {
  if (args->what == kThreadLeftBehind) {
    const Arguments copy = *args;
    std::thread([copy] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      Add<<<1, 32>>>(copy.a, copy.b, copy.c, 32);
    }).detach();
    return cudaSuccess;
  }
  switch (args->what) {
    case kForgeReturn:
    case kForgeGarbage:
    case kCloseDescriptors:
    case kForgeGpuFrame:
      return Forger(*args);
    case kHugeDeviceMemory:
    case kHugeHostMemory:
    case kHostMemoryCrash:
    case kFreeReferees:
    case kWriteInputFromHost:
    case kWrongPointer:
      return HostileMemory(*args);
    case kKernelLoop:
    case kOutOfBoundsWrite:
    case kMisaligned:
    case kDivergentBarrier:
    case kTooManyThreads:
    case kTooManyThreadsIgnored:
    case kSharedWithoutAttribute:
    case kSharedTooMuch:
    case kWriteInput:
    case kUnknownStream:
      return HostileKernels(*args, stream);
    default:
      return HostileHost(*args);
  }
}
