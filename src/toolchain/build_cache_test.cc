// SPDX-License-Identifier: Apache-2.0
#include "toolchain/build_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPlenty = 1ULL << 30U;

class BuildCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create("kp-cache");
    ASSERT_TRUE(folder.ok());
    folder_ = std::make_unique<TemporaryFolder>(std::move(folder).value());
  }

  [[nodiscard]] BuildCache Open(std::uint64_t max_bytes = kPlenty) const {
    auto cache = BuildCache::Open(folder_->path(), max_bytes);
    EXPECT_TRUE(cache.ok());
    return std::move(cache).value();
  }

  /// Publishes an entry whose library holds `content`.
  static Result<Build> Put(const BuildCache& cache, const std::string& key,
                           const std::string& content) {
    KP_ASSIGN_OR_RETURN(const WorkFolder work, cache.NewWork());
    const fs::path entry = work.path() / "entry";
    KP_RETURN_IF_ERROR(WriteFileAtomically(entry / "k.so", content));
    Build build;
    build.key = key;
    build.library = "k.so";
    build.elapsed = std::chrono::milliseconds(1234);
    build.kernels["_Z1k"] = {.registers = 40,
                             .shared_bytes = 1,
                             .stack_bytes = 2,
                             .spill_store_bytes = 3,
                             .spill_load_bytes = 4,
                             .constant_bytes = 5,
                             .barriers = 6};
    build.diagnostics.push_back({.severity = Diagnostic::Severity::kWarning,
                                 .file = "k.cu",
                                 .line = 7,
                                 .text = "odd \xff text"});
    return cache.Publish(entry, std::move(build));
  }

  void Age(const std::string& key, std::chrono::hours hours) const {
    const fs::path manifest = folder_->path() / "builds" / key / "entry.json";
    fs::last_write_time(manifest, fs::file_time_type::clock::now() - hours);
  }

  std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(BuildCacheTest, FindsWhatWasPublished) {
  const BuildCache cache = Open();
  EXPECT_FALSE(cache.Find("aa11").has_value());
  const auto put = Put(cache, "aa11", "library");
  ASSERT_TRUE(put.ok()) << put.error().message;
  EXPECT_FALSE(put->from_cache);
  const auto found = Open().Find("aa11");
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->from_cache);
  EXPECT_EQ(*ReadFile(found->library), "library");
  EXPECT_TRUE(found->ptx.empty());
  EXPECT_EQ(found->elapsed.count(), 1234);
  const KernelFigures& figures = found->kernels.at("_Z1k");
  EXPECT_EQ(figures.registers, 40U);
  EXPECT_EQ(figures.shared_bytes, 1U);
  EXPECT_EQ(figures.stack_bytes, 2U);
  EXPECT_EQ(figures.spill_store_bytes, 3U);
  EXPECT_EQ(figures.spill_load_bytes, 4U);
  EXPECT_EQ(figures.constant_bytes, 5U);
  EXPECT_EQ(figures.barriers, 6U);
  ASSERT_EQ(found->diagnostics.size(), 1U);
  EXPECT_EQ(found->diagnostics[0].severity, Diagnostic::Severity::kWarning);
  EXPECT_EQ(found->diagnostics[0].line, 7U);
  EXPECT_TRUE(fs::is_empty(folder_->path() / "work")) << "work was left behind";
}

TEST_F(BuildCacheTest, DamageIsNoticedAndReplaced) {
  const BuildCache cache = Open();
  ASSERT_TRUE(Put(cache, "aa11", "library").ok());
  const fs::path entry = folder_->path() / "builds" / "aa11";
  ASSERT_TRUE(WriteFileAtomically(entry / "k.so", "librarx").ok()) << "same size, other bytes";
  EXPECT_FALSE(cache.Find("aa11").has_value());
  ASSERT_TRUE(Put(cache, "aa11", "library").ok());
  ASSERT_TRUE(cache.Find("aa11").has_value());
  for (const char* manifest : {"", "{}", "[1", "{\"format\": 1}", "{\"format\": \"x\"}"}) {
    ASSERT_TRUE(WriteFileAtomically(entry / "entry.json", manifest).ok());
    EXPECT_FALSE(cache.Find("aa11").has_value()) << manifest;
  }
  ASSERT_TRUE(Put(cache, "aa11", "library").ok());
  fs::remove(entry / "k.so");
  EXPECT_FALSE(cache.Find("aa11").has_value());
}

TEST_F(BuildCacheTest, TheFirstOfTwoWins) {
  const BuildCache cache = Open();
  ASSERT_TRUE(Put(cache, "aa11", "first").ok());
  const auto second = Put(cache, "aa11", "second");
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->from_cache);
  EXPECT_EQ(*ReadFile(second->library), "first");
}

TEST_F(BuildCacheTest, ManyThreadsPublishOneKey) {
  const BuildCache cache = Open();
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 20; ++round) {
          const auto build = Put(cache, "bb22", "same");
          const auto found = cache.Find("bb22");
          good += build.ok() && found.has_value() ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(good, 160);
}

TEST_F(BuildCacheTest, ALockIsHeldByOneAtATime) {
  const BuildCache cache = Open();
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 3; ++round) {
          const auto lock = cache.Lock("cc33", {});
          ASSERT_TRUE(lock.ok());
          most = std::max(most.load(), ++inside);
          std::this_thread::yield();
          --inside;
        }
      });
    }
  }
  EXPECT_EQ(most, 1);
}

TEST_F(BuildCacheTest, WaitingForALockCanBeStopped) {
  const BuildCache cache = Open();
  const auto held = cache.Lock("cc33", {});
  std::stop_source stop;
  stop.request_stop();
  const auto second = cache.Lock("cc33", stop.get_token());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(cache.Lock("dd44", stop.get_token()).ok()) << "another key is free";
}

TEST_F(BuildCacheTest, EvictsTheLeastRecentlyUsedButNothingOfToday) {
  const BuildCache cache = Open();
  const std::string big(10'000, 'x');
  for (const char* key : {"aa01", "aa02", "aa03", "aa04"}) {
    ASSERT_TRUE(Put(cache, key, big).ok());
  }
  Age("aa01", std::chrono::hours(50));
  Age("aa02", std::chrono::hours(90));
  Age("aa03", std::chrono::hours(30));
  cache.Evict(kPlenty);
  EXPECT_TRUE(fs::exists(cache.EntryFolder("aa02"))) << "there was room";
  cache.Evict(25'000);
  EXPECT_FALSE(cache.Find("aa02").has_value());
  EXPECT_FALSE(cache.Find("aa01").has_value());
  EXPECT_TRUE(cache.Find("aa03").has_value());
  EXPECT_TRUE(cache.Find("aa04").has_value());
  cache.Evict(0);
  EXPECT_TRUE(cache.Find("aa03").has_value()) << "finding it above made it today's";
  EXPECT_TRUE(cache.Find("aa04").has_value());
}

TEST_F(BuildCacheTest, LeftoversOfCrashesGo) {
  const fs::path work = folder_->path() / "work";
  fs::create_directories(work / "build.old");
  fs::create_directories(work / "build.new");
  fs::last_write_time(work / "build.old",
                      fs::file_time_type::clock::now() - std::chrono::hours(30));
  static_cast<void>(Open());
  EXPECT_FALSE(fs::exists(work / "build.old"));
  EXPECT_TRUE(fs::exists(work / "build.new")) << "somebody may be compiling there";
}

TEST_F(BuildCacheTest, SaysWhyItCannotBeOpened) {
  ASSERT_TRUE(WriteFileAtomically(folder_->path() / "file", "x").ok());
  const auto cache = BuildCache::Open(folder_->path() / "file", kPlenty);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace kernelpro
