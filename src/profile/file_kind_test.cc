// SPDX-License-Identifier: Apache-2.0
#include "profile/file_kind.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kernelpro {
namespace {

using namespace std::string_view_literals;

TEST(SniffFile, ByContent) {
  EXPECT_EQ(SniffFile("", "x"), FileKind::kEmpty);
  EXPECT_EQ(SniffFile(" \r\n", "x"), FileKind::kEmpty);
  EXPECT_EQ(SniffFile("NVR\0\1\2"sv, "x"), FileKind::kNcuReport);
  EXPECT_EQ(SniffFile("SQLite format 3\0"sv, "x.ncu-rep.sqlite"), FileKind::kSqlite);
  EXPECT_EQ(SniffFile("\x7f"
                      "ELF\0"sv,
                      "x"),
            FileKind::kBinary);
  EXPECT_EQ(SniffFile("\xFF\xFE\"\0I\0"sv, "x"), FileKind::kWideText);
  EXPECT_EQ(SniffFile("\xEF\xBB\xBF\"ID\",\"Kernel Name\"\n", "x"), FileKind::kNcuCsv);
  EXPECT_EQ(SniffFile("==PROF== Connected\n\"ID\",\"Kernel Name\"\n", "x"), FileKind::kNcuCsv);
  EXPECT_EQ(SniffFile("==PROF== Connected\n  k (1, 1, 1)x(1, 1, 1), Context 1, Stream 7\n", "x"),
            FileKind::kNcuText);
  EXPECT_EQ(SniffFile("==PROF== Connected\n", "x"), FileKind::kNcuLog);
  EXPECT_EQ(SniffFile("[6/8] Executing 'cuda_gpu_kern_sum' stats report\n", "x"),
            FileKind::kNsysStats);
  EXPECT_EQ(SniffFile("Start (ns),Duration (ns),Name\n", "x"), FileKind::kNsysStats);
  EXPECT_EQ(SniffFile("#7 1.2 ptxas info    : 0 bytes gmem\n", "x"), FileKind::kPtxasLog);
  EXPECT_EQ(SniffFile("Resource usage:\n", "x"), FileKind::kResourceUse);
  EXPECT_EQ(SniffFile("\tcode for sm_90\n", "x"), FileKind::kDisassembly);
  EXPECT_EQ(SniffFile("========= COMPUTE-SANITIZER\n=====\n", "x"), FileKind::kSanitizerLog);
  EXPECT_EQ(SniffFile("========= ERROR SUMMARY: 0 errors\n", "x"), FileKind::kSanitizerLog);
  EXPECT_EQ(SniffFile("==========================\n Bench\n", "x"), FileKind::kText)
      << "a banner is no sanitizer";
}

TEST(SniffFile, ByNameWhereContentSaysNothing) {
  EXPECT_EQ(SniffFile("\1\0\0"sv, "a.ncu-repz"), FileKind::kNcuReport);
  EXPECT_EQ(SniffFile("\1\0\0"sv, "a.nsys-rep"), FileKind::kNsysReport);
  EXPECT_EQ(SniffFile("\1\0\0"sv, "a.qdrep"), FileKind::kNsysReport);
  EXPECT_EQ(SniffFile("hello\n", "a.csv"), FileKind::kText);
}

TEST(SniffFile, EveryKindHasWords) {
  for (int i = 0; i <= static_cast<int>(FileKind::kText); ++i) {
    EXPECT_NE(Describe(static_cast<FileKind>(i)), "unknown") << i;
  }
}

}  // namespace
}  // namespace kernelpro
