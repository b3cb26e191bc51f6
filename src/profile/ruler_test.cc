// SPDX-License-Identifier: Apache-2.0
#include "profile/ruler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kernelpro {
namespace {

using ::testing::ElementsAre;

TEST(Ruler, CutsALineAtItsColumns) {
  const auto ruler = Ruler::Parse("  ---- --  -----\r");
  ASSERT_TRUE(ruler.has_value());
  EXPECT_EQ(ruler->size(), 3U);
  EXPECT_THAT(*ruler->Cells("  a  b  1  last one"), ElementsAre("a  b", "1", "last one"))
      << "the last column has no end";
  EXPECT_THAT(*ruler->Cells("  ab"), ElementsAre("ab", "", ""));
  EXPECT_THAT(*ruler->Cells("  \xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F 12  x"),
              ElementsAre("\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F", "12", "x"))
      << "characters, not bytes";
  EXPECT_FALSE(ruler->Cells("  abcde 12  x").has_value()) << "text between columns";
  EXPECT_FALSE(ruler->Cells("x abcd 12  x").has_value()) << "text before the first";
}

TEST(Ruler, OtherLinesAreNone) {
  for (const std::string line : {"", "-----", "--- x ---", "==== ====", "a --- ---"}) {
    EXPECT_FALSE(Ruler::Parse(line).has_value()) << line;
  }
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    many += "- ";
  }
  EXPECT_FALSE(Ruler::Parse(many).has_value());
}

}  // namespace
}  // namespace kernelpro
