// SPDX-License-Identifier: Apache-2.0
#include "task/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <string_view>

namespace kernelpro {
namespace {

using ::testing::HasSubstr;

Result<TomlNode> Parse(std::string_view text) {
  return ParseToml(text, TomlSource(text, "task.toml"));
}

TEST(Toml, MembersKeepTheirOrderAndLines) {
  const auto root = Parse("zebra = 1\napple = 2.5\n[m.z]\nq = true\n[m.a]\ns = 'x'\n");
  ASSERT_TRUE(root.ok());
  ASSERT_EQ(root->items.size(), 3U);
  EXPECT_EQ(root->items[0].key, "zebra");
  EXPECT_EQ(root->items[1].key, "apple");
  EXPECT_EQ(root->items[1].line, 2U);
  const TomlNode* m = root->Find("m");
  ASSERT_NE(m, nullptr);
  ASSERT_EQ(m->items.size(), 2U);
  EXPECT_EQ(m->items[0].key, "z");
  EXPECT_EQ(m->items[0].line, 3U);
  EXPECT_EQ(m->items[1].Find("s")->text, "x");
  EXPECT_EQ(m->items[1].Find("s")->line, 6U);
}

TEST(Toml, InputsThatCrashTheLibraryAreParseErrors) {
  for (const std::string_view text :
       {"[)", "[,", "\xcc\xb1", "\xcc\xb1 = 1", "[\xcc\xb1]", "a.\xcc\xb1 = 1", "a = \xcc\xb1",
        "a = {\xcc\xb1 = 1}", "[[,", "[[)", "[", "[[", "[=", "a = [", "= 1"}) {
    const auto root = Parse(text);
    ASSERT_FALSE(root.ok()) << text;
    EXPECT_EQ(root.error().code, ErrorCode::kParse) << text;
    EXPECT_THAT(root.error().message, HasSubstr("task.toml:1: ")) << text;
  }
}

TEST(Toml, DeepInputEndsAsAnError) {
  std::string key = "a";
  for (int i = 0; i < 60'000; ++i) {
    key += ".a";
  }
  EXPECT_FALSE(Parse(key + " = 1").ok());
  EXPECT_FALSE(Parse("[" + key + "]").ok());
  EXPECT_FALSE(Parse("a = " + std::string(100'000, '[')).ok());
  std::string inline_tables = "a = ";
  for (int i = 0; i < 40'000; ++i) {
    inline_tables += "{a=";
  }
  EXPECT_FALSE(Parse(inline_tables).ok());
  EXPECT_FALSE(Parse(std::string(300'000, '#')).ok());
}

TEST(Toml, NonAsciiIsFineInStringsAndComments) {
  const auto root = Parse(
      "# \xc3\xa9\na = \"\xc3\xa9\"\nb = '''\n\xc3\xa9'''\n\"\xc3\xa9\" = \"\"\"x\"\"\"\"\"\n");
  ASSERT_TRUE(root.ok()) << root.error().message;
  EXPECT_EQ(root->Find("a")->text, "\xc3\xa9");
  EXPECT_EQ(root->Find("\xc3\xa9")->text, "x\"\"");
}

TEST(Toml, ErrorsShowTheLine) {
  const auto root = Parse("a = 1\nb = = 2\n");
  ASSERT_FALSE(root.ok());
  EXPECT_THAT(root.error().message, HasSubstr("task.toml:2: "));
  EXPECT_THAT(root.error().message, HasSubstr("\n  2 | b = = 2"));
}

TEST(Toml, AnyTextIsSafe) {
  static constexpr char kCharacters[] = "[]{}=.,\"'#\n\r\t ab_-01e+:TZ\\u\x80\xcc\xb1)\0";
  EXPECT_TRUE(rc::check("characters that mean something to TOML", [] {
    const auto text = *rc::gen::container<std::string>(
        rc::gen::elementOf(std::string(kCharacters, sizeof kCharacters - 1)));
    static_cast<void>(Parse(text));
  }));
}

}  // namespace
}  // namespace kernelpro
