// SPDX-License-Identifier: Apache-2.0
#include "report/model_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kernelpro::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

store::NodeRecord Node(store::NodeId id, double measured, const std::string& evaluation) {
  store::NodeRecord node;
  node.id = id;
  node.action = "rewrite" + std::to_string(id);
  node.done = true;
  node.verdict = "ok";
  node.provenance = "measured";
  node.time_us = measured;
  node.evaluation = evaluation;
  return node;
}

TEST(ModelCheck, SpearmanOfKnownLists) {
  EXPECT_DOUBLE_EQ(Spearman({1, 2, 3, 4}, {10, 20, 30, 1000}), 1);
  EXPECT_DOUBLE_EQ(Spearman({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  EXPECT_NEAR(Spearman({1, 2, 3, 4, 5}, {2, 1, 4, 3, 5}), 0.8, 1e-12);
  EXPECT_NEAR(Spearman({1, 2, 2, 3}, {1, 2, 3, 4}), 0.9486832980505138, 1e-12);  // scipy 1.11
  EXPECT_EQ(Spearman({1, 1, 1}, {1, 2, 3}), 0);
  EXPECT_EQ(Spearman({1, 2}, {1, 2}), 0);
}

TEST(ModelCheck, OnlyNodesWithBothTimesCount) {
  std::vector<store::NodeRecord> nodes = {Node(1, 100, R"({"modelled_us": 90})"),
                                          Node(2, 50, R"({"modelled_us": null})"),
                                          Node(3, 40, "not json"),
                                          Node(4, 10, R"({"modelled_us": 30})"),
                                          Node(5, 20, R"({"modelled_us": 20})"),
                                          Node(6, 5, R"({"modelled_us": 1})")};
  nodes[4].verdict = "wrong_result";
  nodes[5].provenance = "modelled";
  const ModelCheck check = CheckModel(nodes);
  ASSERT_EQ(check.nodes.size(), 2U);
  EXPECT_EQ(check.nodes[1].id, 4);
  const std::string text = ModelCheckText(check);
  EXPECT_THAT(text, HasSubstr("over 2 kernels"));
  EXPECT_LT(text.find("node 4"), text.find("node 1 "));  // 3x off before 1.1x off
  EXPECT_THAT(text, Not(HasSubstr("node 5")));
  EXPECT_EQ(ModelCheckText({}), "");
}

}  // namespace
}  // namespace kernelpro::report
