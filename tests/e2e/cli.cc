// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/text.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace kernelpro::e2e {

namespace fs = std::filesystem;

nlohmann::json Cli::Answer::Json() const {
  const auto lines = Lines(out);
  return lines.empty() ? nlohmann::json(nlohmann::json::value_t::discarded)
                       : nlohmann::json::parse(lines.back(), nullptr, false);
}

Cli::Cli() : folder_(TemporaryFolder::Create("kp-e2e").value()) {}

ProcessSpec Cli::Spec(std::vector<std::string> arguments) const {
  ProcessSpec spec;
  spec.argv = {KP_BINARY_DIR "/bin/kernelpro"};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.folder = folder();
  std::vector<std::string> all = environment;
  all.push_back("KERNELPRO_CACHE=" KP_BINARY_DIR "/e2e-cache");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string word = *entry;
    const std::string name = word.substr(0, word.find('=') + 1);
    bool replaced = false;
    for (const std::string& ours : all) {
      replaced = replaced || ours.starts_with(name);
    }
    if (!replaced) {
      all.push_back(word);
    }
  }
  spec.environment = all;
  spec.limits.output_bytes = 64U << 20U;
  return spec;
}

Cli::Answer Cli::Run(std::vector<std::string> arguments, std::chrono::seconds limit) const {
  ProcessSpec spec = Spec(std::move(arguments));
  spec.limits.wall = limit;
  const Result<ProcessResult> ran = RunProcess(spec);
  if (!ran) {
    ADD_FAILURE() << ran.error().message;
    return {};
  }
  EXPECT_EQ(ran->end, ProcessResult::End::kExited) << DescribeEnd(*ran, spec.limits) << ran->err;
  return {ran->exit_code, ran->out, ran->err};
}

Child Cli::Start(std::vector<std::string> arguments) const {
  return Child::Start(Spec(std::move(arguments))).value();
}

fs::path Cli::CopyTask(const std::string& name) const {
  const fs::path to = folder() / name;
  fs::copy(fs::path(KP_SOURCE_DIR) / "examples" / "tasks" / name, to,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  return to;
}

void Cli::Edit(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = ReadFile(file).value();
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << "'" << from << "' is not in " << file;
  text.replace(at, from.size(), to);
  ASSERT_TRUE(WriteFileAtomically(file, text).ok());
}

namespace {

std::string CommandOf(const fs::path& process) {
  std::ifstream file(process / "cmdline");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str().substr(0, text.str().find('\0'));
}

/// Whether the parent of a process is a kernelpro.
bool HasOwner(const fs::path& process) {
  std::ifstream file(process / "status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("PPid:")) {
      return CommandOf(fs::path("/proc") / std::string(Trim(line.substr(5))))
          .ends_with("/kernelpro");
    }
  }
  return true;  // It ended while we looked.
}

std::vector<std::string> OrphansNow() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    long long pid = 0;
    if (!ParseInteger(entry.path().filename().string(), &pid)) {
      continue;
    }
    const std::string command = CommandOf(entry.path());
    for (const char* name : {"kernelpro-runner", "kernelpro-emulated-gpu", "kernelpro-reference"}) {
      if (command.starts_with(KP_BINARY_DIR) && command.ends_with(name) &&
          !HasOwner(entry.path())) {
        found.push_back(command);
      }
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> LeftoverProcesses() {
  std::vector<std::string> found;
  for (int attempt = 0; attempt < 100; ++attempt) {
    found = OrphansNow();
    if (found.empty()) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return found;
}

}  // namespace kernelpro::e2e
