// SPDX-License-Identifier: Apache-2.0
#include "profile/nsys_sqlite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/file.h"
#include "profile/nsys.h"

namespace kernelpro {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using Kind = TimelineEvent::Kind;

class NsysSqlite : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create("kp-nsys-sqlite");
    ASSERT_TRUE(folder.ok());
    folder_.emplace(std::move(*folder));
  }

  fs::path Database(const std::string& sql) {
    const fs::path path = folder_->path() / "a #1?.sqlite";
    fs::remove(path);
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK)
        << (error == nullptr ? "" : error);
    sqlite3_free(error);
    sqlite3_close(database);
    return path;
  }

  std::optional<TemporaryFolder> folder_;
};

/// Two kernels, a pageable and a pinned copy, and the calls of one thread.
constexpr const char* kExport = R"(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1,'void ns::f<int>(int *)'),(2,'_ZN2ns1fIiEEvPi'),
  (3,'cudaLaunchKernel_v7000'),(4,'cudaDeviceSynchronize_v3020'),(5,'cuLaunchKernel'),
  (6,'cudaMemcpy_v3020'),(7,'cudaMalloc_v3020'),(8,'cuModuleLoadData');
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0,'NVIDIA H200',132);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, streamId INTEGER,
  correlationId INTEGER, demangledName INTEGER, mangledName INTEGER, registersPerThread INTEGER,
  gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
  staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
  (5000,7000,7,12,1,2,40,64,2,1,256,1,1,1024,0,NULL),
  (1000,4000,7,11,1,2,40,32,1,1,256,1,1,1024,2048,99),
  (8000,NULL,7,13,1,2,40,32,1,1,256,1,1,1024,2048,NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, streamId INTEGER,
  correlationId INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (100,200,7,10,4096,1,0,2),(7100,7200,7,14,512,2,2,1);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, streamId INTEGER,
  correlationId INTEGER, bytes INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (300,310,7,9,64);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50,260,1,10,6),(900,950,1,11,3),(910,940,1,11,5),
  (920,930,1,8,8),(915,935,2,20,5),(4000,7050,1,15,4),(10,20,1,7,7);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, correlationId INTEGER,
  syncType INTEGER, streamId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (4010,7040,15,4,0),(150,250,10,3,7),
  (1,2,77,2,7);
)";

TEST_F(NsysSqlite, LaunchesAndTimeline) {
  const auto profile = ReadNsys(Database(kExport));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->device, "NVIDIA H200");
  ASSERT_EQ(profile->kernels.size(), 2U);
  const KernelProfile& second = profile->kernels[0];
  EXPECT_EQ(second.name, "ns::f<int>");
  EXPECT_EQ(second.mangled, "_ZN2ns1fIiEEvPi");
  EXPECT_EQ(second.grid[0], 64U);
  EXPECT_EQ(second.grid[1], 2U);
  EXPECT_EQ(second.block[0], 256U);
  EXPECT_DOUBLE_EQ(second.time_us, 2);
  EXPECT_DOUBLE_EQ(second.time_share, 0.4);
  EXPECT_EQ(second.Value("gpu__time_duration.sum"), 2000);
  EXPECT_EQ(second.Value("launch__registers_per_thread"), 40);
  EXPECT_EQ(second.Value("launch__shared_mem_per_block_static"), 1024);
  EXPECT_EQ(second.Value("launch__sm_count"), 132);
  EXPECT_THAT(profile->notes, Contains(HasSubstr("1 records without a beginning or an end")));

  std::vector<std::string> names;
  for (const TimelineEvent& event : profile->timeline) {
    names.push_back(event.name);
  }
  // cuLaunchKernel inside cudaLaunchKernel is gone, that of another thread is not, the load of code
  // stays; the wait of cudaMemcpy is there, that of cudaDeviceSynchronize not twice, and a stream's
  // wait for an event is none of the host's.
  EXPECT_THAT(names, ::testing::ElementsAre("cudaMalloc", "cudaMemcpy", "HtoD pageable",
                                            "stream wait", "memset", "cudaLaunchKernel",
                                            "cuLaunchKernel", "cuModuleLoadData", "ns::f<int>",
                                            "cudaDeviceSynchronize", "ns::f<int>", "DtoH"));
  EXPECT_EQ(profile->timeline[0].kind, Kind::kAllocation);
  EXPECT_TRUE(profile->timeline[2].pageable);
  EXPECT_EQ(profile->timeline[2].bytes, 4096U);
  EXPECT_EQ(profile->timeline[3].kind, Kind::kSync);
  EXPECT_EQ(profile->timeline[5].kind, Kind::kLaunch);
  EXPECT_EQ(profile->timeline[7].kind, Kind::kCompile);
  EXPECT_EQ(profile->timeline[8].kind, Kind::kKernel);
  EXPECT_EQ(profile->timeline[8].correlation, 11U);
  EXPECT_TRUE(profile->timeline[8].graph);
  EXPECT_FALSE(profile->timeline[10].graph);
  EXPECT_FALSE(profile->timeline[11].pageable) << "pinned";
}

TEST_F(NsysSqlite, MissingTablesAndColumnsAreTold) {
  const auto profile = ReadNsysSqlite(
      Database("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, shortName "
               "INTEGER); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10,20,5);"));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  ASSERT_EQ(profile->kernels.size(), 1U);
  EXPECT_EQ(profile->kernels[0].name, "unknown");
  EXPECT_FALSE(profile->kernels[0].Value("launch__registers_per_thread").has_value());
  EXPECT_THAT(profile->notes, Contains(HasSubstr("CUPTI_ACTIVITY_KIND_RUNTIME")));
  EXPECT_EQ(ReadNsysSqlite(Database("CREATE TABLE t (a);")).error().code, ErrorCode::kNotFound);
}

TEST_F(NsysSqlite, LimitsAreKeptAndTold) {
  const fs::path path = Database(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 5000)"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i*10, i*10+5 FROM n;");
  const auto some = ReadNsysSqlite(path, {.launches = 100});
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->kernels.size(), 100U);
  EXPECT_EQ(some->timeline.size(), 5000U);
  EXPECT_THAT(some->notes, Contains(HasSubstr("first 100 of 5000 launches")));
  const auto many = ReadNsysSqlite(path, {.events = 1000});
  ASSERT_FALSE(many.ok());
  EXPECT_THAT(many.error().message, HasSubstr("shorter part"));
  const auto slow = ReadNsysSqlite(path, {.steps = 10'000});
  ASSERT_FALSE(slow.ok());
  EXPECT_THAT(slow.error().message, HasSubstr("more work than is allowed"));
}

TEST_F(NsysSqlite, AHostileSchemaIsRefused) {
  EXPECT_EQ(ReadNsysSqlite(Database("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) "
                                    "AS (SELECT 1 UNION ALL SELECT i+1 FROM n) "
                                    "SELECT i AS start, i AS \"end\" FROM n;"))
                .error()
                .code,
            ErrorCode::kNotFound)
      << "a view is no table";
  const auto generated = ReadNsysSqlite(
      Database("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, gridX INTEGER "
               "GENERATED ALWAYS AS (length(zeroblob(10000000))) VIRTUAL); "
               "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start, end) VALUES (1,2);"));
  EXPECT_TRUE(!generated.ok() || generated->kernels[0].grid[0] == 1U)
      << "functions of the schema are not called";
}

TEST_F(NsysSqlite, DamagedAndForeignFiles) {
  const fs::path path = Database(kExport);
  std::string bytes = *ReadFile(path);
  for (const std::size_t keep : {std::size_t{20}, bytes.size() / 2, bytes.size() - 100}) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, keep);
    const auto cut = ReadNsysSqlite(path);
    if (!cut.ok()) {
      EXPECT_THAT(cut.error().message, HasSubstr("sqlite"));
    }
  }
  for (std::size_t i = 100; i < bytes.size(); i += 97) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    std::ofstream(path, std::ios::binary) << damaged;
    static_cast<void>(ReadNsysSqlite(path));
  }
  std::ofstream(path, std::ios::binary) << "hello";
  EXPECT_FALSE(ReadNsysSqlite(path).ok());
  EXPECT_FALSE(ReadNsysSqlite(folder_->path() / "absent").ok());
  EXPECT_FALSE(fs::exists(folder_->path() / "absent")) << "reading creates nothing";
}

}  // namespace
}  // namespace kernelpro
