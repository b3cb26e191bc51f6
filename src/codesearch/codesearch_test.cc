// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "codesearch/code_index.h"
#include "codesearch/source_tree.h"

namespace kernelpro::codesearch {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CodeSearchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create("codesearch");
    ASSERT_TRUE(folder.ok());
    folder_ = std::make_unique<TemporaryFolder>(std::move(*folder));
    fs::create_directories(root());
  }

  fs::path root() const { return folder_->path() / "root"; }

  void Write(const std::string& path, std::string_view text) const {
    fs::create_directories((root() / path).parent_path());
    std::ofstream(root() / path, std::ios::binary) << text;
  }

  std::unique_ptr<CodeIndex> Open() const {
    auto index = OpenFolder(root());
    EXPECT_TRUE(index.ok()) << (index.ok() ? "" : index.error().message);
    return index.ok() ? std::move(*index) : nullptr;
  }

  /// "path:line" of each hit.
  std::vector<std::string> Find(std::string_view query, std::size_t most = 100) const {
    const auto hits = Open()->Search(query, most);
    EXPECT_TRUE(hits.ok());
    std::vector<std::string> places;
    for (const Hit& hit : *hits) {
      places.push_back(hit.path + ":" + std::to_string(hit.line));
    }
    return places;
  }

  ErrorCode CodeOf(std::string_view path) const {
    const auto text = Open()->Read(path, 1, 10);
    EXPECT_FALSE(text.ok()) << path << " was read: " << *text;
    return text.ok() ? ErrorCode::kInternal : text.error().code;
  }

  std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(CodeSearchTest, FindsLinesWithAllWordsAndTheWholeQueryFirst) {
  Write("a/first.h", "one\nwait then load ASYNC\nasync\n");
  Write("b/second.cuh", "load async wait\n// Async Load here: load async\nload asyncwait\n");
  EXPECT_THAT(Find("load async"),
              ElementsAre("b/second.cuh:1", "b/second.cuh:2", "b/second.cuh:3", "a/first.h:2"));
  EXPECT_THAT(Find(" async \t wait "),
              ElementsAre("a/first.h:2", "b/second.cuh:1", "b/second.cuh:3"));
  EXPECT_THAT(Find("ASYNC"), ElementsAre("a/first.h:2", "a/first.h:3", "b/second.cuh:1",
                                         "b/second.cuh:2", "b/second.cuh:3"));
  EXPECT_THAT(Find("load store"), IsEmpty());
}

TEST_F(CodeSearchTest, MostKeepsTheBest) {
  Write("a.h", "y x\ny x\ny x\n");
  Write("b.h", "x y\nx y\n");
  EXPECT_THAT(Find("x y", 3), ElementsAre("b.h:1", "b.h:2", "a.h:1"));
  EXPECT_THAT(Find("x y", 1), ElementsAre("b.h:1"));
  EXPECT_THAT(Find("x y", 0), IsEmpty());
}

TEST_F(CodeSearchTest, LinesAreCountedAcrossLineEndsAndEmptyLines) {
  Write("a.cu", "\n\nkey\r\n\r\nno\nkey key\nkey");
  EXPECT_THAT(Find("key"), ElementsAre("a.cu:3", "a.cu:6", "a.cu:7"));
  EXPECT_EQ((*Open()->Search("key", 1))[0].text, "key");
}

TEST_F(CodeSearchTest, OnlySourcesThatCanBeShownAreSearched) {
  for (const char* name : {"a.h", "a.hpp", "a.cuh", "a.cu", "a.cc", "a.cpp", "a.inl"}) {
    Write(name, "key");
  }
  for (const char* name : {"a.txt", "a.py", "h", ".h", ".git/a.h", ".a.h", "a.h.orig", "a.H",
                           "bad\xff.h", "new\nline.h"}) {
    Write(name, "key");
  }
  Write("binary.h", std::string("key\0", 4));
  Write("large.h", std::string(SourceTree::kLargestFile, ' ') + "key");
  EXPECT_THAT(Find("key"),
              ElementsAre("a.cc:1", "a.cpp:1", "a.cu:1", "a.cuh:1", "a.h:1", "a.hpp:1", "a.inl:1"));
  Write("large.h", std::string(SourceTree::kLargestFile - 3, ' ') + "key");
  EXPECT_EQ(Find("key").size(), 8U) << "exactly 4 MiB is taken";
}

TEST_F(CodeSearchTest, AHitIsOneShortPrintableLine) {
  Write("a.h", "key \x1b[31m\xff " + std::string(5000, 'x') + "\n");
  const Hit hit = (*Open()->Search("key", 1))[0];
  EXPECT_LE(hit.text.size(), 240U + std::string("[...]").size());
  EXPECT_THAT(hit.text, HasSubstr("key ?[31m? xxx"));
  EXPECT_EQ(Printable(hit.text, 10000), hit.text);
}

TEST_F(CodeSearchTest, AQueryHasWords) {
  Write("a.h", "key");
  for (const std::string& query : {std::string(), std::string(" \t\n"), std::string(1001, 'x')}) {
    const auto hits = Open()->Search(query, 10);
    ASSERT_FALSE(hits.ok());
    EXPECT_EQ(hits.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_THAT(Find("a* [b\\"), IsEmpty()) << "no patterns";
}

TEST_F(CodeSearchTest, ReadGivesNumberedLines) {
  Write("dir/a.h", "one\ntwo\r\n\tthree\nfour");
  EXPECT_EQ(*Open()->Read("dir/a.h", 2, 3), "     2  two\n     3  \tthree\n");
  EXPECT_EQ(*Open()->Read("./dir//a.h", 4, 4000000000U), "     4  four\n");
  const auto index = Open();
  for (const auto& [first, last] : {std::pair{0U, 3U}, std::pair{3U, 2U}, std::pair{5U, 9U}}) {
    const auto text = index->Read("dir/a.h", first, last);
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST_F(CodeSearchTest, ReadGivesTwoHundredLinesAndSaysSo) {
  std::string text;
  for (int i = 1; i <= 500; ++i) {
    text += "line " + std::to_string(i) + "\n";
  }
  Write("a.h", text);
  const std::string part = *Open()->Read("a.h", 101, 500);
  EXPECT_EQ(Lines(part).size(), 201U);
  EXPECT_THAT(part, HasSubstr("   300  line 300\n[200 lines at a time; line 301 is next]"));
  EXPECT_THAT(*Open()->Read("a.h", 301, 500), Not(HasSubstr("next")));
}

TEST_F(CodeSearchTest, NoPathLeadsOut) {
  Write("in/a.h", "inside");
  std::ofstream(folder_->path() / "secret.h") << "secret";
  const std::string absolute = (folder_->path() / "secret.h").string();
  for (const std::string& path :
       {std::string("../secret.h"), std::string("in/../../secret.h"), std::string("in/../in/a.h"),
        std::string(".."), absolute, std::string("/"), std::string(),
        std::string("in/a.h\0/../../secret.h", 22), std::string(5000, 'a') + ".h"}) {
    EXPECT_EQ(CodeOf(path), ErrorCode::kInvalidArgument) << path;
  }
  EXPECT_TRUE(Open()->Read("in/a.h", 1, 1).ok());
}

TEST_F(CodeSearchTest, SymbolicLinksAreNotFollowed) {
  Write("in/a.h", "secret of the inside");
  std::ofstream(folder_->path() / "secret.h") << "secret";
  fs::create_directories(folder_->path() / "outside");
  std::ofstream(folder_->path() / "outside" / "b.h") << "secret";
  fs::create_symlink(folder_->path() / "secret.h", root() / "out.h");
  fs::create_symlink("../outside", root() / "folder");
  fs::create_symlink("in/a.h", root() / "inner.h");
  fs::create_symlink("nowhere", root() / "dangling.h");
  fs::create_symlink(".", root() / "loop");
  for (const char* path : {"out.h", "folder/b.h", "inner.h", "dangling.h", "loop/in/a.h"}) {
    EXPECT_EQ(CodeOf(path), ErrorCode::kInvalidArgument) << path;
  }
  EXPECT_THAT(Find("secret"), ElementsAre("in/a.h:1"));
}

TEST_F(CodeSearchTest, WhatTheIndexDoesNotHoldIsNotFound) {
  Write("a.h", "x");
  Write("notes.txt", "x");
  Write(".hidden/a.h", "x");
  Write("binary.h", std::string("\0", 1));
  fs::create_directories(root() / "folder.h");
  ASSERT_EQ(::mkfifo((root() / "pipe.h").c_str(), 0600), 0);
  for (const char* path : {"no.h", "no/a.h", "a.h/b.h", "notes.txt", ".hidden/a.h", "binary.h",
                           "folder.h", "pipe.h", "."}) {
    EXPECT_EQ(CodeOf(path), ErrorCode::kNotFound) << path;
  }
  EXPECT_THAT(Find("x"), ElementsAre("a.h:1")) << "nor does a search wait for the pipe";
}

TEST_F(CodeSearchTest, FoldersThatCannotBeAnIndexAreRefused) {
  EXPECT_EQ(OpenFolder(root() / "no").error().code, ErrorCode::kNotFound);
  Write("a.h", "x");
  EXPECT_EQ(OpenFolder(root() / "a.h").error().code, ErrorCode::kInvalidArgument);
  fs::create_symlink(root(), folder_->path() / "link");
  EXPECT_TRUE(OpenFolder(folder_->path() / "link").ok()) << "the user's own choice";
}

TEST_F(CodeSearchTest, TooManySourcesAreRefusedRatherThanSearchedInPart) {
  fs::create_directories(root() / "many");
  for (std::size_t i = 0; i < SourceTree::kMostFiles; ++i) {
    std::ofstream(root() / "many" / (std::to_string(i) + ".h"));
  }
  const auto full = OpenFolder(root());
  ASSERT_TRUE(full.ok());
  Write("one_more.h", "x");
  EXPECT_EQ(OpenFolder(root()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ((*full)->Search("x", 1).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(CodeSearchTest, AnIndexServesSeveralThreadsAndSeesChanges) {
  Write("a.h", "key");
  const auto index = Open();
  std::vector<std::thread> threads;
  std::vector<std::size_t> found(4);
  for (std::size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        found[t] += index->Search("key", 10)->size();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(found, ElementsAre(50, 50, 50, 50));
  Write("b.h", "key");
  EXPECT_EQ(index->Search("key", 10)->size(), 2U);
}

}  // namespace
}  // namespace kernelpro::codesearch
