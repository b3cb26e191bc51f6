// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the kernels of a candidate on the CPU, for tests: the candidate is compiled by g++ with this
// header in front and its launches rewritten to host_cuda::Launch. Every thread of a block is a
// fiber; barriers and shuffles switch fibers. Blocks run one after the other. A barrier that not
// all threads reach ends the program with status 3.

#include <cuda_runtime.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace host_cuda {

struct Fiber {
  ucontext_t context{};
  std::vector<char> stack = std::vector<char>(256 * 1024);
  uint3 thread{};
  unsigned linear = 0;
  bool done = false;
  bool waits_block = false;
  bool waits_warp = false;
};

struct Machine {
  ucontext_t scheduler{};
  std::vector<std::unique_ptr<Fiber>> fibers;
  Fiber* current = nullptr;
  dim3 grid, block;
  uint3 block_index{};
  std::function<void()> body;
  std::vector<std::uint64_t> slots;  // one per thread, for shuffles
};

inline Machine& machine() {
  static Machine m;
  return m;
}

inline void Entry() {
  Machine& m = machine();
  m.body();
  m.current->done = true;
  swapcontext(&m.current->context, &m.scheduler);
}

inline void Yield() {
  Machine& m = machine();
  swapcontext(&m.current->context, &m.scheduler);
}

inline void BlockBarrier() {
  machine().current->waits_block = true;
  Yield();
}

inline void WarpBarrier() {
  machine().current->waits_warp = true;
  Yield();
}

/// Frees the threads [begin, end) when all that still run wait for the same thing.
inline bool Release(std::size_t begin, std::size_t end, bool Fiber::* waits) {
  Machine& m = machine();
  bool any = false;
  for (std::size_t i = begin; i < end; ++i) {
    if (!m.fibers[i]->done && !((*m.fibers[i]).*waits)) {
      return false;
    }
    any |= !m.fibers[i]->done;
  }
  for (std::size_t i = begin; i < end; ++i) {
    (*m.fibers[i]).*waits = false;
  }
  return any;
}

inline void RunBlock() {
  Machine& m = machine();
  const std::size_t threads = m.fibers.size();
  while (true) {
    bool moved = false;
    bool alive = false;
    for (auto& fiber : m.fibers) {
      if (!fiber->done && !fiber->waits_block && !fiber->waits_warp) {
        m.current = fiber.get();
        swapcontext(&m.scheduler, &fiber->context);
        moved = true;
      }
      alive |= !fiber->done;
    }
    if (!alive) {
      return;
    }
    moved |= Release(0, threads, &Fiber::waits_block);
    for (std::size_t begin = 0; begin < threads; begin += 32) {
      moved |= Release(begin, std::min(begin + 32, threads), &Fiber::waits_warp);
    }
    if (!moved) {
      std::fprintf(stderr, "threads wait at different barriers\n");
      std::exit(3);
    }
  }
}

inline void Launch(std::function<void()> body, dim3 grid, dim3 block, std::size_t /*shared*/ = 0,
                   cudaStream_t /*stream*/ = nullptr) {
  Machine& m = machine();
  m.grid = grid;
  m.block = block;
  m.body = std::move(body);
  const unsigned threads = block.x * block.y * block.z;
  m.slots.assign(threads, 0);
  for (unsigned index = 0; index < grid.x * grid.y * grid.z; ++index) {
    m.block_index = {index % grid.x, index / grid.x % grid.y, index / grid.x / grid.y};
    m.fibers.clear();
    for (unsigned i = 0; i < threads; ++i) {
      auto fiber = std::make_unique<Fiber>();
      fiber->linear = i;
      fiber->thread = {i % block.x, i / block.x % block.y, i / block.x / block.y};
      getcontext(&fiber->context);
      fiber->context.uc_stack.ss_sp = fiber->stack.data();
      fiber->context.uc_stack.ss_size = fiber->stack.size();
      makecontext(&fiber->context, Entry, 0);
      m.fibers.push_back(std::move(fiber));
    }
    RunBlock();
  }
}

template <class T>
T ShuffleXor(unsigned /*mask*/, T value, int lanes) {
  Machine& m = machine();
  const unsigned self = m.current->linear;
  std::memcpy(&m.slots[self], &value, sizeof value);
  WarpBarrier();
  T other = value;
  std::memcpy(&other, &m.slots[self / 32 * 32 + ((self % 32) ^ static_cast<unsigned>(lanes))],
              sizeof other);
  WarpBarrier();
  return other;
}

}  // namespace host_cuda

#undef __shared__
#define __shared__ static
#define threadIdx (host_cuda::machine().current->thread)
#define blockIdx (host_cuda::machine().block_index)
#define blockDim (host_cuda::machine().block)
#define gridDim (host_cuda::machine().grid)
#define __syncthreads host_cuda::BlockBarrier
#define __syncwarp host_cuda::WarpBarrier
#define __shfl_xor_sync host_cuda::ShuffleXor
#define __expf expf
#define __fdividef(a, b) ((a) / (b))
#define cudaGetLastError() cudaSuccess
using std::max;
using std::min;
