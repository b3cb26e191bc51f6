// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli.h"
#include "fake_server.h"
#include "store/run_store.h"

namespace kernelpro::e2e {

/// In no other text of the project: where it turns up, a key got out.
inline constexpr const char* kCanaryKey = "sk-canary-Qx7vLw2Zp9RtYb4Nd8Hs6Kc3";

/// A model that plays every agent for the task block_sum by looking at what it is asked. Its answer
/// depends on nothing but the question. The first kernel from the task alone does not compile, and
/// the repairer mends it; the second one is prose. A coder renames the parent's kernel.
[[nodiscard]] fake::Answer Play(const fake::Asked& asked);

/// The agent that a question is for: "planner", "coder", "repairer", "researcher", "note_taker" or
/// "seed".
[[nodiscard]] std::string AgentOf(const fake::Asked& asked);

/// A server of both wires that wants kCanaryKey and has the model "test-model".
[[nodiscard]] std::unique_ptr<fake::FakeServer> Serve(fake::HandlerOptions options = {
                                                          .responder = Play});

/// block_sum with small shapes: quick to judge.
[[nodiscard]] std::filesystem::path SmallTask(const Cli& cli);

struct Search {
  std::filesystem::path task, run;
  std::string url;  ///< as FakeServer::url says it
  int evaluations = 6;
  fake::Wire wire = fake::Wire::kOpenAi;
  std::vector<std::string> more;  ///< a value of one of our own options takes its place
};

/// The arguments of a search with a model; 2 dollars a million tokens in and 10 out.
[[nodiscard]] std::vector<std::string> Arguments(const Search& search);

/// By the ledger, at the price of Arguments.
[[nodiscard]] double Dollars(const std::vector<fake::LedgerEntry>& ledger);

/// What a run holds, beside whoever works on it.
[[nodiscard]] std::vector<store::NodeRecord> NodesOf(const std::filesystem::path& run);
[[nodiscard]] std::vector<store::ExchangeRecord> ExchangesOf(const std::filesystem::path& run);

/// Nodes of a run as lines that two runs can be compared by.
[[nodiscard]] std::vector<std::string> Tree(const std::filesystem::path& run);

/// Files below a folder that hold these bytes.
[[nodiscard]] std::vector<std::string> FilesWith(const std::filesystem::path& folder,
                                                 const std::string& bytes);

}  // namespace kernelpro::e2e
