// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/test_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/text.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/liveness.h"
#include "emulator/ptx/module.h"

namespace kernelpro::ptx {
namespace {

constexpr char kLabelEnd = '\1';

bool StartsStatement(char c) {
  return (c >= 'a' && c <= 'z') || c == '@';
}

std::string_view WithoutLeading(std::string_view text, std::string_view characters) {
  text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
  return text;
}

/// The text without comments and without directives that have no semicolon; a label's colon
/// becomes a kLabelEnd. DWARF sections stand last and are cut off.
std::string Simplify(std::string_view text) {
  std::string simple;
  for (const std::string_view line : Lines(text)) {
    const std::string_view code = Trim(line.substr(0, line.find("//")));
    if (code.starts_with(".section")) {
      break;
    }
    bool skip = false;
    for (const std::string_view word : {".loc", ".file", ".version", ".target", ".address_size"}) {
      skip = skip || code.starts_with(word);
    }
    if (!skip) {
      simple += std::string(code) + " ";
    }
  }
  for (std::size_t i = 1; i + 1 < simple.size(); ++i) {
    if (simple[i] == ':' && simple[i - 1] != ':' && simple[i + 1] != ':') {
      simple[i] = kLabelEnd;
    }
  }
  return simple;
}

std::string_view OpcodeOf(std::string_view statement) {
  statement.remove_prefix(statement.find_last_of(kLabelEnd) + 1);  // npos + 1 is 0
  statement = WithoutLeading(statement, " \t{}");
  if (statement.starts_with('.')) {
    // The first statement of a body stands behind the function's header.
    const std::size_t brace = statement.find('{');
    if (brace == std::string_view::npos || statement.find('=') != std::string_view::npos) {
      return {};
    }
    statement = WithoutLeading(statement.substr(brace + 1), " \t");
  }
  if (statement.empty() || !StartsStatement(statement.front())) {
    return {};
  }
  if (statement.front() == '@') {
    statement.remove_prefix(std::min(statement.find_first_of(" \t"), statement.size()));
    statement = WithoutLeading(statement, " \t");
  }
  return statement.substr(0, statement.find_first_of(" \t"));
}

}  // namespace

void CheckAgainstText(const Module& module, std::string_view text) {
  std::map<std::string, int> counted;
  const std::string simple = Simplify(text);
  for (const std::string_view statement : Split(simple, ';')) {
    const std::string_view opcode = OpcodeOf(statement);
    if (!opcode.empty()) {
      ++counted[std::string(opcode)];
    }
  }
  std::map<std::string, int> parsed;
  for (const Function& f : module.functions) {
    for (const Instruction& i : f.body) {
      ++parsed[i.opcode];
    }
    const ControlFlow flow = BuildControlFlow(f);
    EXPECT_FALSE(flow.irreducible) << f.name;
    const auto live = ComputeLiveness(f, flow);
    ASSERT_TRUE(live.ok());
    EXPECT_TRUE(flow.blocks.empty() || live->live_in[0].empty())
        << f.name << " reads " << f.registers[live->live_in[0].front()].name
        << ", which nothing sets";
  }
  EXPECT_EQ(parsed, counted);
}

}  // namespace kernelpro::ptx
