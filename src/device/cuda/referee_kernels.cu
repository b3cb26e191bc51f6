// SPDX-License-Identifier: Apache-2.0
// What the referee does to memory on the GPU: poison, guard bands, secret mixes of inputs, comparison.
// Compiled to PTX when KernelPro is built and embedded; the driver of the user's machine assembles it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace {

using u64 = unsigned long long;

/// SplitMix64 at position i: the same numbers as base/rng.h, without the sequence.
__device__ u64 Mix(u64 seed, u64 i) {
  u64 z = seed + (i + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// A NaN in every float format: see evaluate/fill.cc.
__device__ u64 PoisonWord(u64 seed, u64 i) { return Mix(seed, i) | 0x7ff87ff87ff87ff8ULL; }

__device__ u64 First() { return blockIdx.x * static_cast<u64>(blockDim.x) + threadIdx.x; }
__device__ u64 Stride() { return static_cast<u64>(gridDim.x) * blockDim.x; }

__device__ u64 SumOverWarp(u64 value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffffU, value, offset);
  }
  return value;
}

__device__ void AddTo(u64* target, u64 value) {
  value = SumOverWarp(value);
  if ((threadIdx.x & 31U) == 0 && value != 0) {
    atomicAdd(target, value);
  }
}

/// Non-negative doubles order like their bits.
__device__ void MaxTo(u64* target, double value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmax(value, __shfl_down_sync(0xffffffffU, value, offset));
  }
  if ((threadIdx.x & 31U) == 0 && value > 0) {
    atomicMax(target, static_cast<u64>(__double_as_longlong(value)));
  }
}

enum DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI8, kU32, kU8 };  // task/task.h

__device__ double Load(int dtype, const void* data, u64 i) {
  switch (dtype) {
    case kF64: return static_cast<const double*>(data)[i];
    case kF32: return static_cast<const float*>(data)[i];
    case kF16: return __half2float(static_cast<const __half*>(data)[i]);
    case kBF16: return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    case kI64: return static_cast<double>(static_cast<const long long*>(data)[i]);
    case kI32: return static_cast<const int*>(data)[i];
    case kI8: return static_cast<const signed char*>(data)[i];
    case kU32: return static_cast<const unsigned*>(data)[i];
    default: return static_cast<const unsigned char*>(data)[i];
  }
}

template <class T>
__device__ T MixedElement(const T* a, const T* b, u64 n, u64 key, u64 shift_a, u64 shift_b, u64 i) {
  const bool from_a = (Mix(key, i) >> 63) != 0;
  u64 at = i + (from_a ? shift_a : shift_b);
  at = at >= n ? at - n : at;
  return from_a ? a[at] : b[at];
}

template <class T>
__device__ void MixAll(T* out, const T* a, const T* b, u64 n, u64 key, u64 shift_a, u64 shift_b,
                       u64* different) {
  u64 count = 0;
  for (u64 i = First(); i < n; i += Stride()) {
    const T value = MixedElement(a, b, n, key, shift_a, shift_b, i);
    if (different == nullptr) {
      out[i] = value;
    } else {
      count += out[i] != value ? 1 : 0;
    }
  }
  if (different != nullptr) {
    AddTo(different, count);
  }
}

/// Whether the bytes of element i are what PoisonWord left there.
__device__ bool HoldsPoison(const unsigned char* data, unsigned size, u64 i, u64 seed) {
  for (unsigned b = 0; b < size; ++b) {
    const u64 at = i * size + b;
    if (data[at] != static_cast<unsigned char>(PoisonWord(seed, at / 8) >> (8 * (at % 8)))) {
      return false;
    }
  }
  return true;
}

/// Error as a multiple of what is allowed: the rule of evaluate/compare.cc.
__device__ double ErrorRatio(double got, double want, double allowed, double overflow) {
  const double infinity = __longlong_as_double(0x7ff0000000000000LL);
  if (isnan(want)) {
    return isnan(got) ? 0 : infinity;
  }
  if (isinf(want)) {
    return got == want ? 0 : infinity;
  }
  if (got == want || (fabs(want) >= overflow && isinf(got) && signbit(got) == signbit(want))) {
    return 0;
  }
  const double error = fabs(got - want);
  return isfinite(error) && allowed > 0 ? error / allowed : infinity;
}

}  // namespace

/// device/cuda/memory_kernels.h has the same layout.
struct Comparison {
  u64 failed, unwritten, first_failed;
  u64 max_absolute, max_relative, worst_ratio;  // bits of doubles
};

extern "C" __global__ void kp_poison(unsigned char* data, u64 bytes, u64 seed) {
  // A band may start at any byte.
  const u64 words = (reinterpret_cast<u64>(data) & 7U) == 0 ? bytes / 8 : 0;
  for (u64 i = First(); i < words; i += Stride()) {
    reinterpret_cast<u64*>(data)[i] = PoisonWord(seed, i);
  }
  for (u64 at = words * 8 + First(); at < bytes; at += Stride()) {
    data[at] = static_cast<unsigned char>(PoisonWord(seed, at / 8) >> (8 * (at % 8)));
  }
}

/// One block for each band {address, bytes, seed}; counts bytes that are not the band's poison.
extern "C" __global__ void kp_check_bands(const u64* bands, u64* changed) {
  const u64* band = bands + 3 * blockIdx.x;
  const auto* data = reinterpret_cast<const unsigned char*>(band[0]);
  u64 count = 0;
  for (u64 at = threadIdx.x; at < band[1]; at += blockDim.x) {
    const auto want = static_cast<unsigned char>(PoisonWord(band[2], at / 8) >> (8 * (at % 8)));
    count += data[at] != want ? 1 : 0;
  }
  AddTo(changed + blockIdx.x, count);
}

/// Elements in order of neither source: a secret bit chooses the source of each. With `different`
/// nothing is written and deviations are counted.
extern "C" __global__ void kp_mix(void* out, const void* a, const void* b, u64 n, unsigned size,
                                  u64 key, u64 shift_a, u64 shift_b, u64* different) {
  switch (size) {
    case 1:
      return MixAll(static_cast<unsigned char*>(out), static_cast<const unsigned char*>(a),
                    static_cast<const unsigned char*>(b), n, key, shift_a, shift_b, different);
    case 2:
      return MixAll(static_cast<unsigned short*>(out), static_cast<const unsigned short*>(a),
                    static_cast<const unsigned short*>(b), n, key, shift_a, shift_b, different);
    case 4:
      return MixAll(static_cast<unsigned*>(out), static_cast<const unsigned*>(a),
                    static_cast<const unsigned*>(b), n, key, shift_a, shift_b, different);
    default:
      return MixAll(static_cast<u64*>(out), static_cast<const u64*>(a), static_cast<const u64*>(b),
                    n, key, shift_a, shift_b, different);
  }
}

extern "C" __global__ void kp_sum_of_squares(const void* data, u64 n, int dtype, double* sum,
                                             u64* finite) {
  double part = 0;
  u64 count = 0;
  for (u64 i = First(); i < n; i += Stride()) {
    const double value = Load(dtype, data, i);
    if (isfinite(value)) {
      part += value * value;
      ++count;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    part += __shfl_down_sync(0xffffffffU, part, offset);
  }
  if ((threadIdx.x & 31U) == 0 && part != 0) {
    atomicAdd(sum, part);
  }
  AddTo(finite, count);
}

/// `scale`: null, or the size that errors of each element are measured by (then absolute is per unit
/// of it; else it is absolute as it stands).
extern "C" __global__ void kp_compare(const void* got, int dtype, unsigned size, const void* want,
                                      int want_dtype, u64 n, u64 poison, double absolute,
                                      double relative, const double* scale, double overflow,
                                      Comparison* result) {
  u64 failed = 0, unwritten = 0;
  double max_absolute = 0, max_relative = 0, worst = 0;
  const double infinity = __longlong_as_double(0x7ff0000000000000LL);
  for (u64 i = First(); i < n; i += Stride()) {
    const double value = Load(dtype, got, i);
    const double wanted = Load(want_dtype, want, i);
    const double floor = scale == nullptr ? absolute : absolute * fabs(scale[i]);
    const double ratio = ErrorRatio(value, wanted, floor + relative * fabs(wanted), overflow);
    const double error = fabs(value - wanted);
    worst = fmax(worst, ratio);
    if (error < infinity) {
      max_absolute = fmax(max_absolute, error);
      max_relative = fabs(wanted) > floor ? fmax(max_relative, error / fabs(wanted)) : max_relative;
    }
    if (!(ratio <= 1)) {
      ++failed;
      unwritten += HoldsPoison(static_cast<const unsigned char*>(got), size, i, poison) ? 1 : 0;
      atomicMin(&result->first_failed, i);
    }
  }
  AddTo(&result->failed, failed);
  AddTo(&result->unwritten, unwritten);
  MaxTo(&result->max_absolute, max_absolute);
  MaxTo(&result->max_relative, max_relative);
  MaxTo(&result->worst_ratio, worst);
}

/// Bytes that differ between two buffers of equal size.
extern "C" __global__ void kp_count_differences(const unsigned char* a, const unsigned char* b,
                                                u64 bytes, u64* different) {
  u64 count = 0;
  for (u64 i = First(); i < bytes; i += Stride()) {
    count += a[i] != b[i] ? 1 : 0;
  }
  AddTo(different, count);
}

/// Elements that still hold the poison of `seed`.
extern "C" __global__ void kp_count_poison(const unsigned char* data, unsigned size, u64 n, u64 seed,
                                           u64* holding) {
  u64 count = 0;
  for (u64 i = First(); i < n; i += Stride()) {
    count += HoldsPoison(data, size, i, seed) ? 1 : 0;
  }
  AddTo(holding, count);
}
