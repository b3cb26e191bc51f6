// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/text.h"

namespace kernelpro {
namespace {

TEST(File, WritesAtomicallyAndReadsBack) {
  auto folder = TemporaryFolder::Create("kp-base");
  ASSERT_TRUE(folder.ok());
  const auto path = folder->path() / "a" / "b.txt";
  ASSERT_TRUE(WriteFileAtomically(path, "one").ok());
  ASSERT_TRUE(WriteFileAtomically(path, std::string("t\0o", 3)).ok());
  EXPECT_EQ(*ReadFile(path), std::string("t\0o", 3));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}), 1)
      << "a temporary file was left behind";
}

TEST(File, SaysWhatIsWrong) {
  EXPECT_EQ(ReadFile("/no/such/file").error().code, ErrorCode::kNotFound);
  EXPECT_NE(ReadFile("/").error().message.find("folder"), std::string::npos);
  auto folder = TemporaryFolder::Create("kp-base");
  ASSERT_TRUE(WriteFileAtomically(folder->path() / "x", "12345").ok());
  EXPECT_TRUE(ReadFile(folder->path() / "x", 5).ok());
  EXPECT_EQ(ReadFile(folder->path() / "x", 4).error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(WriteFileAtomically("/proc/nope/x", "1").ok());
}

TEST(File, TemporaryFolderGoesAway) {
  std::filesystem::path path;
  {
    auto folder = TemporaryFolder::Create("kp-base");
    path = folder->path();
    auto moved = std::move(folder).value();
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Hash, PartsDoNotRunTogether) {
  const std::string_view a[] = {"ab", "c"};
  const std::string_view b[] = {"a", "bc"};
  EXPECT_NE(ContentHash(a), ContentHash(b));
  EXPECT_EQ(ContentHash(a).size(), 32U);
}

TEST(Rng, SameSeedSameStreamAndForksDiffer) {
  Rng a(7);
  Rng b(7);
  EXPECT_EQ(a.Next(), b.Next());
  std::set<std::uint64_t> firsts;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    firsts.insert(Rng(7).Fork(i).Next());
  }
  EXPECT_EQ(firsts.size(), 1000U);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(a.Below(10), 10U);
    EXPECT_LT(a.Uniform(), 1.0);
  }
}

TEST(Text, LinesAndNumbers) {
  EXPECT_EQ(Lines("a\r\nb\n\nc").size(), 4U);
  EXPECT_EQ(Lines("a\r\n")[0], "a");
  EXPECT_TRUE(Lines("").empty());
  EXPECT_EQ(Trim(" \t x y \n"), "x y");
  long long i = 0;
  EXPECT_TRUE(ParseInteger("-12", &i));
  EXPECT_EQ(i, -12);
  EXPECT_FALSE(ParseInteger("12x", &i));
  EXPECT_FALSE(ParseInteger("99999999999999999999", &i));
  double d = 0;
  EXPECT_TRUE(ParseDouble("1e-3", &d));
  EXPECT_FALSE(ParseDouble("", &d));
}

TEST(Text, PrintableKeepsUtf8AndReplacesTheRest) {
  EXPECT_EQ(Printable("a\x1b[31m\xff\xc3\xa9\n", 100), "a?[31m?\xc3\xa9\n");
  EXPECT_EQ(Printable("abcdef", 3), "abc[...]");
  EXPECT_EQ(Printable("\xed\xa0\x80", 100), "???") << "a surrogate is not UTF-8";
}

TEST(CheckDeathTest, AbortsWithMessage) {
  EXPECT_DEATH(KP_CHECK(1 + 1 == 3) << "sum " << 2, "1 \\+ 1 == 3.*sum 2");
}

}  // namespace
}  // namespace kernelpro
