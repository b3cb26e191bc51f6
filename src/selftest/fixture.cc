// SPDX-License-Identifier: Apache-2.0
#include "selftest/fixture.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "task/toml.h"
#include "task/toml_table.h"

namespace kernelpro::selftest {
namespace {

namespace fs = std::filesystem;

Result<std::vector<std::string>> Flags(const TomlTable& table, std::string_view key) {
  std::vector<std::string> flags;
  if (table.Find(key) == nullptr) {
    return flags;
  }
  KP_ASSIGN_OR_RETURN(const auto items, table.TextList(key));
  for (const TomlNode* item : items) {
    flags.push_back(item->text);
  }
  return flags;
}

Result<std::vector<Verdict>> Verdicts(const TomlTable& table, std::string_view key) {
  KP_ASSIGN_OR_RETURN(const auto items, table.TextList(key));
  std::vector<Verdict> verdicts;
  for (const TomlNode* item : items) {
    const std::optional<Verdict> verdict = ParseVerdict(item->text);
    if (!verdict) {
      return table.At(item->line, fmt::format("\"{}\" of the fixture: \"{}\" is not a verdict", key,
                                              Printable(item->text, 64)));
    }
    if (*verdict == Verdict::kOk || *verdict == Verdict::kInfrastructureError) {
      return table.At(
          item->line,
          fmt::format("\"{}\" of the fixture: {} condemns no candidate", key, Name(*verdict)),
          "a verdict that a hostile candidate gets, for example wrong_result");
    }
    verdicts.push_back(*verdict);
  }
  if (verdicts.empty()) {
    return table.At(table.Find(key)->line,
                    fmt::format("\"{}\" of the fixture needs at least one verdict", key));
  }
  return verdicts;
}

Status Devices(const TomlTable& table, Fixture* fixture) {
  KP_ASSIGN_OR_RETURN(const auto items, table.TextList("devices"));
  for (const TomlNode* item : items) {
    if (item->text == "emulator") {
      fixture->on_emulator = true;
    } else if (item->text == "cuda") {
      fixture->on_cuda = true;
    } else {
      return table.At(item->line, fmt::format("unknown device \"{}\"", Printable(item->text, 64)),
                      "allowed: emulator, cuda");
    }
  }
  if (items.empty()) {
    return table.At(table.Find("devices")->line, "\"devices\" of the fixture needs at least one");
  }
  return Ok();
}

Result<bool> Quick(const TomlTable& table) {
  const TomlNode* node = table.Find("quick");
  if (node == nullptr) {
    return false;
  }
  KP_RETURN_IF_ERROR(table.Expect(*node, "quick", TomlNode::Kind::kBool));
  return node->boolean;
}

Result<Fixture> LoadFixture(const fs::path& folder, const fs::path& suite) {
  const fs::path file = folder / "fixture.toml";
  KP_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  KP_ASSIGN_OR_RETURN(Fixture fixture, ParseFixture(text, file.string()));
  fixture.name = folder.filename().string();
  fixture.folder = folder;
  for (const fs::path& needed :
       {folder / "hostile.cu", folder / "twin.cu", suite / "tasks" / fixture.task / "task.toml"}) {
    std::error_code ignored;
    if (!fs::is_regular_file(needed, ignored)) {
      return Fail(ErrorCode::kNotFound, fmt::format("fixture {} needs {}, which is not there",
                                                    fixture.name, needed.string()));
    }
  }
  return fixture;
}

}  // namespace

Result<Fixture> ParseFixture(std::string_view toml, std::string_view shown_path) {
  const TomlSource source(toml, shown_path);
  KP_ASSIGN_OR_RETURN(const TomlNode root, ParseToml(toml, source));
  KP_ASSIGN_OR_RETURN(const TomlTable table,
                      TomlTable::Open(root, source, "the fixture",
                                      {"task", "attack", "expected", "expected_emulator", "devices",
                                       "flags", "twin_flags", "quick"}));
  Fixture fixture;
  KP_ASSIGN_OR_RETURN(fixture.task, table.Text("task"));
  if (fixture.task.empty() || fixture.task.find_first_of("/\\") != std::string::npos ||
      fixture.task[0] == '.') {
    return table.At(table.Find("task")->line, "\"task\" of the fixture names a folder in tasks/");
  }
  KP_ASSIGN_OR_RETURN(fixture.attack, table.Text("attack"));
  KP_ASSIGN_OR_RETURN(fixture.expected, Verdicts(table, "expected"));
  if (table.Find("expected_emulator") != nullptr) {
    KP_ASSIGN_OR_RETURN(fixture.expected_emulator, Verdicts(table, "expected_emulator"));
  }
  KP_RETURN_IF_ERROR(Devices(table, &fixture));
  KP_ASSIGN_OR_RETURN(fixture.flags, Flags(table, "flags"));
  KP_ASSIGN_OR_RETURN(fixture.twin_flags, Flags(table, "twin_flags"));
  KP_ASSIGN_OR_RETURN(fixture.quick, Quick(table));
  return fixture;
}

Result<std::vector<Fixture>> LoadFixtures(const fs::path& suite) {
  std::error_code error;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(suite / "fixtures", error)) {
    if (entry.is_directory()) {
      folders.push_back(entry.path());
    }
  }
  if (error || folders.empty()) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} holds no folder fixtures/ with exploits", suite.string()));
  }
  std::ranges::sort(folders);
  std::vector<Fixture> fixtures;
  for (const fs::path& folder : folders) {
    KP_ASSIGN_OR_RETURN(Fixture fixture, LoadFixture(folder, suite));
    fixtures.push_back(std::move(fixture));
  }
  return fixtures;
}

std::vector<Fixture> Select(const std::vector<Fixture>& fixtures, const std::string& only,
                            bool quick) {
  std::vector<Fixture> selected;
  std::ranges::copy_if(fixtures, std::back_inserter(selected), [&](const Fixture& fixture) {
    return (!quick || fixture.quick) &&
           (only.empty() || ::fnmatch(only.c_str(), fixture.name.c_str(), 0) == 0);
  });
  return selected;
}

Result<fs::path> FindSuite(const fs::path& given) {
  if (!given.empty()) {
    return given;
  }
  const fs::path installed = ExecutableFolder().parent_path() / "share" / "kernelpro" / "exploits";
  const fs::path source = fs::path(KP_SOURCE_DIR) / "tests" / "exploits";
  for (const fs::path& folder : {installed, source}) {
    std::error_code ignored;
    if (fs::is_directory(folder / "fixtures", ignored)) {
      return folder;
    }
  }
  return Fail(ErrorCode::kNotFound,
              fmt::format("the exploits are neither in {} nor in {}; name their folder with "
                          "--fixtures",
                          installed.string(), source.string()));
}

}  // namespace kernelpro::selftest
