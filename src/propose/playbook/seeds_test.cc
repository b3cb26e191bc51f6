// SPDX-License-Identifier: Apache-2.0
//
// Chains of rewrites from the seeds of examples/tasks: every link must be offered, compile with
// nvcc and, run thread by thread on the CPU, still give what the task's reference gives.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "propose/playbook/testing/fixture.h"
#include "propose/playbook/testing/host_run.h"

namespace kernelpro::playbook {
namespace {

struct Chain {
  const char* task;
  const char* source;  ///< empty: the task's seed; else a file of testdata/
  std::vector<const char*> actions;
};

void PrintTo(const Chain& chain, std::ostream* out) {
  *out << chain.task << " " << chain.source << " " << chain.actions.front();
}

class Seeds : public ::testing::TestWithParam<Chain> {};

TEST_P(Seeds, ChainKeepsTheResult) {
  const Chain& chain = GetParam();
  const auto task = LoadTask(std::string(KP_SOURCE_DIR "/examples/tasks/") + chain.task);
  ASSERT_TRUE(task.ok()) << task.error().message;
  const std::string own =
      std::string(KP_SOURCE_DIR "/src/propose/playbook/testdata/") + chain.source;
  const auto seed = ReadFile(*chain.source == '\0' ? task->seed : std::filesystem::path(own));
  ASSERT_TRUE(seed.ok());
  std::string source = *seed;
  ASSERT_EQ(DifferenceOnHost(*task, source, 1e-4), "") << "the seed itself";
  for (const char* action : chain.actions) {
    const Proposals answer = Ask(SharedPlaybook(), *task, source);
    const Proposal* proposal = Find(answer, action);
    ASSERT_NE(proposal, nullptr) << action << ": " << WhyNot(answer, action);
    source = proposal->candidate.source;
    EXPECT_EQ(DifferenceOnHost(*task, source, 1e-4), "") << action << "\n" << source;
  }
  EXPECT_EQ(NvccErrors(*task, source), "") << source;
}

INSTANTIATE_TEST_SUITE_P(
    Chains, Seeds,
    ::testing::Values(
        Chain{"row_softmax",
              "",
              {"warp_per_row", "vector_access", "restrict_pointers", "unroll", "fast_math",
               "tune_constant(kBlockSize=256"}},
        Chain{"transpose", "", {"tile_through_shared", "tune_constant(kTileSize=64", "restrict"}},
        Chain{"matmul", "", {"swap_thread_roles", "unroll", "tune_constant(kBlockX=32"}},
        Chain{
            "matmul", "", {"tile_matmul", "tune_constant(kThreadM=8", "tune_constant(kTileN=128"}},
        Chain{"matmul", "", {"swap_thread_roles", "tile_matmul", "tune_constant(kTileK=8"}},
        Chain{"layer_norm",
              "",
              {"shuffle_reduction", "float_literals", "vector_access", "tune_constant"}},
        Chain{"block_sum", "", {"defer_reduction", "shuffle_reduction", "vector_access", "unroll"}},
        Chain{"block_sum", "", {"shuffle_reduction", "tune_constant"}},
        Chain{"row_softmax", "row_softmax.cu", {"warp_per_row", "vector_access"}},
        Chain{"transpose", "transpose.cu", {"tile_through_shared"}},
        Chain{"matmul", "matmul.cu", {"tile_matmul"}},
        Chain{"layer_norm",
              "layer_norm.cu",
              {"shuffle_reduction", "float_literals(all)", "vector_access"}}));

}  // namespace
}  // namespace kernelpro::playbook
