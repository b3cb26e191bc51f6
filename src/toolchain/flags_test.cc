// SPDX-License-Identifier: Apache-2.0
#include "toolchain/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernelpro {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Flags, AllowsWhatOnlyChangesTheCode) {
  for (const char* flag :
       {"-O2", "--use_fast_math", "-use_fast_math", "-maxrregcount=64", "--maxrregcount=255",
        "-DTILE=32", "-DNAME", "-DV=-1.5e3", "-std=c++20", "--std=c++17", "--ftz=true",
        "-fmad=false", "--prec-div=false", "-prec-sqrt=true", "-Xptxas=-dlcm=cg", "-Xptxas=-O1",
        "-Xptxas=--warn-spills", "-lineinfo", "-extended-lambda"}) {
    EXPECT_THAT(WhyForbidden({flag}, {}), IsEmpty()) << flag;
  }
  EXPECT_THAT(WhyForbidden({}, {}), IsEmpty());
}

TEST(Flags, LinksTheLibrariesThatTheTaskAllows) {
  EXPECT_THAT(WhyForbidden({"-lcublas"}, {"cudnn", "cublas"}), IsEmpty());
  EXPECT_THAT(WhyForbidden({"-lcublasLt"}, {"cublaslt"}), IsEmpty());
  EXPECT_THAT(WhyForbidden({"-lcublas"}, {}), HasSubstr("does not allow"));
  EXPECT_THAT(WhyForbidden({"--lcublasLt"}, {"cublas"}), HasSubstr("does not allow"));
  EXPECT_THAT(WhyForbidden({"-lcudart"}, {"cudart"}), HasSubstr("is not allowed"));
}

TEST(Flags, RefusesTheRest) {
  for (const char* flag : {"-I/etc",
                           "-I",
                           "/etc/passwd",
                           "x.cu",
                           "",
                           "-",
                           "--",
                           "-ccbin=/tmp/evil",
                           "-include",
                           "-include=/etc/passwd",
                           "-Xcompiler=-fplugin=/tmp/x.so",
                           "-Xcompiler",
                           "-Xlinker",
                           "-o",
                           "-optf=/tmp/x",
                           "--options-file=x",
                           "-arch=sm_70",
                           "-gencode",
                           "-maxrregcount=8",
                           "-maxrregcount=256",
                           "-maxrregcount=",
                           "-maxrregcount=64x",
                           "-D",
                           "-D=1",
                           "-D__CUDA_ARCH__=1",
                           "-DX=$(id)",
                           "-DX=\"a\"",
                           "-DX=a b",
                           "-D1X",
                           "-lfoo",
                           "-l../x",
                           "-L/tmp",
                           "-Xptxas=-o",
                           "-Xptxas=",
                           "-Xptxas",
                           "-Xptxas=-dlcm=xx",
                           "-O4",
                           "-Ofast",
                           "-std=c++23",
                           "--ftz",
                           "-ftz=1",
                           "-keep-dir=/tmp",
                           "-run",
                           "-O2\n-I/etc",
                           "--dryrun",
                           "-E",
                           "-M",
                           "-MD"}) {
    EXPECT_THAT(WhyForbidden({"-O3", flag}, {"cublas"}), HasSubstr("not allowed")) << flag;
  }
  EXPECT_THAT(WhyForbidden(std::vector<std::string>(65, "-O3"), {}), HasSubstr("more than 64"));
}

}  // namespace
}  // namespace kernelpro
