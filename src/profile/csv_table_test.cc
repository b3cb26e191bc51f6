// SPDX-License-Identifier: Apache-2.0
#include "profile/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Row {
  std::size_t line = 0;
  std::vector<std::string> fields;
};

/// All rows, the header first; none when there is no header.
std::vector<Row> RowsOf(std::string_view text) {
  CsvScanner scanner(text, "t.csv");
  std::vector<Row> rows;
  if (!scanner.FindHeader()) {
    return rows;
  }
  std::vector<std::string_view> fields;
  while (true) {
    const auto more = scanner.Next(fields);
    EXPECT_TRUE(more.ok());
    if (!more.ok() || !*more) {
      return rows;
    }
    rows.push_back({scanner.LineOf(scanner.row_offset()), {fields.begin(), fields.end()}});
  }
}

TEST(CsvScanner, FindsTheHeaderBehindNoiseAndByteOrderMark) {
  const auto rows = RowsOf(
      "\xEF\xBB\xBF==PROF== "
      "Connected\r\nhello\r\n\"ID\",\"A\"\r\n\"0\",\"x\"\r\nnoise\r\n\"1\",\"y\"");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].line, 3U);
  EXPECT_THAT(rows[0].fields, ElementsAre("ID", "A"));
  EXPECT_THAT(rows[1].fields, ElementsAre("0", "x"));
  EXPECT_THAT(rows[2].fields, ElementsAre("1", "y"));
  EXPECT_EQ(rows[2].line, 6U);
  EXPECT_EQ(RowsOf("\xEF\xBB\xBF\"ID\",\"A\"\n").size(), 1U);
}

TEST(CsvScanner, QuotesCommasNewlinesAndTrailingEmptyFields) {
  const auto rows = RowsOf("\"ID\",\"A\",\"B\"\n\"0\",\"a \"\"b\"\", c\nd\",\n\"1\",,\"\"");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_THAT(rows[1].fields, ElementsAre("0", "a \"b\", c\nd", ""));
  EXPECT_THAT(rows[2].fields, ElementsAre("1", "", ""));
  EXPECT_EQ(rows[2].line, 4U);
}

TEST(CsvScanner, FieldsThatAreNotAsInTheTextStandBesideEachOther) {
  const auto rows = RowsOf("\"ID\",x\n\"0\"1,bare,\"\"\"a\"\"\",\"0123456789\"\"\",\"end\",\r\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0].fields, ElementsAre("ID", "x"));
  EXPECT_THAT(rows[1].fields, ElementsAre("01", "bare", "\"a\"", "0123456789\"", "end", ""));
}

TEST(CsvScanner, OpenQuoteIsAnErrorWithFileAndLine) {
  for (const std::string_view text :
       {"\"ID\",\"A\"\n\"0\",\"never", "\"ID\",\"A\"\n\"0\",\"a\"\"", "\"ID\",\"A\"\n\""}) {
    CsvScanner scanner(text, "cut.csv");
    ASSERT_TRUE(scanner.FindHeader());
    std::vector<std::string_view> fields;
    ASSERT_TRUE(scanner.Next(fields).ok());
    const auto row = scanner.Next(fields);
    ASSERT_FALSE(row.ok()) << text;
    EXPECT_EQ(row.error().code, ErrorCode::kParse);
    EXPECT_THAT(row.error().message, HasSubstr("cut.csv:2"));
  }
}

TEST(CsvScanner, NoTableIsNotAnError) {
  EXPECT_TRUE(RowsOf("==ERROR== nothing here\n").empty());
  EXPECT_TRUE(RowsOf("").empty());
}

TEST(ParseCsvLine, OneLine) {
  EXPECT_THAT(ParseCsvLine("a,\"b,\"\"c\"\"\",").value(), ElementsAre("a", "b,\"c\"", ""));
  EXPECT_THAT(ParseCsvLine("").value(), ElementsAre(""));
  EXPECT_FALSE(ParseCsvLine("a,\"b").has_value());
}

}  // namespace
}  // namespace kernelpro
