// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace kernelpro::agents {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class PromptsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::Create("prompts");
    ASSERT_TRUE(made);
    folder_.emplace(std::move(*made));
    for (const PromptFile& prompt : PromptFiles()) {
      std::filesystem::copy_file(std::filesystem::path(KP_SOURCE_DIR) / "prompts" / prompt.file,
                                 Path(prompt.file));
    }
  }

  [[nodiscard]] std::filesystem::path Path(std::string_view file) const {
    return folder_->path() / file;
  }

  void Write(std::string_view file, std::string_view text) const {
    std::ofstream(Path(file), std::ios::binary) << text;
  }

  [[nodiscard]] Error ErrorOf() const {
    const auto loaded = Prompts::Load(folder_->path().string());
    EXPECT_FALSE(loaded);
    return loaded ? Error{} : loaded.error();
  }

  std::optional<TemporaryFolder> folder_;
};

TEST_F(PromptsTest, TheBuiltInOnesAreTheFiles) {
  const auto built_in = Prompts::Load("");
  const auto files = Prompts::Load(folder_->path().string());
  ASSERT_TRUE(built_in) << built_in.error().message;
  ASSERT_TRUE(files) << files.error().message;
  for (const PromptFile& prompt : PromptFiles()) {
    PromptValues values;
    for (const std::string_view name : prompt.names) {
      values.emplace(name, std::string("<") + std::string(name) + ">");
    }
    const std::string text = built_in->Render(prompt.file, values);
    EXPECT_EQ(text, files->Render(prompt.file, values));
    EXPECT_THAT(text, Not(HasSubstr("{{")));
    // Every name is used, and nothing is escaped for a browser.
    for (const std::string_view name : prompt.names) {
      EXPECT_THAT(text, HasSubstr("<" + std::string(name) + ">")) << prompt.file;
    }
  }
}

TEST_F(PromptsTest, AUsersOwnTextIsUsed) {
  Write("retry.md", "Again!\r\n{{#problem}}\r\nBecause: {{ problem }}\r\n{{/problem}}\r\nend\r\n");
  const auto prompts = Prompts::Load(folder_->path().string());
  ASSERT_TRUE(prompts) << prompts.error().message;
  EXPECT_EQ(prompts->Render("retry.md", {{"problem", "a < b & \"c\""}}),
            "Again!\nBecause: a < b & \"c\"\nend\n");
  // The library leaves the line of the section's tag.
  EXPECT_EQ(prompts->Render("retry.md", {{"problem", ""}}), "Again!\n\nend\n");
}

TEST_F(PromptsTest, TextThatIsPutInIsNoTemplate) {
  const auto prompts = Prompts::Load("");
  ASSERT_TRUE(prompts);
  for (const char* text : {"{{problem}}", "{{#problem}}x{{/problem}}", "{{=<% %>=}}", "{{"}) {
    EXPECT_THAT(prompts->Render("retry.md", {{"problem", text}}), HasSubstr(text));
  }
}

TEST_F(PromptsTest, AMissingFileIsNamed) {
  std::filesystem::remove(Path("coder.md"));
  const Error error = ErrorOf();
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("coder.md"));
  EXPECT_EQ(Prompts::Load("/nonexistent/folder").error().code, ErrorCode::kNotFound);
}

TEST_F(PromptsTest, MistakesAreShownWithFileAndLine) {
  struct Case {
    const char* text;
    const char* message;
  };

  for (const Case& c : std::vector<Case>{
           {"one\ntwo {{sauce}}\n", "coder.md:2: unknown name sauce; this prompt has times"},
           {"{{#plan}}\nx\n", "coder.md:1: the section plan has no end"},
           {"x\n\n{{/plan}}\n", "coder.md:3: {{/plan}} ends no section"},
           {"{{#plan}}{{#note}}{{/plan}}{{/note}}", "coder.md:1: {{/plan}} ends no section"},
           {"a\n{{plan", "coder.md:2: \"{{\" without"},
           {"{{{plan}}}", "is none of {{name}}"},
           {"{{> other}}", "is none of {{name}}"},
           {"{{=<% %>=}}", "is none of {{name}}"},
           {"{{}}", "is none of {{name}}"},
           {"a\nb\n\x01", "coder.md:3: a control character"},
           {"a\n\xff", "coder.md:2: a control character, or bytes that are not UTF-8"}}) {
    Write("coder.md", c.text);
    const Error error = ErrorOf();
    EXPECT_EQ(error.code, ErrorCode::kParse);
    EXPECT_THAT(error.message, HasSubstr(c.message)) << c.text;
  }
  Write("placebo.md", "{{plan}}");
  Write("coder.md", "fine");
  EXPECT_THAT(ErrorOf().message, EndsWith("this prompt has none"));
}

}  // namespace
}  // namespace kernelpro::agents
