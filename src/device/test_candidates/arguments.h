// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The argument block of every candidate in this folder, for nvcc and for session_test.cc.
struct Arguments {
  const float* a;
  const float* b;
  float* c;
  double* results;  ///< device buffer of kResults values that a candidate fills from host code
  int n;
  int what;  ///< which of the candidate's behaviours; see the enums
};

constexpr int kResults = 32;

enum Honest {
  kVectorAdd,
  kSymbols,
  kStreamsAndEvents,
  kOccupancy,
  kProperties,
  kCopies,
  kLaunchExtended,
  kLargeShared,
  kHostThread,
  kPrintOnce,
  kModestMemory,
  kShortSleep,
  kAlignedVector,
  kUniformBarrier,
  kNothing,
};

enum Hostile {
  kSegfault,
  kScribble,
  kAbort,
  kExitZero,
  kFork,
  kSystem,
  kExec,
  kSocket,
  kKillParent,
  kUnlink,
  kOpenForWriting,
  kReadSecret,
  kReplaceHandler,
  kHostLoop,
  kKernelLoop,
  kOutOfBoundsWrite,
  kMisaligned,
  kDivergentBarrier,
  kPrintFlood,
  kForgeReturn,
  kForgeGarbage,
  kCloseDescriptors,
  kForgeGpuFrame,
  kHugeDeviceMemory,
  kHugeHostMemory,
  kHostMemoryCrash,
  kThrow,
  kTooManyThreads,
  kTooManyThreadsIgnored,
  kSharedWithoutAttribute,
  kSharedTooMuch,
  kWriteInput,
  kWriteInputFromHost,
  kFreeReferees,
  kThreadLeftBehind,
  kWrongPointer,
  kUnknownStream,
};
