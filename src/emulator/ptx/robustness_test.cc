// SPDX-License-Identifier: Apache-2.0
// Text that no compiler wrote: the parser answers with a module or with an error that names a line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/rng.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/liveness.h"
#include "emulator/ptx/module.h"

namespace kernelpro::ptx {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr std::string_view kHead = ".version 9.0\n.target sm_90\n";

void CheckOperand(const Function& f, const Operand& operand) {
  ASSERT_TRUE(operand.reg == Operand::kNoRegister || operand.reg < f.registers.size());
  ASSERT_TRUE(operand.kind != Operand::Kind::kLabel || !operand.text.empty());
  if (operand.kind == Operand::Kind::kLabel) {
    ASSERT_LT(operand.target, f.body.size());
  }
  if (operand.kind == Operand::Kind::kRegister) {
    ASSERT_LT(operand.reg, f.registers.size());
  }
  for (const Operand& element : operand.elements) {
    CheckOperand(f, element);
  }
}

/// What everyone who reads a Module relies on.
void CheckModule(const Module& module) {
  for (const Function& f : module.functions) {
    ASSERT_EQ(f.is_declaration, f.body.empty());
    for (const Instruction& i : f.body) {
      ASSERT_FALSE(i.parts.empty());
      ASSERT_TRUE(i.guard == Operand::kNoRegister || f.registers.at(i.guard).type == Type::kPred);
      ASSERT_LT(i.where.file, module.files.size());
      for (const Operand& operand : i.operands) {
        ASSERT_NO_FATAL_FAILURE(CheckOperand(f, operand));
      }
      for (const std::uint32_t target : i.branch_targets) {
        ASSERT_LT(target, f.body.size());
      }
    }
    (void)ComputeLiveness(f, BuildControlFlow(f));
  }
}

/// True when it parsed.
bool CheckAny(std::string_view text) {
  const auto module = Parse(text, "m.ptx");
  if (module.ok()) {
    CheckModule(*module);
    return true;
  }
  EXPECT_EQ(module.error().code, ErrorCode::kParse);
  EXPECT_THAT(module.error().message, MatchesRegex("m\\.ptx:[0-9]+: .+"));
  return false;
}

std::vector<std::string> GoldenTexts() {
  std::vector<std::string> texts;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(KP_SOURCE_DIR) + "/tests/data/ptx")) {
    if (entry.path().extension() == ".ptx") {
      texts.push_back(*ReadFile(entry.path()));
    }
  }
  return texts;
}

TEST(Robustness, EveryKindOfTruncation) {
  Rng rng(1);
  const std::vector<std::string> texts = GoldenTexts();
  ASSERT_FALSE(texts.empty());
  int rejected = 0;
  for (const std::string& text : texts) {
    for (int i = 0; i < 20; ++i) {
      const std::size_t length = rng.Next() % text.size();
      rejected += CheckAny(std::string_view(text).substr(0, length)) ? 0 : 1;
    }
  }
  EXPECT_GT(rejected, 50);
}

/// One small change of the kinds that find parsers' faults.
void Mutate(Rng& rng, std::string& text, const std::string& other) {
  constexpr std::string_view kBytes = "{}()[]<>,;:.%@!|+-_=\"/*0x9fU \n\t\x80$aZ~";
  const std::size_t at = rng.Next() % text.size();
  const std::size_t length = rng.Next() % 24;
  switch (rng.Next() % 6) {
    case 0:
      text[at] = kBytes[rng.Next() % kBytes.size()];
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, 1, kBytes[rng.Next() % kBytes.size()]);
      break;
    case 3:
      text.insert(at, text.substr(rng.Next() % text.size(), length));
      break;
    case 4:
      text.insert(at, other.substr(rng.Next() % other.size(), 4 * length));
      break;
    default:
      text[at] = static_cast<char>(rng.Next());
      break;
  }
}

TEST(Robustness, MutatedCompilerOutput) {
  Rng rng(7);
  const std::vector<std::string> texts = GoldenTexts();
  int rejected = 0;
  int accepted = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text = texts[static_cast<std::size_t>(round) % texts.size()];
    const std::string& other = texts[rng.Next() % texts.size()];
    for (std::uint64_t changes = 1 + rng.Next() % 4; changes > 0 && !text.empty(); --changes) {
      Mutate(rng, text, other);
    }
    (CheckAny(text) ? accepted : rejected) += 1;
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
  }
  EXPECT_GT(rejected, 50);
  EXPECT_GT(accepted, 5) << "a change in a comment or a number keeps the text valid";
}

TEST(Robustness, NoText) {
  CheckAny("");
  CheckAny(std::string_view("\0\0\0", 3));
  CheckAny("\xff\xfe.version 9.0");
  CheckAny("/* never ends");
  EXPECT_TRUE(CheckAny(kHead));
  EXPECT_THAT(Parse("\n\n\x01", "m.ptx").error().message, HasSubstr("m.ptx:3: "));
  EXPECT_THAT(Parse(std::string((32U << 20U) + 1, ' '), "m.ptx").error().message,
              HasSubstr("at most"));
}

std::string Repeat(std::string_view text, std::size_t count) {
  std::string result;
  for (std::size_t i = 0; i < count; ++i) {
    result += text;
  }
  return result;
}

std::string Kernel(std::string_view body) {
  return std::string(kHead) + ".entry k() { .reg .b32 %r<4294967295>; .reg .pred %p<9>; " +
         std::string(body) + " }";
}

TEST(Robustness, DeepNestingIsRefused) {
  constexpr std::size_t kDeep = 100000;
  EXPECT_FALSE(CheckAny(Kernel(Repeat("{", kDeep))));
  EXPECT_FALSE(CheckAny(Kernel("mov.b32 %r1, " + Repeat("{", kDeep))));
  EXPECT_FALSE(CheckAny(Kernel("mov.b32 %r1, " + Repeat("[%r1, ", kDeep))));
  EXPECT_FALSE(CheckAny(std::string(kHead) + ".global .b8 x[2] = " + Repeat("{", kDeep)));
  EXPECT_FALSE(CheckAny(std::string(kHead) + ".global .b8 x" + Repeat("[2]", kDeep)));
  EXPECT_FALSE(CheckAny(std::string(kHead) + ".section .x " + Repeat("{", kDeep)));
  EXPECT_TRUE(CheckAny(Kernel(Repeat("{", 60) + Repeat("}", 60))));
}

/// Inputs that would be slow or large for a careless parser; here they end at once. The test's
/// time limit is the check.
TEST(Robustness, LargeInputsStayLinear) {
  constexpr std::size_t kMany = 10000;
  EXPECT_TRUE(CheckAny(Kernel(Repeat("{ .reg .b32 t; mov.b32 t, %r4294967294; } ", kMany))));
  std::string labels;
  for (std::size_t i = 0; i < kMany; ++i) {
    labels += "L" + std::to_string(i) + ": @%p1 bra L" + std::to_string(kMany - 1 - i) + "; ";
  }
  EXPECT_TRUE(CheckAny(Kernel(labels)));
  EXPECT_TRUE(CheckAny(
      Kernel(Repeat("{", 50) + Repeat("bra END; ", kMany) + Repeat("}", 50) + " END: ret;")));
  EXPECT_TRUE(CheckAny(std::string(kHead) + Repeat("/* x */", kMany) + Repeat("// y\n", kMany)));
  std::string chain = Kernel("");
  chain.pop_back();
  for (std::size_t i = 1; i < kMany; ++i) {
    chain += ".loc 1 " + std::to_string(i + 1) + " 1, function_name f, inlined_at 1 " +
             std::to_string(i) + " 1\n";
  }
  EXPECT_TRUE(CheckAny(chain + "ret; }"));
}

TEST(Robustness, SharedTargetListsAreBounded) {
  const std::string list = "T: .branchtargets A" + Repeat(", A", 9999) + "; A: ";
  EXPECT_TRUE(CheckAny(Kernel(list + Repeat("brx.idx %r1, T; ", 10))));
  EXPECT_FALSE(CheckAny(Kernel(list + Repeat("brx.idx %r1, T; ", 1000))));
}

}  // namespace
}  // namespace kernelpro::ptx
