// SPDX-License-Identifier: Apache-2.0
#include "store/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/file.h"
#include "store/run_store.h"

namespace kernelpro::store {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

/// Format 1 as KernelPro wrote it, kept here by hand: what old folders hold does not change with
/// the program.
constexpr std::string_view kOldRun[] = {
    "CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    "CREATE TABLE node (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, action TEXT NOT NULL, "
    "reason TEXT NOT NULL, finding TEXT NOT NULL, prior REAL NOT NULL, source TEXT NOT NULL, "
    "flags TEXT NOT NULL, content TEXT NOT NULL UNIQUE, done INTEGER NOT NULL DEFAULT 0, "
    "verdict TEXT NOT NULL DEFAULT '', verdict_reason TEXT NOT NULL DEFAULT '', "
    "time_us REAL NOT NULL DEFAULT 0, provenance TEXT NOT NULL DEFAULT '', "
    "evaluation TEXT NOT NULL DEFAULT '', diagnosis TEXT NOT NULL DEFAULT '', "
    "feedback TEXT NOT NULL DEFAULT '') STRICT",
    "CREATE TABLE proposal (id INTEGER PRIMARY KEY, node INTEGER NOT NULL REFERENCES node(id), "
    "action TEXT NOT NULL, reason TEXT NOT NULL, finding TEXT NOT NULL, prior REAL NOT NULL, "
    "source TEXT NOT NULL, flags TEXT NOT NULL, content TEXT NOT NULL, "
    "taken INTEGER NOT NULL DEFAULT 0) STRICT",
    "CREATE TABLE declined (node INTEGER NOT NULL REFERENCES node(id), action TEXT NOT NULL, "
    "why TEXT NOT NULL) STRICT",
    "CREATE INDEX proposal_by_node ON proposal(node)",
    "INSERT INTO fact VALUES ('format', '1'), ('task', 'softmax'), ('seed', '7')",
    "INSERT INTO node VALUES (1, 0, 'seed', '', '', 0.0, 'int a;', '[\"-O3\"]', 'c1', 1, 'ok', '', "
    "12.5, 'modelled', '{\"e\":1}', '{\"d\":1}', 'use tiles')",
    "INSERT INTO node (id, parent, action, reason, finding, prior, source, flags, content) VALUES "
    "(2, 1, 'tile', 'reuse', 'mem.reuse', 0.5, 'int b;', '[]', 'c2')",
    "INSERT INTO proposal VALUES (3, 1, 'tile', 'reuse', 'mem.reuse', 0.5, 'int b;', '[]', 'c2', "
    "1), (4, 1, 'pad', 'banks', 'smem.bank', 0.25, 'int c;', '[\"-g\"]', 'c3', 0)",
    "INSERT INTO declined VALUES (1, 'swap', 'one dimension')",
};

class SchemaTest : public ::testing::Test {
 protected:
  SchemaTest() : temporary_(TemporaryFolder::Create("kp-schema").value()) {}

  [[nodiscard]] fs::path folder() const { return temporary_.path(); }

  [[nodiscard]] Database Raw(bool create = false) const {
    return std::move(Database::Open(folder() / "run.db", create)).value();
  }

  void MakeOldRun() const {
    const Database database = Raw(true);
    for (const std::string_view sql : kOldRun) {
      const Status done = database.Run(sql);
      ASSERT_TRUE(done.ok()) << done.error().message;
    }
  }

  static void ExpectEverything(const RunStore& store) {
    EXPECT_EQ(store.Fact("task"), "softmax");
    EXPECT_EQ(store.Fact("seed"), "7");
    const auto nodes = store.Nodes().value();
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes[0].source, "int a;");
    EXPECT_EQ(nodes[0].flags, std::vector<std::string>{"-O3"});
    EXPECT_TRUE(nodes[0].done);
    EXPECT_EQ(nodes[0].verdict, "ok");
    EXPECT_EQ(nodes[0].time_us, 12.5);
    EXPECT_EQ(nodes[0].evaluation, R"({"e":1})");
    EXPECT_EQ(nodes[0].diagnosis, R"({"d":1})");
    EXPECT_EQ(nodes[0].feedback, "use tiles");
    EXPECT_EQ(nodes[0].profile, "");
    EXPECT_EQ(nodes[0].barren, 0);
    EXPECT_FALSE(nodes[1].done);
    EXPECT_EQ(nodes[1].parent, 1);
    EXPECT_EQ(nodes[1].finding, "mem.reuse");
    EXPECT_EQ(nodes[1].prior, 0.5);
    EXPECT_EQ(nodes[1].origin, "");
    const auto proposals = store.Proposals(1).value();
    ASSERT_EQ(proposals.size(), 2U);
    EXPECT_TRUE(proposals[0].taken);
    EXPECT_FALSE(proposals[1].taken);
    EXPECT_EQ(proposals[1].flags, std::vector<std::string>{"-g"});
    ASSERT_EQ(store.Declined(1)->size(), 1U);
    EXPECT_EQ((*store.Declined(1))[0].why, "one dimension");
    EXPECT_TRUE(store.Lessons()->empty());
    EXPECT_TRUE(store.Exchanges()->empty());
    EXPECT_TRUE(store.Measurements()->empty());
  }

 private:
  TemporaryFolder temporary_;
};

TEST_F(SchemaTest, AnOldRunIsBroughtUpToDateAndKeepsEverything) {
  MakeOldRun();
  for (int time = 0; time < 2; ++time) {
    const auto store = RunStore::Open(folder());
    ASSERT_TRUE(store.ok()) << store.error().message;
    ExpectEverything(**store);
    EXPECT_EQ((*store)->Fact("format"), kRunFormat);
  }
  const auto store = RunStore::Open(folder()).value();
  NodeResult result;
  result.node = 2;
  result.verdict = "ok";
  result.profile = "{}";
  ASSERT_TRUE(store->Finish(result).ok());
  EXPECT_EQ((*store->Nodes())[1].profile, "{}");
  EXPECT_TRUE(store->AddLesson({0, 1, "fact", "f"}).ok());
}

TEST_F(SchemaTest, ACopyOfAnOldRunLeavesItOld) {
  MakeOldRun();
  ExpectEverything(**RunStore::OpenCopy(folder()));
  std::string format;
  ASSERT_TRUE(Raw()
                  .Query("SELECT value FROM fact WHERE name = 'format'", {},
                         [&](const Row& row) { format = row.Text(0); })
                  .ok());
  EXPECT_EQ(format, "1");
}

TEST_F(SchemaTest, AnUpdateThatFailsLeavesTheRunAsItWas) {
  MakeOldRun();
  // A table that the update makes is in the way.
  ASSERT_TRUE(Raw().Run("CREATE TABLE exchange (x INTEGER)").ok());
  EXPECT_FALSE(RunStore::Open(folder()).ok());
  ASSERT_TRUE(Raw().Run("DROP TABLE exchange").ok());
  const auto store = RunStore::Open(folder());
  ASSERT_TRUE(store.ok()) << store.error().message;
  ExpectEverything(**store);
}

TEST_F(SchemaTest, UnknownFormatsAreRefusedAndNotTouched) {
  MakeOldRun();
  for (const char* format : {"3", "0", "", "\x1b[31m2"}) {
    ASSERT_TRUE(Raw().Run("UPDATE fact SET value = ? WHERE name = 'format'", {format}).ok());
    for (const auto& open : {&RunStore::Open, &RunStore::OpenForReading, &RunStore::OpenCopy}) {
      const auto store = open(folder());
      ASSERT_FALSE(store.ok()) << format;
      EXPECT_EQ(store.error().code, ErrorCode::kInvalidArgument);
      EXPECT_THAT(store.error().message, HasSubstr("reads 1 to 2"));
      EXPECT_EQ(store.error().message.find('\x1b'), std::string::npos);
    }
  }
  ASSERT_TRUE(Raw().Run("DELETE FROM fact WHERE name = 'format'").ok());
  EXPECT_EQ(RunStore::Open(folder()).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(Raw().Run("INSERT INTO fact VALUES ('format', '1')").ok());
  EXPECT_TRUE(RunStore::Open(folder()).ok());
}

TEST_F(SchemaTest, TwoThatUpdateAtOnceBothGoOn) {
  MakeOldRun();
  // Another process is in the middle of its update; ours has read the old format and waits.
  const Database other = Raw();
  ASSERT_TRUE(other.Run("BEGIN IMMEDIATE").ok());
  Status ours = Ok();
  std::thread waiting([&] { ours = BringUpToDate(Raw(), "run"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ASSERT_TRUE(other.Run("ALTER TABLE node ADD COLUMN profile TEXT NOT NULL DEFAULT ''").ok());
  ASSERT_TRUE(other.Run("UPDATE fact SET value = '2' WHERE name = 'format'").ok());
  ASSERT_TRUE(other.Run("COMMIT").ok());
  waiting.join();
  EXPECT_TRUE(ours.ok()) << ours.error().message;
}

}  // namespace
}  // namespace kernelpro::store
