// SPDX-License-Identifier: Apache-2.0
#include "profile/text_file.h"

#include <gtest/gtest.h>

#include <string>

namespace kernelpro {
namespace {

using namespace std::string_literals;

TEST(WideText, BecomesUtf8) {
  EXPECT_EQ(FromWideText("\xFF\xFE"
                         "a\0\xE9\0\xAC\x20\x3D\xD8\x00\xDE"s),
            "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(FromWideText("\xFE\xFF\0a\x20\xAC"s), "a\xE2\x82\xAC");
  EXPECT_EQ(FromWideText("\xFF\xFE\x3D\xD8z\0"s), "?z") << "half of a pair";
  EXPECT_EQ(FromWideText("\xFF\xFE\x3D\xD8"s), "?");
  EXPECT_EQ(FromWideText("\xFF\xFE"
                         "a"s),
            "");
}

TEST(WideText, OtherBytesStay) {
  for (const std::string& text : {""s, "\xEF\xBB\xBFx"s, "a\0b"s, "\xFF"s}) {
    EXPECT_EQ(FromWideText(text), text);
  }
}

}  // namespace
}  // namespace kernelpro
