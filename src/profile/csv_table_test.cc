// SPDX-License-Identifier: Apache-2.0
#include "profile/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kernelpro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CsvTable, FindsTheHeaderBehindNoiseAndByteOrderMark) {
  const std::string text =
      "\xEF\xBB\xBF==PROF== "
      "Connected\r\nhello\r\n\"ID\",\"A\"\r\n\"0\",\"x\"\r\nnoise\r\n\"1\",\"y\"";
  const auto table = FindCsvTable(text, "t.csv");
  ASSERT_TRUE(table.ok());
  ASSERT_TRUE(table->has_value());
  const CsvTable& found = table->value();
  EXPECT_EQ(found.header.line, 3U);
  ASSERT_EQ(found.rows.size(), 2U);
  EXPECT_THAT(found.rows[0].fields, ElementsAre("0", "x"));
  EXPECT_THAT(found.rows[1].fields, ElementsAre("1", "y"));
  EXPECT_EQ(found.rows[1].line, 6U);
  EXPECT_EQ(found.Column("A"), 1U);
  EXPECT_FALSE(found.Column("B").has_value());
}

TEST(CsvTable, QuotesCommasNewlinesAndTrailingEmptyFields) {
  const auto table = FindCsvTable("\"ID\",\"A\",\"B\"\n\"0\",\"a \"\"b\"\", c\nd\",\n", "t.csv");
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table->value().rows.size(), 1U);
  EXPECT_THAT(table->value().rows[0].fields, ElementsAre("0", "a \"b\", c\nd", ""));
}

TEST(CsvTable, OpenQuoteIsAnErrorWithFileAndLine) {
  const auto table = FindCsvTable("\"ID\",\"A\"\n\"0\",\"never", "cut.csv");
  ASSERT_FALSE(table.ok());
  EXPECT_THAT(table.error().message, HasSubstr("cut.csv:2"));
}

TEST(CsvTable, NoTableIsNotAnError) {
  const auto table = FindCsvTable("==ERROR== nothing here\n", "t.csv");
  ASSERT_TRUE(table.ok());
  EXPECT_FALSE(table->has_value());
}

}  // namespace
}  // namespace kernelpro
