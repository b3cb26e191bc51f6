// SPDX-License-Identifier: Apache-2.0
#include "toolchain/binary_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/rng.h"
#include "process/process.h"

namespace kernelpro {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kSource = R"(#include <dlfcn.h>
#include <math.h>
#include <string>
#include <vector>
const char* const kWord = "cuModuleLoadData";
const char* const kNoWord = "cuBLAS and cudaMalloc";
static int hidden_from_all() { return 3; }
__attribute__((visibility("hidden"))) int hidden_by_attribute() { return 4; }
extern "C" int offered(double x) {
  std::vector<std::string> v(static_cast<unsigned>(pow(x, 1.5)), kWord);
  return dlopen(kNoWord, 1) != nullptr ? hidden_from_all() : hidden_by_attribute();
}
)";

/// Built once with the host compiler; `flags` are of the linker too.
std::string Library(const std::vector<std::string>& flags) {
  const auto folder = TemporaryFolder::Create("kp-facts");
  EXPECT_TRUE(WriteFileAtomically(folder->path() / "x.cc", kSource).ok());
  ProcessSpec spec;
  spec.argv = {"g++",
               "-shared",
               "-fPIC",
               "-o",
               (folder->path() / "x.so").string(),
               (folder->path() / "x.cc").string()};
  spec.argv.insert(spec.argv.end(), flags.begin(), flags.end());
  spec.argv[0] = FindOnPath("g++").string();
  const auto ran = RunProcess(spec, {});
  EXPECT_TRUE(ran.ok() && ran->Succeeded()) << (ran.ok() ? ran->err : ran.error().message);
  return ReadFile(folder->path() / "x.so").value();
}

Result<BinaryFacts> Parse(const std::string& bytes) {
  return ParseBinaryFacts(std::as_bytes(std::span(bytes)));
}

void ExpectAllFacts(const std::string& bytes) {
  const auto facts = Parse(bytes);
  ASSERT_TRUE(facts.ok()) << facts.error().message;
  EXPECT_THAT(facts->needed, Contains("libstdc++.so.6"));
  EXPECT_THAT(facts->needed, Contains("libc.so.6"));
  EXPECT_THAT(facts->imports, Contains("dlopen"));
  EXPECT_THAT(facts->imports, Contains("pow"));
  EXPECT_THAT(facts->imports, Not(Contains("offered")));
  EXPECT_THAT(facts->exports, Contains("offered"));
  EXPECT_THAT(facts->exports, Not(Contains(HasSubstr("hidden"))));
  EXPECT_THAT(facts->driver_words, ElementsAre("cuModuleLoadData"));
}

TEST(BinaryFacts, WhatALibraryNeedsImportsAndExports) {
  ExpectAllFacts(Library({}));
}

TEST(BinaryFacts, EitherKindOfHashTableAndNoSectionsAtAll) {
  ExpectAllFacts(Library({"-Wl,--hash-style=sysv"}));
  ExpectAllFacts(Library({"-Wl,--hash-style=gnu"}));
  ExpectAllFacts(Library({"-s", "-Wl,-z,now"}));
  std::string bytes = Library({});
  std::memset(bytes.data() + 0x28, 0, 8);  // e_shoff: the loader does not look at it either.
  ExpectAllFacts(bytes);
}

TEST(BinaryFacts, OtherFilesAreRefused) {
  EXPECT_EQ(Parse("").error().code, ErrorCode::kParse);
  EXPECT_THAT(Parse("#!/bin/sh\necho").error().message, HasSubstr("no ELF file"));
  std::string bytes = Library({});
  bytes[16] = 2;  // ET_EXEC
  EXPECT_THAT(Parse(bytes).error().message, HasSubstr("shared object"));
  EXPECT_FALSE(ReadBinaryFacts("/nowhere/x.so").ok());
}

TEST(BinaryFacts, DamagedFilesEndInAnErrorOrInSomeFacts) {
  const std::string good = Library({"-s"});
  for (std::size_t size = 0; size < good.size(); size += 61) {
    static_cast<void>(Parse(good.substr(0, size)).ok());
  }
  Rng rng(5);
  for (int run = 0; run < 3000; ++run) {
    std::string bytes = good;
    for (int flips = 0; flips < 4; ++flips) {
      // Headers and the dynamic section are where the offsets are.
      const std::size_t at = rng.Below(2) == 0 ? rng.Below(0x1000) : rng.Below(bytes.size());
      bytes[at] = static_cast<char>(rng.Next());
    }
    static_cast<void>(Parse(bytes).ok());
  }
}

}  // namespace
}  // namespace kernelpro
