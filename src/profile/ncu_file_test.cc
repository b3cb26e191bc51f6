// SPDX-License-Identifier: Apache-2.0
#include "profile/ncu_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using namespace std::string_view_literals;
using ::testing::HasSubstr;

class NcuFile : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create("kp-ncu-file");
    ASSERT_TRUE(folder.ok());
    folder_.emplace(std::move(*folder));
  }

  fs::path Write(std::string_view name, std::string_view bytes) {
    const fs::path path = folder_->path() / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  /// A program in ncu's place.
  fs::path Ncu(std::string_view script) {
    const fs::path path = Write("ncu", "#!/bin/sh\n" + std::string(script));
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  std::optional<TemporaryFolder> folder_;
};

constexpr std::string_view kCsv =
    "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
    "\"0\",\"f(int)\",\"gpu__time_duration.sum\",\"ns\",\"1,500\"\n"
    "\"0\",\"f(int)\",\"a__b.pct\",\"%\",\"12.5\"\n";

constexpr std::string_view kText =
    "  f(int) (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"
    "    Section: S\n"
    "    ----------- ----------- ------------\n"
    "    Metric Name Metric Unit Metric Value\n"
    "    ----------- ----------- ------------\n"
    "    Duration             us         1.50\n"
    "    ----------- ----------- ------------\n";

TEST_F(NcuFile, CsvAndTextByContentWhateverTheName) {
  for (const std::string_view text : {kCsv, kText}) {
    const auto profile = ReadNcu(Write("a.log", text), {}, {});
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    EXPECT_EQ(profile->kernels.at(0).name, "f");
    EXPECT_DOUBLE_EQ(profile->kernels[0].time_us, 1.5);
  }
}

/// PowerShell's ">" writes UTF-16 with a byte-order mark.
TEST_F(NcuFile, WideTextFromWindows) {
  std::string little = "\xFF\xFE";
  std::string big = "\xFE\xFF";
  for (const char c : "\x80 noise\r\n" + std::string(kText)) {
    const bool euro = c == '\x80';
    little += euro ? "\xAC\x20"s : std::string{c, '\0'};
    big += euro ? "\x20\xAC"s : std::string{'\0', c};
  }
  for (const std::string& text : {little, big, little + "x"}) {
    const auto profile = ReadNcu(Write("a.txt", text), {}, {});
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    EXPECT_DOUBLE_EQ(profile->kernels.at(0).time_us, 1.5);
  }
}

TEST_F(NcuFile, AReportIsReadByNcu) {
  const fs::path report = Write("a.ncu-rep", "NVR\0\1"sv);
  const fs::path ncu =
      Ncu("test \"$LC_ALL\" = C || exit 7\n"
          "test \"$1 $3 $4 $5 $6 $7\" = '--import --csv --page raw --print-units base' || exit 8\n"
          "test -f \"$2\" || exit 9\ncat <<'EOF'\n" +
          std::string(kCsv) + "EOF\n");
  const auto profile = ReadNcu(report, {}, ncu);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_DOUBLE_EQ(profile->kernels.at(0).time_us, 1.5);
  EXPECT_THAT(profile->source, HasSubstr("a.ncu-rep"));
}

TEST_F(NcuFile, AReportWithoutNcuOrRefusedByItSaysWhatToDo) {
  const fs::path report = Write("b.ncu-repz", "(not known)\0"sv);
  const auto none = ReadNcu(report, {}, {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(none.error().message, HasSubstr("ncu --import b.ncu-repz --csv --page raw"));
  const auto refused = ReadNcu(report, {}, Ncu("echo '==ERROR== newer version' >&2; exit 1\n"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kToolFailed);
  EXPECT_THAT(refused.error().message, HasSubstr("newer version"));
  EXPECT_FALSE(ReadNcu(report, {}, Ncu("exit 0\n")).ok()) << "nothing was printed";
}

TEST_F(NcuFile, OtherFilesAreNamed) {
  const auto told = [this](std::string_view bytes, ErrorCode code) {
    const auto profile = ReadNcu(Write("c", bytes), {}, {});
    EXPECT_FALSE(profile.ok());
    EXPECT_EQ(profile.error().code, code) << profile.error().message;
    return profile.ok() ? "" : profile.error().message;
  };
  EXPECT_THAT(
      told("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", ErrorCode::kParse),
      HasSubstr("compute-sanitizer log"));
  EXPECT_THAT(told("SQLite format 3\0"sv, ErrorCode::kParse), HasSubstr("SQLite"));
  EXPECT_THAT(told("hello\n", ErrorCode::kParse), HasSubstr("none of NVIDIA's tools"));
  EXPECT_THAT(told("", ErrorCode::kNotFound), HasSubstr("empty"));
  EXPECT_THAT(told("==ERROR== ERR_NVGPUCTRPERM\n", ErrorCode::kUnavailable),
              HasSubstr("NVreg_RestrictProfilingToAdminUsers"));
  EXPECT_EQ(ReadNcu(folder_->path() / "absent", {}, {}).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(ReadNcu(folder_->path(), {}, {}).ok()) << "a folder";
}

}  // namespace
}  // namespace kernelpro
