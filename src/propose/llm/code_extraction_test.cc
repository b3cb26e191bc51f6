// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/code_extraction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "base/file.h"

namespace kernelpro::agents {
namespace {

using ::testing::HasSubstr;

std::string Kernel(const std::string& body = "  return cudaGetLastError();\n") {
  return "#include \"kernelpro_task.h\"\n\n__global__ void K(float* y) { y[0] = 1.0f < 2.0f; }\n\n"
         "extern \"C\" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {\n"
         "  K<<<1, 1, 0, stream>>>(args->y);\n" +
         body + "}\n";
}

void ExpectSource(const std::string& answer, const std::string& source) {
  const Extraction found = ExtractKernel(answer);
  EXPECT_TRUE(found.ok()) << found.why << "\n" << answer;
  EXPECT_EQ(found.source, source) << answer;
}

void ExpectRefused(const std::string& answer, const std::string& why) {
  const Extraction found = ExtractKernel(answer);
  EXPECT_FALSE(found.ok()) << answer;
  EXPECT_TRUE(found.source.empty());
  EXPECT_THAT(found.why, HasSubstr(why)) << answer;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string HtmlEscaped(const std::string& text) {
  return Replaced(Replaced(Replaced(Replaced(text, "&", "&amp;"), "<", "&lt;"), ">", "&gt;"), "\"",
                  "&quot;");
}

TEST(ExtractKernel, TakesEveryKindOfFence) {
  const std::string k = Kernel();
  ExpectSource("```cuda\n" + k + "```", k);
  ExpectSource("```\n" + k + "```\n", k);
  ExpectSource("~~~cpp\n" + k + "~~~\n", k);
  ExpectSource("````c++ title=\"x.cu\"\n" + k + "````\n", k);
  ExpectSource("Sure! Here is `kernelpro_run`:\n\n```CUDA\n" + k + "```\nIt is fast.\n", k);
  ExpectSource("1. The file:\n   ```cuda\n   " +
                   Replaced(k.substr(0, k.size() - 1), "\n", "\n   ") + "\n   ```\n",
               k);
  ExpectSource("````markdown\nThe file:\n```cuda\n" + k + "```\n````\n", k);
  ExpectSource("```markdown\n```cuda\n" + k + "```\n```\n", k);
  ExpectSource("~~~\n```cuda\n" + k + "```\n~~~\n", k);
  ExpectSource("<think>\n```cuda\n" + Kernel("  return cudaSuccess;\n") +
                   "```\nno, better:\n</think>\n```cuda\n" + k + "```",
               k);
}

TEST(ExtractKernel, TakesAPlainSource) {
  const std::string k = Kernel();
  ExpectSource(k, k);
  ExpectSource("\n\n" + k + "\n", k);
  ExpectSource("// A kernel.\n" + k, "// A kernel.\n" + k);
  ExpectSource(k + "```\n", k);  // Only the end of a fence.
  ExpectRefused("The kernel follows.\n" + k, "no code block");
  ExpectRefused(k + "\nThis is fast because it is small, I hope", "followed by text");
  ExpectRefused(k.substr(0, k.size() - 5), "ends in the middle");
  ExpectRefused("I cannot do that.", "no code block");
  ExpectRefused("", "empty");
  ExpectRefused(" \r\n\t", "empty");
}

TEST(ExtractKernel, RepairsLineEndsAndByteOrderMarks) {
  const std::string k = Kernel();
  ExpectSource("\xef\xbb\xbf" + k, k);
  ExpectSource(Replaced("```cuda\n" + k + "```\n", "\n", "\r\n"), k);
  ExpectSource("```cuda\n\xef\xbb\xbf" + k + "```", k);
}

TEST(ExtractKernel, ChoosesTheBlockThatDefinesTheEntry) {
  const std::string k = Kernel();
  ExpectSource("Before:\n```cuda\nx = y;\n```\nAfter:\n```cuda\n" + k + "```\n", k);
  ExpectSource("```cuda\n" + k + "```\nCall it so:\n```cpp\nkernelpro_run(&args, 0);\n```\n", k);
  ExpectSource("```cuda\n" + k + "```\nAnd again:\n```cuda\n\n" + k + "\n```\n", k);
  ExpectSource("```\nnvcc -O3 k.cu\n```\n```cuda\n" + k + "```", k);
  ExpectRefused("```cuda\n" + k + "```\nOr:\n```cuda\n" + Kernel("  return cudaSuccess;\n") + "```",
                "2 different files");
}

TEST(ExtractKernel, SaysWhenTheEntryIsMissing) {
  ExpectRefused("```cuda\n__global__ void K() {}\n```", "does not define kernelpro_run");
  ExpectRefused(
      "```cuda\nextern \"C\" cudaError_t kernelpro_run(const TaskArgs*, cudaStream_t);\n```",
      "does not define it");
  ExpectRefused("```cuda\nint main() { if (kernelpro_run(0, 0)) { return 1; } }\n```",
                "does not define it");
  ExpectRefused("```cuda\n// kernelpro_run(x) {\nint x;\n```", "does not define");
  ExpectRefused("```cuda\nconst char* s = \"kernelpro_run() {\";\n```", "does not define");
  ExpectRefused("```cuda\nint my_kernelpro_run(int) { return 0; }\n```", "does not define");
}

TEST(ExtractKernel, RefusesWhatWasCutOff) {
  const std::string k = Kernel();
  ExpectRefused("```cuda\n" + k, "cut off");
  ExpectRefused("```cuda\n" + k.substr(0, k.size() / 2), "cut off");
  ExpectRefused("<think>hmm\n```cuda\n" + k + "```", "empty");
  ExpectRefused("```cuda\n" + k + "\n```cuda\n" + Kernel("  return cudaSuccess;\n") + "```\n",
                "cut off");
  // What is cut off is not the kernel.
  ExpectSource("```cuda\n" + k + "```\nUse:\n```bash\nnvcc", k);
}

TEST(ExtractKernel, RefusesPatches) {
  const std::string diff =
      "--- a/k.cu\n+++ b/k.cu\n@@ -1,3 +1,3 @@\n-x\n+cudaError_t kernelpro_run(int) { return 0; "
      "}\n";
  ExpectRefused("```diff\n" + diff + "```", "patch");
  ExpectRefused("```cuda\n" + diff + "```", "patch");
  ExpectRefused(diff, "patch");
  ExpectRefused("```diff\n+ cudaError_t kernelpro_run(int) { return 0; }\n```", "patch");
  ExpectRefused(
      "```cuda\n<<<<<<< SEARCH\nkernelpro_run(int) { a }\n=======\nb\n>>>>>>> REPLACE\n```",
      "patch");
  ExpectRefused("*** Begin Patch\n*** Update File: k.cu\n", "patch");
  // Launches and decrements are none.
  const std::string k = Kernel("  int i = 3;\n  --i;\n  ++i;\n  return cudaGetLastError();\n");
  ExpectSource("```cuda\n" + k + "```", k);
  ExpectSource("What changes:\n```diff\n" + diff + "```\nAll of it:\n```cuda\n" + Kernel() + "```",
               Kernel());
}

TEST(ExtractKernel, RefusesElisions) {
  for (const char* comment :
       {"// ... rest unchanged", "// ...", "/* existing code */", "// ... existing code ...",
        "// rest of the code unchanged", "// (the kernel is unchanged)",
        "/* ... same as before ... */", "// ... remaining kernels ...",
        "// Rest of the file stays the same", "// \xe2\x80\xa6 other helpers \xe2\x80\xa6",
        "// your code here", "// other kernels omitted for brevity", "// keep the rest",
        "// previous code goes here", "/*\n * ...\n */", "// ... (same body as the original)"}) {
    ExpectRefused(
        "```cuda\n" + Kernel(std::string("  ") + comment + "\n  return cudaSuccess;\n") + "```",
        "leaves something out");
  }
  ExpectRefused("```cuda\n" + Kernel("  ...\n  return cudaSuccess;\n") + "```",
                "leaves something out");
}

TEST(ExtractKernel, HonestCommentsAreNoElisions) {
  for (const char* line :
       {"// The rest of the row is handled by the last warp.", "// Loads 0, 1, 2, ... of the tile",
        "x = f(args...);  // unpack", "template <class... T> void G(T... t);",
        "// remaining columns (cols % 4)", "int n = 0;  // unchanged in the loop",
        "// existing values are added, not replaced", "// Keep the maximum in a register",
        "// same as above, for the second half", "printf(\"... rest unchanged\");",
        "// code for the odd columns",
        "// The other lanes hold zeros; the order of sums is the same as in the reference."}) {
    const std::string k = Kernel(std::string("  ") + line + "\n  return cudaSuccess;\n");
    ExpectSource("```cuda\n" + k + "```", k);
  }
}

TEST(ExtractKernel, RepairsHtmlWhenAllOfItIsEscaped) {
  const std::string k = Kernel("  bool b = 1 < 2 && 3 > 2;\n  return cudaGetLastError();\n");
  ExpectSource("```cuda\n" + HtmlEscaped(k) + "```", k);
  ExpectSource(HtmlEscaped(k), k);
  ExpectRefused("```cuda\n" + Replaced(k, "1 < 2", "1 &lt; 2") + "```", "escaped as HTML");
  ExpectRefused("```cuda\n" + Replaced(HtmlEscaped(k), "&amp;&amp;", "&&") + "```",
                "escaped as HTML");
  // Addresses of variables, and text in literals and comments.
  const std::string honest = Kernel(
      "  int lt = 0;\n  int* p = &lt;\n  // a &lt; b\n  puts(\"&amp;\");\n  return "
      "cudaSuccess;\n");
  ExpectSource("```cuda\n" + honest + "```", honest);
}

TEST(ExtractKernel, RefusesSeveralFiles) {
  const std::string k = Kernel();
  ExpectRefused("```cuda\n// file: common.cuh\n#define N 4\n// file: k.cu\n" + k + "```",
                "several files");
  ExpectRefused(
      "common.cuh:\n```cuda\n#define N 4\n```\nk.cu:\n```cuda\n#include \"common.cuh\"\n" + k +
          "```",
      "second file, common.cuh");
  ExpectSource("```cuda\n// file: k.cu\n" + k + "```", "// file: k.cu\n" + k);
  ExpectSource("```cuda\n" + k + "```\nCMakeLists.txt:\n```cmake\nproject(x)\n```", k);
}

TEST(ExtractKernel, SurvivesMonsters) {
  EXPECT_FALSE(ExtractKernel(std::string(kLongestAnswer + 1, 'x')).ok());
  std::string fences;
  for (int i = 0; i < 5000; ++i) {
    fences += "```a\n";
  }
  EXPECT_FALSE(ExtractKernel(fences).ok());
  EXPECT_FALSE(ExtractKernel("```cuda\n" + std::string(100000, '(') + "```").ok());
  EXPECT_FALSE(ExtractKernel(std::string("```cuda\n\0", 9) + Kernel() + "```").ok());
  EXPECT_FALSE(ExtractKernel("kernelpro_run(").ok());
  EXPECT_FALSE(ExtractKernel("R\"(").ok());
  // Each of these once took time that grows with the square of the length.
  for (const char* piece : {"kernelpro_run(", "/**/", "R\"x", "&lt;", "\"a\"", "<", "// ", "'"}) {
    std::string text = "```cuda\n";
    while (text.size() < kLongestAnswer - 100) {
      text += piece;
    }
    EXPECT_FALSE(ExtractKernel(text + "\n```").ok());
  }
}

TEST(ExtractKernel, TheExamplesSeedsComeBackWhole) {
  for (const char* name : {"row_softmax", "transpose", "matmul", "layer_norm", "block_sum"}) {
    const auto seed = ReadFile(std::string(KP_SOURCE_DIR) + "/examples/tasks/" + name + "/seed.cu");
    ASSERT_TRUE(seed);
    ExpectSource("```cuda\n" + *seed + "```\n", *seed);
    ExpectSource(*seed, *seed);
    ExpectSource("```cuda\n" + HtmlEscaped(*seed) + "```\n", *seed);
  }
}

TEST(ExtractKernel, WhateverStandsAroundItTheKernelComesBack) {
  rc::check("wrapped kernels come back unchanged", [] {
    const auto chatter = rc::gen::container<std::string>(
        rc::gen::element('a', ' ', '\n', '#', '*', '<', '1', '.', '{', ')', '-', '+'));
    const std::string before = *chatter;
    const std::string after = *chatter;
    const char mark = *rc::gen::element('`', '~');
    const std::string fence(*rc::gen::inRange<std::size_t>(3, 6), mark);
    const std::string language = *rc::gen::element<std::string>("", "cuda", "cpp", "c++ x");
    const std::string indent(*rc::gen::inRange<std::size_t>(0, 4), ' ');
    const bool carriage = *rc::gen::arbitrary<bool>();
    std::string source = Kernel("  int v = " + std::to_string(*rc::gen::arbitrary<int>()) +
                                ";\n  return cudaGetLastError();\n");
    std::string answer = before + "\n" + indent + fence + language + "\n";
    answer += indent + Replaced(source.substr(0, source.size() - 1), "\n", "\n" + indent) + "\n";
    answer += indent + fence + "\n" + after;
    if (carriage) {
      answer = Replaced(answer, "\n", "\r\n");
    }
    const Extraction found = ExtractKernel(answer);
    RC_ASSERT(found.why == "");
    RC_ASSERT(found.source == source);
  });
  rc::check("any text is a whole kernel or a reason", [] {
    std::string answer;
    for (const int piece : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 12))) {
      const std::vector<std::string> pieces = {
          "```",  "```cuda\n", "\n",   Kernel(), "~~~\n", "// ... rest unchanged\n",
          "@@ 1", "&lt;",      "R\"(", "/*",     "\"",    "kernelpro_run(int) {"};
      answer += pieces[static_cast<std::size_t>(piece)];
    }
    const Extraction found = ExtractKernel(answer);
    RC_ASSERT(found.ok() == !found.source.empty());
    RC_ASSERT(!found.ok() || found.source.find("kernelpro_run") != std::string::npos);
  });
}

}  // namespace
}  // namespace kernelpro::agents
