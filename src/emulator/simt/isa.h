// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Hot loops over 32 lanes are written once as an always-inlined body and instantiated twice: for
/// x86-64-v3 (AVX2) and for whatever the build targets. Only these functions carry the attribute,
/// so no inline function of a library header can end up compiled for AVX2 and be called elsewhere.
#if defined(__x86_64__)
#define KP_SIMT_HAS_V3 1
#define KP_SIMT_V3 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt,fma")))
#else
#define KP_SIMT_HAS_V3 0
#define KP_SIMT_V3
#endif
#define KP_SIMT_INLINE inline __attribute__((always_inline))

namespace kernelpro::simt {

/// Whether this processor runs the v3 copies.
[[nodiscard]] inline bool HasV3() {
#if KP_SIMT_HAS_V3
  static const bool has = __builtin_cpu_supports("avx2") != 0 &&
                          __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("fma") != 0;
  return has;
#else
  return false;
#endif
}

}  // namespace kernelpro::simt
