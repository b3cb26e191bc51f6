// SPDX-License-Identifier: Apache-2.0
// What kernels compute with, from PTX that nvcc made here and from excerpts of SASS.
#include "evaluate/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "toolchain/toolchain.h"

namespace kernelpro {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Task TaskOf(DType dtype) {
  Task task;
  task.tensors.push_back({.name = "x", .dtype = dtype, .role = Role::kInput});
  task.tensors.push_back({.name = "y", .dtype = dtype, .role = Role::kOutput});
  return task;
}

constexpr const char* kSource = R"(#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
extern "C" cudaError_t kernelpro_run(const void*, cudaStream_t) { return cudaSuccess; }
__global__ void Copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void Single(const float* x, float* y) {
  const float v = x[threadIdx.x];
  y[threadIdx.x] = __expf(v) / sqrtf(v * v + 1e-5);
}
__global__ void Double(const double* x, double* y) {
  const double v = x[threadIdx.x];
  y[threadIdx.x] = exp(v) + pow(v, 2.5) + log(v) / sin(v);
}
__global__ void RoundsInBetween(const float* x, float* y) {
  y[threadIdx.x] = __half2float(__float2half(x[threadIdx.x])) * 2;
}
__global__ void HalfMath(const __half2* x, __half2* y) {
  y[threadIdx.x] = __hfma2(x[threadIdx.x], x[threadIdx.x], x[threadIdx.x]);
}
__global__ void HalfStorage(const __half* x, __half* y) {
  y[threadIdx.x] = __float2half(__half2float(x[threadIdx.x]) * 3.1f);
}
__global__ void HalfStorageRounded(const __half* x, __half* y) {
  const __half h = __float2half(__half2float(x[threadIdx.x]) * 3.1f);
  y[threadIdx.x] = __float2half(__half2float(h) + 1);
}
__global__ void BrainMath(const __nv_bfloat16* x, __nv_bfloat16* y) {
  y[threadIdx.x] = __hmul(x[threadIdx.x], x[threadIdx.x + 1]);
}
template <class Frag>
__device__ void Shorten(Frag& f) {
  for (int i = 0; i < f.num_elements; ++i) f.x[i] = wmma::__float_to_tf32(f.x[i]);
}
__global__ void TensorFloat(const float* a, const float* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
  wmma::fill_fragment(fc, 0.f);
  wmma::load_matrix_sync(fa, a, 8);
  wmma::load_matrix_sync(fb, b, 8);
  Shorten(fa);
  Shorten(fb);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
__global__ void HalfTensorCore(const __half* a, const __half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
)";

/// The PTX that nvcc makes of each kernel, with line information as for every candidate.
class PrecisionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const TemporaryFolder folder = TemporaryFolder::Create("kp-precision").value();
    ToolchainLimits limits;
    limits.wall = std::chrono::minutes(8);  // The machine may be very busy.
    const auto toolchain = Toolchain::Find(folder.path(), limits);
    ASSERT_TRUE(toolchain.ok()) << toolchain.error().message;
    BuildRequest request;
    request.source = kSource;
    const auto outcome = (*toolchain)->Compile(request, {});
    ASSERT_TRUE(outcome.ok() && outcome->build);
    ptx_ = ReadFile(outcome->build->ptx).value();
  }

  static PrecisionClass Of(const std::string& kernel, DType dtype) {
    const std::string mangled = "_Z" + std::to_string(kernel.size()) + kernel + "P";
    const std::size_t start = ptx_.find(".entry " + mangled);
    EXPECT_NE(start, std::string::npos) << kernel;
    return Classify(ptx_.substr(start, ptx_.find(".entry", start + 1) - start), "", TaskOf(dtype));
  }

  static std::string ptx_;
};

std::string PrecisionTest::ptx_;

TEST_F(PrecisionTest, CopySingleAndDouble) {
  EXPECT_EQ(Of("Copy", DType::kF32).name, "exact");
  const PrecisionClass single = Of("Single", DType::kF32);
  EXPECT_EQ(single.name, "fp32") << "a double constant in between is no narrowing";
  EXPECT_THAT(single.evidence, HasSubstr("in Single"));
  EXPECT_THAT(single.evidence, HasSubstr("approximate: ex2.approx"));
  EXPECT_EQ(Of("Double", DType::kF64).name, "fp64")
      << "the library's comparisons in f32 do not count";
}

TEST_F(PrecisionTest, RoundingToHalfInBetween) {
  const PrecisionClass rounded = Of("RoundsInBetween", DType::kF32);
  EXPECT_EQ(rounded.name, "fp16");
  EXPECT_THAT(rounded.evidence, HasSubstr("RoundsInBetween: rounds values in between"));
  EXPECT_EQ(Of("HalfStorage", DType::kF16).name, "fp32") << "declared inputs and outputs";
  EXPECT_EQ(Of("HalfStorageRounded", DType::kF16).name, "fp16");
  EXPECT_EQ(Of("HalfStorage", DType::kF32).name, "fp16") << "the same kernel where nothing is half";
}

TEST_F(PrecisionTest, HalfAndBrainArithmetic) {
  EXPECT_EQ(Of("HalfMath", DType::kF16).name, "fp16");
  EXPECT_EQ(Of("BrainMath", DType::kBF16).name, "bf16");
}

TEST_F(PrecisionTest, TensorCores) {
  const PrecisionClass tf32 = Of("TensorFloat", DType::kF32);
  EXPECT_EQ(tf32.name, "tf32");
  EXPECT_THAT(WhyTooNarrow(tf32, {}), HasSubstr("the task's policy asks for fp32"));
  EXPECT_THAT(WhyTooNarrow(tf32, {.lowest_precision = "tf32", .libraries = {}}), IsEmpty());
  EXPECT_EQ(Of("HalfTensorCore", DType::kF16).name, "fp32")
      << "exact products of declared halves, fp32 sums";
  EXPECT_EQ(Of("HalfTensorCore", DType::kF32).name, "fp16");
}

TEST(PrecisionPtx, InstructionsThatNeedNoCompiler) {
  const auto of = [](std::string_view body, DType dtype = DType::kF32) {
    const std::string ptx =
        ".version 8.0\n.target sm_90\n.visible .entry _Z1kPf(\n.param .u64 p\n)\n.maxntid "
        "256\n{\n" +
        std::string(body) + "\n}\n";
    return Classify(ptx, "", TaskOf(dtype)).name;
  };
  EXPECT_EQ(of("wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%f1,%f2}, %rd1, %rd2;"),
            "tf32");
  EXPECT_EQ(of("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%f1}, %rd1, %rd2;"), "bf16");
  EXPECT_EQ(of("wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {%f1}, %rd1, %rd2;"), "fp8");
  EXPECT_EQ(of("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1}, {%r2}, {%r3}, {%r4};",
               DType::kF16),
            "fp16")
      << "sums in half";
  EXPECT_EQ(of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r2}, {%r3}, {%f4};",
               DType::kF16),
            "fp32");
  EXPECT_EQ(of("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1}, {%r2}, {%r3}, {%r4};"),
            "int8");
  EXPECT_EQ(
      of("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1}, {%r2}, {%r3}, {%r4};", DType::kI8),
      "exact");
  EXPECT_EQ(of(".loc 1 2 3\n@%p1 fma.rn.f32 %f1, %f2, %f3, %f4;"), "fp32");
  EXPECT_EQ(of("red.global.add.noftz.f16x2 [%rd1], %r1;"), "fp16");
  EXPECT_EQ(of("/* add.f16 %a, %b, %c; */ // mul.f16\nadd.s32 %r1, %r2, %r3;"), "exact");
  // A probability rounded to half and fed to a tensor core, packed on the way.
  const std::string_view packed =
      "cvt.rn.f16.f32 %rs1, %f1;\nmov.b32 %r9, {%rs1, %rs2};\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r9}, {%r3}, {%f4};";
  EXPECT_EQ(of(packed, DType::kF16), "fp16");
  EXPECT_EQ(of("cvt.rn.f16.f32 %rs1, %f1;\nst.shared.b16 [%r1], %rs1;", DType::kF16), "fp16");
  EXPECT_EQ(of("cvt.rn.f16.f32 %rs1, %f1;\nst.global.b16 [%rd1], %rs1;", DType::kF16), "exact");
}

constexpr const char* kSass = R"sass(
		Function : _Z6matmulPKfS0_Pf
	.headerflags	@"EF_CUDA_SM90 EF_CUDA_PTX_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;     /* 0x00000a00ff017b82 */
        /*0010*/                   HFMA2.MMA R5, -RZ, RZ, 0, 5.96e-08 ;
        /*0020*/              @!P0 HADD2.F32 R4, -RZ, R3.H0_H0 ;
        /*0030*/                   FFMA R7, R4, R5, R7 ;
)sass";

TEST(PrecisionSass, MachineInstructions) {
  const Task task = TaskOf(DType::kF32);
  const auto with = [&](std::string_view line) {
    return Classify("", std::string(kSass) + std::string(line), task);
  };
  EXPECT_EQ(with("").name, "exact") << "constants and widening are no half arithmetic";
  const PrecisionClass tf32 =
      with("        /*0040*/              @P1  HMMA.1688.F32.TF32 R4, R8, R16, R4 ;\n");
  EXPECT_EQ(tf32.name, "tf32");
  EXPECT_THAT(tf32.evidence, HasSubstr("HMMA.1688.F32.TF32 in matmul: computes (SASS)"));
  EXPECT_EQ(with("/*0040*/ HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24 ;\n").name, "bf16");
  EXPECT_EQ(with("/*0040*/ QGMMA.64x128x32.F32.E4M3.E4M3 R24, gdesc[UR4], R24 ;\n").name, "fp8");
  EXPECT_EQ(with("/*0040*/ HFMA2 R4, R8, R16, R4 ;\n").name, "fp16");
  EXPECT_EQ(with("/*0040*/ HADD2.BF16_V2 R4, R8, R16 ;\n").name, "bf16");
  EXPECT_EQ(with("/*0040*/ F2FP.F16.F32.PACK_AB R4, R8, R16 ;\n").name, "fp16");
  EXPECT_EQ(with("/*0040*/ DFMA R4, R8, R16, R4 ;\n").name, "fp64");
  const Task half = TaskOf(DType::kF16);
  EXPECT_EQ(Classify("", "/*0040*/ HMMA.16816.F32 R4, R8, R16, R4 ;\n", half).name, "fp32");
  EXPECT_EQ(Classify("", "/*0040*/ HMMA.16816.F16 R4, R8, R16, R4 ;\n", half).name, "fp16");
}

TEST(WhyTooNarrow, FollowsTheOrderOfThePolicy) {
  const auto why = [](std::string_view used, std::string_view lowest) {
    return WhyTooNarrow({.name = std::string(used), .evidence = "e"},
                        {.lowest_precision = std::string(lowest), .libraries = {}});
  };
  EXPECT_THAT(why("fp32", "fp64"), Not(IsEmpty()));
  EXPECT_THAT(why("exact", "fp64"), IsEmpty());
  EXPECT_THAT(why("fp64", "fp32"), IsEmpty());
  EXPECT_THAT(why("fp16", "bf16"), Not(IsEmpty()));
  EXPECT_THAT(why("bf16", "fp16"), IsEmpty());
  EXPECT_THAT(why("fp8", "fp16"), Not(IsEmpty()));
  EXPECT_THAT(why("", "fp64"), IsEmpty()) << "not looked at";
}

}  // namespace
}  // namespace kernelpro
