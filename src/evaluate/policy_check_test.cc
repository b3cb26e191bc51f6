// SPDX-License-Identifier: Apache-2.0
// Binaries that break the policy, each beside an honest twin.
#include "evaluate/policy_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kernelpro {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What nvcc 13.0 makes of a candidate that uses vector, map, iostream, thread and call_once.
BinaryFacts Ordinary() {
  return {.needed = {"ld-linux-x86-64.so.2", "libc.so.6", "libcudart.so.13", "libgcc_s.so.1",
                     "libm.so.6", "libstdc++.so.6"},
          .imports = {"_ITM_deregisterTMCloneTable",
                      "_ITM_registerTMCloneTable",
                      "_Unwind_Resume",
                      "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateE",
                      "_ZNSt6thread4joinEv",
                      "_ZSt4cout",
                      "_ZdlPvm",
                      "_Znwm",
                      "__cudaGetKernel",
                      "__cudaInitModule",
                      "__cudaLaunchKernel",
                      "__cudaPopCallConfiguration",
                      "__cudaPushCallConfiguration",
                      "__cudaRegisterFatBinary",
                      "__cudaRegisterFatBinaryEnd",
                      "__cudaRegisterFunction",
                      "__cudaUnregisterFatBinary",
                      "__cxa_atexit",
                      "__cxa_finalize",
                      "__cxa_guard_acquire",
                      "__gmon_start__",
                      "__gxx_personality_v0",
                      "__tls_get_addr",
                      "cudaFuncSetAttribute",
                      "cudaGetDeviceProperties",
                      "cudaGetLastError",
                      "cudaMemsetAsync",
                      "cudaStreamCreateWithFlags",
                      "pthread_create",
                      "pthread_once",
                      "printf",
                      "memcpy",
                      "strlen"},
          .exports = {"_Z4helpi", "_ZNSt6vectorIfSaIfEED1Ev", "_fini", "_init", "kernelpro_run",
                      "cutlass_tile", "cuda_blocks", "curtain", "timer", "free_list", "reader"},
          .driver_words = {}};
}

TEST(PolicyCheck, OrdinaryCandidatesPass) {
  EXPECT_THAT(WhyForbiddenBinary(Ordinary(), {}), IsEmpty());
}

TEST(PolicyCheck, LibrariesNeedTheTasksLeave) {
  BinaryFacts facts = Ordinary();
  facts.needed.emplace_back("libcublas.so.13");
  EXPECT_THAT(WhyForbiddenBinary(facts, {}), HasSubstr("needs libcublas.so.13"));
  EXPECT_THAT(WhyForbiddenBinary(facts, {.lowest_precision = "fp32", .libraries = {"cufft"}}),
              HasSubstr("needs libcublas.so.13"));
  EXPECT_THAT(WhyForbiddenBinary(facts, {.lowest_precision = "fp32", .libraries = {"cublas"}}),
              IsEmpty());
  facts.needed = {"libtorch.so"};
  EXPECT_THAT(WhyForbiddenBinary(facts, {}), HasSubstr("libtorch.so"));
  facts.needed = {"libcuda.so.1"};
  EXPECT_THAT(WhyForbiddenBinary(facts, {}), HasSubstr("libcuda.so.1"));
}

TEST(PolicyCheck, ForbiddenImportsAreNamed) {
  for (const char* name : {"dlopen",
                           "dlsym",
                           "dlmopen",
                           "system",
                           "popen",
                           "fork",
                           "vfork",
                           "execve",
                           "execlp",
                           "posix_spawnp",
                           "ptrace",
                           "process_vm_writev",
                           "cuModuleLoadData",
                           "cuLibraryLoadFromFile",
                           "cudaLibraryLoadData",
                           "cuLinkCreate_v2",
                           "cudaIpcOpenMemHandle",
                           "cuIpcGetMemHandle_v2",
                           "cudaDeviceReset",
                           "cudaProfilerStop",
                           "mprotect",
                           "syscall",
                           "cuGetProcAddress_v2"}) {
    BinaryFacts facts = Ordinary();
    facts.imports.emplace_back(name);
    EXPECT_THAT(WhyForbiddenBinary(facts, {}), HasSubstr(std::string("calls ") + name + ","));
  }
  for (const char* name : {"cudaMalloc", "cudaLaunchKernelExC", "systematic", "forklift",
                           "cudaDeviceGetAttribute", "cudaGraphLaunch", "cublasSgemm_v2"}) {
    BinaryFacts facts = Ordinary();
    facts.imports.emplace_back(name);
    EXPECT_THAT(WhyForbiddenBinary(facts, {}), IsEmpty()) << name;
  }
}

TEST(PolicyCheck, DriverEntryPointsForTensorMapsOnly) {
  BinaryFacts facts = Ordinary();
  facts.imports.emplace_back("cudaGetDriverEntryPointByVersion");
  EXPECT_THAT(WhyForbiddenBinary(facts, {}), HasSubstr("any function of the driver"));
  facts.driver_words = {"cuTensorMapEncodeTiled"};
  EXPECT_THAT(WhyForbiddenBinary(facts, {}), IsEmpty());
  facts.driver_words = {"cuModuleLoadData", "cuTensorMapEncodeTiled"};
  EXPECT_THAT(WhyForbiddenBinary(facts, {}), HasSubstr("cuModuleLoadData"));
}

TEST(PolicyCheck, NamesThatOthersOwn) {
  for (const char* name :
       {"cudaMalloc", "cudaEventElapsedTime", "cuLaunchKernel", "malloc", "memcmp", "clock_gettime",
        "read", "write", "_Znwm", "_ZdlPv", "pthread_create", "__cudaRegisterFatBinary", "dlsym"}) {
    BinaryFacts facts = Ordinary();
    facts.exports.emplace_back(name);
    EXPECT_THAT(WhyForbiddenBinary(facts, {}), HasSubstr(std::string("defines ") + name + ","));
  }
}

}  // namespace
}  // namespace kernelpro
