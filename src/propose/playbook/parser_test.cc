// SPDX-License-Identifier: Apache-2.0
#include "propose/playbook/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "propose/playbook/analysis.h"
#include "propose/playbook/testing/fixture.h"

namespace kernelpro::playbook {
namespace {

using ::testing::HasSubstr;

class ParserTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto parser = Parser::Create("/usr/local/cuda/include");
    ASSERT_TRUE(parser.ok());
    parser_ = std::move(*parser).release();
  }

  static void TearDownTestSuite() {
    delete parser_;
    parser_ = nullptr;
  }

  static Result<SourceModel> Parse(const std::string& source) {
    return parser_->Parse(source, CandidateHeader(SmallTask()));
  }

  static inline Parser* parser_ = nullptr;
};

TEST_F(ParserTest, MissingToolkitIsNamed) {
  const auto parser = Parser::Create("/nonexistent/include");
  ASSERT_FALSE(parser.ok());
  EXPECT_EQ(parser.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(parser.error().message, HasSubstr("/nonexistent/include"));
}

TEST_F(ParserTest, FirstErrorIsGivenWithItsLine) {
  const auto model =
      Parse("#include \"kernelpro_task.h\"\n__global__ void K() {\n  int x = y;\n}\n");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::kParse);
  EXPECT_THAT(model.error().message, HasSubstr("line 3"));
  EXPECT_THAT(model.error().message, HasSubstr("'y'"));
}

TEST_F(ParserTest, GarbageIsAnErrorNotACrash) {
  std::string noise;
  unsigned state = 7;
  for (int i = 0; i < 4000; ++i) {
    state = state * 1664525U + 1013904223U;
    noise += static_cast<char>(state >> 24U);
  }
  EXPECT_FALSE(Parse(noise).ok());
  EXPECT_FALSE(Parse(std::string("int x;\0int y;", 13)).ok());
  EXPECT_FALSE(Parse(std::string(2U << 20U, ' ')).ok());
  EXPECT_FALSE(Parse("#include \"no_such_header.h\"\n").ok());
  const auto good = Parse("#include \"kernelpro_task.h\"\n");
  EXPECT_TRUE(good.ok());
}

TEST_F(ParserTest, DeepNestingIsRefused) {
  std::string sum = "1";
  for (int i = 0; i < 2000; ++i) {
    sum += "+x";
  }
  const auto model = Parse("int f(int x) { return " + sum + "; }\n");
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().message, HasSubstr("nested"));
}

TEST_F(ParserTest, KernelsLaunchesAndRolesAreFound) {
  const auto model = Parse(Program(R"(constexpr int kX = 32;
#define TILE_Y 8
__global__ void K(const float* a, float* c, int n) {
  __shared__ float tile[4][kX + 1];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i * 2] = a[i];
}
)",
                                   "  const dim3 block(kX, TILE_Y);\n"
                                   "  K<<<dim3((n + 31) / 32, 2), block, 0, stream>>>"
                                   "(args->a, args->c, n);"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  ASSERT_EQ(model->kernels().size(), 1U);
  const Node& kernel = *model->kernels()[0];
  EXPECT_EQ(kernel.name, "K");
  ASSERT_EQ(model->LaunchesOf(kernel).size(), 1U);
  const Node& launch = *model->launches()[0];
  const auto shape = BlockShape(launch, *model);
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ((*shape)[0], 32);
  EXPECT_EQ((*shape)[1], 8);
  ASSERT_EQ(LaunchComponents(launch, 0).size(), 2U);
  EXPECT_EQ(model->Text(*LaunchComponents(launch, 0)[0]), "(n + 31) / 32");
  for (const Node* variable : FindAll(kernel, NodeKind::kVariable)) {
    if (variable->name == "tile") {
      EXPECT_TRUE(variable->is_shared);
      EXPECT_EQ(variable->bytes, 4 * 4 * 33);
      EXPECT_EQ(model->Text(variable->child(1)), "kX + 1");
    }
  }
  const auto accesses = AccessesIn(kernel, *model);
  ASSERT_EQ(accesses.size(), 2U);
  EXPECT_TRUE(accesses[0].written);
  EXPECT_EQ(accesses[0].base->name, "c");
  EXPECT_EQ(accesses[0].index.Coefficient("threadIdx.x"), Polynomial::Constant(2));
  EXPECT_TRUE(accesses[1].index.Coefficient("threadIdx.x")->IsOne());
}

TEST_F(ParserTest, PartsOfForLoopsAreToldApart) {
  const auto model = Parse(
      "void f(int n) {\n  int i = 0;\n  for (; i < n;) { ++i; }\n"
      "  for (int j = 0; /* ; */ ; j += 2) { if (j > n) break; }\n}\n");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto loops = FindAll(model->root(), NodeKind::kFor);
  ASSERT_EQ(loops.size(), 2U);
  EXPECT_TRUE(loops[0]->child(0).Is(NodeKind::kEmpty));
  EXPECT_TRUE(loops[0]->child(1).Is(NodeKind::kBinary, "<"));
  EXPECT_TRUE(loops[0]->child(2).Is(NodeKind::kEmpty));
  EXPECT_TRUE(loops[1]->child(0).Is(NodeKind::kDeclaration));
  EXPECT_TRUE(loops[1]->child(1).Is(NodeKind::kEmpty));
  EXPECT_TRUE(loops[1]->child(2).Is(NodeKind::kAssign, "+="));
}

}  // namespace
}  // namespace kernelpro::playbook
