// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/file.h"
#include "llm/client.h"
#include "llm/endpoint.h"

namespace kernelpro::llm {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kSecret = "sk-proj-Ab1/Cd2+Ef3_Gh4\"Ij5";

TEST(Redact, WholeEscapedAndPartialForms) {
  const Key key(kSecret);
  EXPECT_EQ(key.Redact("bad key: " + kSecret + "."), "bad key: [key].");
  EXPECT_EQ(key.Redact(kSecret + kSecret), "[key][key]");
  EXPECT_EQ(key.Redact(R"({"k":"sk-proj-Ab1/Cd2+Ef3_Gh4\"Ij5"})"), R"({"k":"[key]"})");
  EXPECT_EQ(key.Redact(R"(sk-proj-Ab1\/Cd2+Ef3_Gh4\"Ij5)"), "[key]");
  EXPECT_EQ(key.Redact("?key=sk-proj-Ab1%2FCd2%2BEf3_Gh4%22Ij5&x"), "?key=[key]&x");
  EXPECT_EQ(key.Redact("?key=sk-proj-Ab1%2fCd2%2bEf3_Gh4%22Ij5&x"), "?key=[key]&x");
  EXPECT_EQ(key.Redact("Incorrect API key: sk-proj-Ab1/***"), "Incorrect API key: [key]***");
  EXPECT_EQ(key.Redact("middle: Cd2+Ef3_Gh4\"I!"), "middle: [key]!");
  EXPECT_EQ(key.Redact("harmless: Cd2+Ef3, sk-pro"), "harmless: Cd2+Ef3, sk-pro");
  EXPECT_EQ(Key().Redact("text"), "text");
  EXPECT_EQ(Key("abc").Redact("abcab"), "[key]ab");
}

TEST(Redact, NoRunOfTwelveCharactersIsLeft) {
  EXPECT_TRUE(rc::check("any text around any part of a key", [] {
    const auto letters = rc::gen::container<std::string>(
        rc::gen::elementOf(std::string("abcdefghijkmnpqrstuvwxyz0123456789")));
    const std::string secret = "k" + *rc::gen::resize(60, letters) + "0123456789abc";
    const auto from = *rc::gen::inRange<std::size_t>(0, secret.size() - 12 + 1);
    const auto size = *rc::gen::inRange<std::size_t>(12, secret.size() - from + 1);
    const std::string text =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("AB \n"))) +
        secret.substr(from, size) +
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("AB \n")));
    const std::string clean = Key(secret).Redact(text);
    for (std::size_t at = 0; at + 12 <= secret.size(); ++at) {
      RC_ASSERT(clean.find(secret.substr(at, 12)) == std::string::npos);
    }
    RC_ASSERT(clean.find("[key]") != std::string::npos);
  }));
}

class KeyFile : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create("llm-key");
    ASSERT_TRUE(folder.ok());
    folder_ = std::make_unique<TemporaryFolder>(std::move(*folder));
    file_ = folder_->path() / "key";
  }

  Result<Key> Find(std::string_view content, mode_t mode = 0600) {
    std::ofstream(file_, std::ios::binary) << content;
    chmod(file_.c_str(), mode);
    return FindKey(endpoint_, file_);
  }

  const Endpoint endpoint_{Wire::kOpenAi, "https://api.openai.com/v1", "m"};
  std::unique_ptr<TemporaryFolder> folder_;
  std::filesystem::path file_;
};

TEST_F(KeyFile, TrimmedContent) {
  const auto key = Find("  sk-1234 \n");
  ASSERT_TRUE(key.ok()) << key.error().message;
  EXPECT_EQ(key->Reveal(), "sk-1234");
}

TEST_F(KeyFile, OthersMustNotReadIt) {
  for (const mode_t mode : {0640U, 0604U, 0620U, 0601U}) {
    const auto key = Find("sk-1234", mode);
    ASSERT_FALSE(key.ok());
    EXPECT_THAT(key.error().message, HasSubstr("chmod 600"));
  }
  EXPECT_TRUE(Find("sk-1234", 0400).ok());
}

TEST_F(KeyFile, NoLineEndThatCouldBeginAHeader) {
  for (const char* content :
       {"sk-1\r\nX-Evil: 1", "sk-1\nsk-2", "sk 1", "sk-\x01", "sk-\xc3\xa4"}) {
    const auto key = Find(content);
    ASSERT_FALSE(key.ok()) << content;
    EXPECT_THAT(key.error().message, Not(HasSubstr("sk")));
  }
  EXPECT_THAT(Find(" \n").error().message, HasSubstr("is empty"));
  EXPECT_FALSE(Find(std::string(9000, 'k')).ok());
}

TEST_F(KeyFile, RegularFilesOnly) {
  EXPECT_THAT(FindKey(endpoint_, folder_->path()).error().message, HasSubstr("regular file"));
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THAT(FindKey(endpoint_, file_).error().message, HasSubstr("regular file"));
  EXPECT_FALSE(FindKey(endpoint_, folder_->path() / "missing").ok());
}

TEST(KeyOfEnvironment, OwnVariableByWireAndNoneOnThisMachine) {
  setenv("OPENAI_API_KEY", "sk-openai", 1);
  unsetenv("ANTHROPIC_API_KEY");
  const Endpoint openai{Wire::kOpenAi, "https://api.openai.com/v1", "m"};
  const Endpoint anthropic{Wire::kAnthropic, "https://api.anthropic.com", "m"};
  EXPECT_EQ(FindKey(openai, {})->Reveal(), "sk-openai");
  const auto missing = FindKey(anthropic, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(missing.error().message, HasSubstr("set ANTHROPIC_API_KEY"));
  const auto local = FindKey({Wire::kAnthropic, "http://127.0.0.1:8080", "m"}, {});
  ASSERT_TRUE(local.ok());
  EXPECT_TRUE(local->empty());
  unsetenv("OPENAI_API_KEY");
}

TEST(Endpoints, FormsOfModelNames) {
  const auto openai = ParseEndpoint("openai:gpt-5.1", "");
  ASSERT_TRUE(openai.ok());
  EXPECT_EQ(openai->base_url, "https://api.openai.com/v1");
  EXPECT_EQ(openai->model, "gpt-5.1");
  const auto ollama = ParseEndpoint("openai:qwen3:8b", "http://localhost:11434/v1/");
  ASSERT_TRUE(ollama.ok());
  EXPECT_EQ(ollama->model, "qwen3:8b");
  EXPECT_EQ(ollama->base_url, "http://localhost:11434/v1");
  EXPECT_EQ(ParseEndpoint("anthropic:c", "https://x/v1/messages")->base_url, "https://x");
  EXPECT_EQ(ParseEndpoint("openai:c", "https://x/v1/chat/completions")->base_url, "https://x/v1");
  for (const char* model : {"gpt-5", "google:gemini", "openai:", ":x", "", "openai:a b"}) {
    const auto endpoint = ParseEndpoint(model, "");
    ASSERT_FALSE(endpoint.ok()) << model;
    EXPECT_THAT(endpoint.error().message, HasSubstr("openai:MODEL"));
  }
}

TEST(Endpoints, BaseUrlsThatAreRefused) {
  for (const char* url : {"ftp://x", "file:///etc/passwd", "x", "https://", "https://u:secret@x/v1",
                          "https://x?a=b", "https://x#y", "https://x y", "https://x\r\ny",
                          "https://x:8a", "https://[::1", "https://x\\@y"}) {
    const auto endpoint = ParseEndpoint("openai:m", url);
    ASSERT_FALSE(endpoint.ok()) << url;
    EXPECT_THAT(endpoint.error().message, Not(HasSubstr("secret")));
  }
}

TEST(Endpoints, Loopback) {
  for (const char* url : {"http://127.0.0.1:8000/v1", "http://127.8.9.1", "http://LOCALHOST:1/",
                          "https://[::1]:8443/v1", "http://localhost"}) {
    EXPECT_TRUE(IsLoopback(url)) << url;
  }
  for (const char* url : {"http://127.0.0.1.evil.example/", "http://localhost.evil.example",
                          "http://localhost@evil.example/", "http://evil.example/127.0.0.1",
                          "http://128.0.0.1", "http://[::2]", "localhost", "", "http://127.1"}) {
    EXPECT_FALSE(IsLoopback(url)) << url;
  }
}

}  // namespace
}  // namespace kernelpro::llm
