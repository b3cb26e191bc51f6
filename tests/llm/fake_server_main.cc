// SPDX-License-Identifier: Apache-2.0
// fake_llm_server: a server of both wires for clients in other languages. Prints its port, serves
// until its standard input ends (so that it never outlives who started it), then exits with 0.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "fake_server.h"

namespace {

using kernelpro::fake::Answer;
using kernelpro::fake::Asked;
using Json = nlohmann::ordered_json;

constexpr std::string_view kUsage =
    "fake_llm_server [--port N] [--key KEY] [--model NAME]... [--rules FILE] [--ledger FILE]\n"
    "FILE of --rules: JSON lines {\"match\": part of the last message, \"text\": ..., \"calls\":\n"
    "[{\"name\": ..., \"arguments\": {...}}], \"reasoning\": N}; the first match answers,\n"
    "without one the last message comes back.\n";

struct Rule {
  std::string match;
  Answer answer;
};

bool LoadRules(const std::string& path, std::vector<Rule>& rules) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) {
      fmt::print(stderr, "{}: no JSON object: {}\n", path, line);
      return false;
    }
    Rule rule{json.value("match", ""), {}};
    rule.answer.text = json.value("text", "");
    rule.answer.reasoning = json.value("reasoning", std::uint64_t{0});
    for (const Json& call : json.value("calls", Json::array())) {
      rule.answer.calls.push_back(
          {call.value("name", ""), call.value("arguments", Json::object()).dump()});
    }
    rules.push_back(std::move(rule));
  }
  return file.eof();
}

}  // namespace

int main(int argc, char** argv) {
  kernelpro::fake::HandlerOptions options;
  std::vector<Rule> rules;
  std::string ledger;
  int port = 0;
  bool models_given = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--port") {
      std::from_chars(value.data(), value.data() + value.size(), port);
    } else if (name == "--key") {
      options.key = value;
    } else if (name == "--model") {
      if (!std::exchange(models_given, true)) {
        options.models.clear();
      }
      options.models.push_back(value);
    } else if (name == "--ledger") {
      ledger = value;
    } else if (name != "--rules" || !LoadRules(value, rules)) {
      std::cerr << kUsage;
      return 2;
    }
  }
  if (argc % 2 == 0) {
    std::cerr << kUsage;
    return 2;
  }
  options.responder = [&rules](const Asked& asked) {
    for (const Rule& rule : rules) {
      if (asked.last.find(rule.match) != std::string::npos) {
        return rule.answer;
      }
    }
    return kernelpro::fake::Echo(asked);
  };
  auto server = kernelpro::fake::FakeServer::Start(std::move(options), port, ledger);
  if (!server) {
    fmt::print(stderr, "{}\n", server.error().message);
    return 1;
  }
  fmt::print("{}\n", (*server)->port());
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  (*server)->Stop();
  return 0;
}
