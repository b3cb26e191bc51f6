// SPDX-License-Identifier: Apache-2.0
#include "players.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>
#include <utility>

#include "base/hash.h"

namespace kernelpro::e2e {

namespace fs = std::filesystem;

namespace {

constexpr double kInPrice = 2e-6;
constexpr double kOutPrice = 10e-6;
constexpr const char* kBroken = "this line is no CUDA;\n";

std::string Short(const std::string& text) {
  const std::string_view parts[] = {text};
  return ContentHash(parts).substr(0, 8);
}

std::string Between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t begin = text.find(from);
  if (begin == std::string::npos) {
    return {};
  }
  const std::size_t end = text.find(to, begin + from.size());
  return text.substr(begin + from.size(), end - begin - from.size());
}

std::string SourceIn(const std::string& question) {
  return Between(question, "kind=\"source of the kernel\">\n", "</data-");
}

std::string Renamed(const std::string& source, const std::string& suffix) {
  return std::regex_replace(source, std::regex("BlockSum\\w*"), "BlockSum_" + suffix);
}

std::string Fenced(const std::string& source) {
  return "```cuda\n" + source + "```\n";
}

std::string SeedKernel() {
  const std::string seed =
      ReadFile(fs::path(KP_SOURCE_DIR) / "examples" / "tasks" / "block_sum" / "seed.cu").value();
  return Renamed(seed, "anew") + kBroken;
}

}  // namespace

std::string AgentOf(const fake::Asked& asked) {
  constexpr std::array kSigns = {std::pair("You are the planner", "planner"),
                                 std::pair("You are the coder", "coder"),
                                 std::pair("You are the repairer", "repairer"),
                                 std::pair("You are the researcher", "researcher"),
                                 std::pair("You are the note-taker", "note_taker"),
                                 std::pair("Write a kernel for the task", "seed")};
  for (const auto& [sign, agent] : kSigns) {
    if (asked.last.starts_with(sign)) {
      return agent;
    }
  }
  ADD_FAILURE() << "a question for nobody: " << asked.last.substr(0, 200);
  return {};
}

fake::Answer Play(const fake::Asked& asked) {
  const std::string agent = AgentOf(asked);
  if (agent == "planner") {
    return {.text = nlohmann::json{{"technique", "rename_" + Short(asked.last)},
                                   {"finding", ""},
                                   {"plan", "Rename the kernel and keep all else."},
                                   {"why", "A name costs nothing."},
                                   {"expected_gain", 1.1},
                                   {"differs", "another name"}}
                        .dump()};
  }
  if (agent == "note_taker") {
    return {.text = R"({"lessons": []})"};
  }
  if (agent == "researcher") {
    return {.text = "Nothing of use was found."};
  }
  if (agent == "seed") {
    return {.text = asked.last.find("attempt 1 of") != std::string::npos
                        ? Fenced(SeedKernel())
                        : "I would rather talk about the weather."};
  }
  std::string source = SourceIn(asked.last);
  if (agent == "repairer") {
    const std::size_t at = source.find(kBroken);
    return {.text = "The last line is no code.\n" +
                    Fenced(source.substr(0, std::min(at, source.size())))};
  }
  return {.text = Fenced(Renamed(source, Between(asked.last, "Technique: rename_", "\n")))};
}

std::unique_ptr<fake::FakeServer> Serve(fake::HandlerOptions options) {
  options.key = kCanaryKey;
  return fake::FakeServer::Start(std::move(options)).value();
}

fs::path SmallTask(const Cli& cli) {
  const fs::path task = cli.CopyTask("block_sum");
  Cli::Edit(task / "task.toml", "segments = 4096, length = 4096", "segments = 64, length = 2048");
  return task;
}

std::vector<std::string> Arguments(const Search& s) {
  const bool openai = s.wire == fake::Wire::kOpenAi;
  std::vector<std::string> all = {
      "optimize",      s.task,
      "--run",         s.run,
      "--device",      "emulator",
      "--evaluations", std::to_string(s.evaluations),
      "--seed",        "5",
      "--model",       openai ? "openai:test-model" : "anthropic:test-model",
      "--base-url",    openai ? s.url + "/v1" : s.url,
      "--price",       "2,10",
      "--json"};
  for (std::size_t i = 0; i < s.more.size(); ++i) {
    const auto known = std::find(all.begin(), all.end(), s.more[i]);
    if (s.more[i].starts_with("--") && known != all.end()) {
      *(known + 1) = s.more[++i];
    } else {
      all.push_back(s.more[i]);
    }
  }
  return all;
}

double Dollars(const std::vector<fake::LedgerEntry>& ledger) {
  double dollars = 0;
  for (const fake::LedgerEntry& entry : ledger) {
    dollars += static_cast<double>(entry.tokens.prompt) * kInPrice +
               static_cast<double>(entry.tokens.completion) * kOutPrice;
  }
  return dollars;
}

std::vector<store::NodeRecord> NodesOf(const fs::path& run) {
  const auto store = store::RunStore::OpenCopy(run).value();
  return store->Nodes().value();
}

std::vector<store::ExchangeRecord> ExchangesOf(const fs::path& run) {
  const auto store = store::RunStore::OpenCopy(run).value();
  return store->Exchanges().value();
}

std::vector<std::string> Tree(const fs::path& run) {
  std::vector<std::string> tree;
  for (const store::NodeRecord& n : NodesOf(run)) {
    tree.push_back(fmt::format("{} of {}: {} by '{}', {} {} {}", n.id, n.parent, n.action, n.origin,
                               n.verdict, n.time_us, n.content));
  }
  return tree;
}

std::vector<std::string> FilesWith(const fs::path& folder, const std::string& bytes) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() &&
        ReadFile(entry.path()).value().find(bytes) != std::string::npos) {
      found.push_back(entry.path().string());
    }
  }
  return found;
}

}  // namespace kernelpro::e2e
