// SPDX-License-Identifier: Apache-2.0
#include "toolchain/diagnostics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {
namespace {

using Severity = Diagnostic::Severity;
using ::testing::HasSubstr;

struct Sample {
  std::string_view line;
  Severity severity;
  std::string_view file;
  std::uint32_t number;
  std::string_view text;
};

class DiagnosticLine : public ::testing::TestWithParam<Sample> {};

TEST_P(DiagnosticLine, IsUnderstood) {
  const Sample& sample = GetParam();
  const auto parsed = ParseDiagnostics(sample.line);
  ASSERT_EQ(parsed.size(), 1U) << sample.line;
  EXPECT_EQ(parsed[0].severity, sample.severity);
  EXPECT_EQ(parsed[0].file, sample.file);
  EXPECT_EQ(parsed[0].line, sample.number);
  EXPECT_EQ(parsed[0].text, sample.text);
}

INSTANTIATE_TEST_SUITE_P(
    All, DiagnosticLine,
    ::testing::Values(
        Sample{"candidate.cu(12): error: identifier \"foo\" is undefined", Severity::kError,
               "candidate.cu", 12, "identifier \"foo\" is undefined"},
        Sample{"candidate.cu(2): warning #177-D: variable \"unused\" was declared but never "
               "referenced",
               Severity::kWarning, "candidate.cu", 2,
               "variable \"unused\" was declared but never referenced"},
        Sample{"a(1) b.cu(3): catastrophic error: cannot open source file \"x.h\"",
               Severity::kError, "a(1) b.cu", 3, "cannot open source file \"x.h\""},
        Sample{"k.cu(5): note #3322-D: number of parameters does not match", Severity::kNote,
               "k.cu", 5, "number of parameters does not match"},
        Sample{"k.cu:6:44: warning: 'z' is used uninitialized [-Wuninitialized]",
               Severity::kWarning, "k.cu", 6, "'z' is used uninitialized [-Wuninitialized]"},
        Sample{"k.cu:1:10: fatal error: nothere.h: No such file or directory", Severity::kError,
               "k.cu", 1, "nothere.h: No such file or directory"},
        Sample{"/a:3/k.cu:4: error: unterminated #if", Severity::kError, "/a:3/k.cu", 4,
               "unterminated #if"},
        Sample{"ptxas keep/k.ptx, line 577; error   : Unknown modifier '.bar'", Severity::kError,
               "keep/k.ptx", 577, "Unknown modifier '.bar'"},
        Sample{"ptxas error   : Entry function '_Z1kPf' uses too much shared data (0x3a980 bytes, "
               "0xc000 max)",
               Severity::kError, "", 0,
               "Entry function '_Z1kPf' uses too much shared data (0x3a980 bytes, 0xc000 max)"},
        Sample{"ptxas fatal   : Ptx assembly aborted due to errors", Severity::kError, "", 0,
               "Ptx assembly aborted due to errors"},
        Sample{
            "ptxas warning : Registers are spilled to local memory in function 'f', 8 bytes spill "
            "stores, 8 bytes spill loads",
            Severity::kWarning, "", 0,
            "Registers are spilled to local memory in function 'f', 8 bytes spill stores, 8 bytes "
            "spill loads"},
        Sample{"nvcc fatal   : Unsupported gpu architecture 'compute_10'", Severity::kError, "", 0,
               "Unsupported gpu architecture 'compute_10'"},
        Sample{"nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)",
               Severity::kError, "", 0, "'cicc' died due to signal 11 (Invalid memory reference)"},
        Sample{"nvlink error   : Undefined reference to 'f' in 'k.o'", Severity::kError, "", 0,
               "Undefined reference to 'f' in 'k.o'"},
        Sample{"k.cudafe1.cpp:(.text+0xab): undefined reference to `ext()'", Severity::kError, "",
               0, "undefined reference to `ext()'"},
        Sample{"collect2: error: ld returned 1 exit status", Severity::kError, "", 0,
               "ld returned 1 exit status"},
        Sample{"cc1plus: out of memory allocating 4294967312 bytes after a total of 2228224 bytes",
               Severity::kError, "", 0,
               "cc1plus: out of memory allocating 4294967312 bytes after a total of 2228224 bytes"},
        Sample{"g++: fatal error: Killed signal terminated program cc1plus", Severity::kError, "",
               0, "Killed signal terminated program cc1plus"}));

TEST(Diagnostics, SkipsWhatIsNoMessage) {
  for (const std::string_view line :
       {"ptxas info    : 0 bytes gmem", "ptxas info    : Used 10 registers, used 0 barriers",
        "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"",
        "1 error detected in the compilation of \"k.cu\".", "In file included from k.cu:1:",
        "k.cu: In function 'int g()':", "    k.cu(3): error: indented", "", "k.cu(3)",
        "k.cu(x): error: y", "k.cu(): error: y", "(3): error: y", ":3:4: error: y", "error",
        "k.cu:3:4: errors: y"}) {
    EXPECT_TRUE(ParseDiagnostics(line).empty()) << line;
  }
}

TEST(Diagnostics, JoinsTheLinesOfOneMessageAndDropsTheSource) {
  const auto parsed = ParseDiagnostics(
      "k.cu(3): error: no instance of function template \"f\" matches the argument list\n"
      "            argument types are: (int *)\n"
      "    f(p);\n"
      "    ^\n"
      "\n"
      "k.cu(9): error: expected a \";\"\n"
      "  }\n"
      "  ^\n"
      "2 errors detected in the compilation of \"k.cu\".\n");
  ASSERT_EQ(parsed.size(), 2U);
  EXPECT_EQ(parsed[0].text,
            "no instance of function template \"f\" matches the argument list; argument types are: "
            "(int *)");
  EXPECT_EQ(parsed[1].text, "expected a \";\"");
}

TEST(Diagnostics, KeepsEqualMessagesOnceAndErrorsFirst) {
  auto parsed = ParseDiagnostics(
      "k.cu(1): warning #1-D: w\nk.cu(2): error: e\nk.cu(1): warning #1-D: w\nk.cu(3): error: e\n");
  ASSERT_EQ(parsed.size(), 3U);
  PutErrorsFirst(&parsed);
  EXPECT_EQ(parsed[0].line, 2U);
  EXPECT_EQ(parsed[1].line, 3U);
  EXPECT_EQ(parsed[2].severity, Severity::kWarning);
  EXPECT_TRUE(HasError(parsed));
  parsed.erase(parsed.begin(), parsed.begin() + 2);
  EXPECT_FALSE(HasError(parsed));
}

TEST(Diagnostics, SurvivesFloodsAndOddNumbers) {
  std::string flood;
  for (int i = 0; i < 5000; ++i) {
    flood += fmt::format("k.cu({}): error: e{}\n", i + 1, i);
  }
  EXPECT_EQ(ParseDiagnostics(flood).size(), 200U);
  EXPECT_LE(ParseDiagnostics("k.cu(1): error: " + std::string(100'000, 'x'))[0].text.size(), 1100U);
  EXPECT_EQ(ParseDiagnostics("k.cu(99999999999999): error: x").size(), 0U);
  EXPECT_EQ(ParseDiagnostics("k.cu(9999999999): error: x")[0].line, 0U);
}

TEST(Diagnostics, EveryMessageIsFoundAgainInNoise) {
  EXPECT_TRUE(rc::check("messages between lines of other kinds", [] {
    const std::vector<std::string> noise = {"ptxas info    : 0 bytes gmem", "",
                                            "In file included from a.h:1:", "\xff\x01 garbage (",
                                            "make[1]: Entering directory"};
    std::string log;
    std::vector<std::uint32_t> expected;
    const int count = *rc::gen::inRange(0, 20);
    for (int i = 0; i < count; ++i) {
      log += *rc::gen::elementOf(noise) + "\n";
      const auto line = static_cast<std::uint32_t>(*rc::gen::inRange(1, 100'000));
      const int form = *rc::gen::inRange(0, 3);
      const std::string text = fmt::format("message {}", i);
      log += form == 0   ? fmt::format("k.cu({}): error: {}\n", line, text)
             : form == 1 ? fmt::format("k.cu:{}:3: warning: {}\n", line, text)
                         : fmt::format("ptxas k.ptx, line {}; error   : {}\n", line, text);
      expected.push_back(line);
    }
    const auto parsed = ParseDiagnostics(log);
    RC_ASSERT(parsed.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      RC_ASSERT(parsed[i].line == expected[i]);
      RC_ASSERT(parsed[i].text == fmt::format("message {}", i));
    }
  }));
}

TEST(Diagnostics, AnyTextIsSafe) {
  EXPECT_TRUE(rc::check("pieces of messages in any order", [] {
    const std::vector<std::string> pieces = {"k.cu",        "(",
                                             ")",           ":",
                                             "3",           " error",
                                             "error",       ": ",
                                             ", line ",     "; ",
                                             "ptxas ",      "nvcc ",
                                             "#",           "-D",
                                             "\n",          "  ",
                                             "^",           "\t",
                                             "99999999999", "\xff",
                                             "cc1plus: ",   "undefined reference to "};
    std::string log;
    for (const std::string& piece :
         *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces))) {
      log += piece;
    }
    for (const Diagnostic& diagnostic : ParseDiagnostics(log)) {
      RC_ASSERT(diagnostic.text.size() < 1100U);
    }
  }));
}

}  // namespace
}  // namespace kernelpro
