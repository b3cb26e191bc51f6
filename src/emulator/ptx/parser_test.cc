// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "emulator/ptx/module.h"

namespace kernelpro::ptx {
namespace {

using Kind = Operand::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kHead = ".version 9.0\n.target sm_90a\n.address_size 64\n";

Module ParseModule(std::string_view text) {
  auto module = Parse(std::string(kHead) + std::string(text), "t.ptx");
  EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().message);
  return module.ok() ? std::move(module).value() : Module{};
}

std::string ErrorOf(std::string_view text) {
  const auto module = Parse(std::string(kHead) + std::string(text), "t.ptx");
  EXPECT_FALSE(module.ok()) << "parsed: " << text;
  if (module.ok()) {
    return "";
  }
  EXPECT_EQ(module.error().code, ErrorCode::kParse);
  return module.error().message;
}

/// The only function of a module whose kernel has a few registers, and this body from line 8.
Function ParseBody(std::string_view body) {
  Module module = ParseModule(
      ".extern .shared .align 16 .b8 dyn[];\n"
      ".visible .entry k(.param .u64 a, .param .u32 n)\n"
      "{ .reg .pred %p<8>; .reg .b32 %r<32>;\n"
      ".reg .b64 %rd<16>; .reg .f32 %f<16>;\n" +
      std::string(body) + "\n}\n");
  EXPECT_EQ(module.functions.size(), 1U);
  return module.functions.empty() ? Function{} : std::move(module.functions.front());
}

std::string BodyError(std::string_view body) {
  return ErrorOf(
      ".visible .entry k(.param .u64 a, .param .u32 n)\n"
      "{ .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<16>;\n" +
      std::string(body) + "\n}\n");
}

std::string NameOf(const Function& function, const Operand& operand) {
  return function.registers.at(operand.reg).name;
}

TEST(Parser, Header) {
  const Module module = ParseModule("");
  EXPECT_EQ(module.version_major, 9U);
  EXPECT_EQ(module.version_minor, 0U);
  EXPECT_EQ(module.target, "sm_90a");
  EXPECT_EQ(module.label, "t.ptx");
  EXPECT_THAT(ErrorOf(".address_size 32"), HasSubstr("t.ptx:4: expected 64"));
  EXPECT_EQ(Parse("hello", "x").error().message,
            "x:1: expected .version, as PTX text begins, found 'hello'");
}

TEST(Parser, OpcodeKeepsItsModifiers) {
  const Function f = ParseBody(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%r1], [%rd9, {%r2, %r3}], [%r13];\n"
      "ld.global .L1::no_allocate.L2::128B.v2.f32 {%f1, _}, [%rd1+-4];\nret;");
  ASSERT_EQ(f.body.size(), 3U);
  EXPECT_THAT(f.body[0].parts, ElementsAre("cp", "async", "bulk", "tensor", "2d", "shared::cluster",
                                           "global", "mbarrier::complete_tx::bytes"));
  EXPECT_TRUE(f.body[0].Has("2d"));
  EXPECT_FALSE(f.body[0].Has("cp")) << "the base opcode is no modifier";
  ASSERT_EQ(f.body[0].operands.size(), 3U);
  const Operand& source = f.body[0].operands[1];
  EXPECT_EQ(source.kind, Kind::kAddress);
  EXPECT_EQ(NameOf(f, source), "%rd9");
  ASSERT_EQ(source.elements.size(), 1U);
  ASSERT_EQ(source.elements[0].kind, Kind::kVector);
  EXPECT_EQ(NameOf(f, source.elements[0].elements.at(1)), "%r3");
  EXPECT_EQ(f.body[1].opcode, "ld.global.L1::no_allocate.L2::128B.v2.f32");
  EXPECT_EQ(f.body[1].operands[0].elements.at(1).kind, Kind::kSink);
  EXPECT_EQ(f.body[1].operands[1].offset, -4);
}

TEST(Parser, GuardsPairsAndNegation) {
  const Function f = ParseBody(
      "@%p1 bra L;\n@!%p2 mov.u32 %r1, 5;\n"
      "setp.lt.and.s32 %p1|%p2, %r1, -7, !%p3;\n"
      "shfl.sync.bfly.b32 %r2|_, %r1, 16, 31, -1;\nL: ret;");
  EXPECT_EQ(f.registers.at(f.body[0].guard).name, "%p1");
  EXPECT_FALSE(f.body[0].guard_negated);
  EXPECT_EQ(f.body[0].operands[0].kind, Kind::kLabel);
  EXPECT_EQ(f.body[0].operands[0].target, 4U);
  EXPECT_TRUE(f.body[1].guard_negated);
  const Instruction& setp = f.body[2];
  ASSERT_EQ(setp.operands.size(), 4U);
  EXPECT_EQ(setp.operands[0].kind, Kind::kPredicatePair);
  EXPECT_EQ(NameOf(f, setp.operands[0].elements.at(1)), "%p2");
  EXPECT_EQ(setp.operands[2].bits, 0xfffffffffffffff9ULL);
  EXPECT_TRUE(setp.operands[3].negated);
  EXPECT_EQ(f.body[3].operands[0].elements.at(1).kind, Kind::kSink);
  EXPECT_EQ(f.body[3].guard, Operand::kNoRegister);
}

struct NumberCase {
  std::string_view text;
  Kind kind;
  std::uint64_t bits;
  std::uint8_t float_bits;
};

TEST(Parser, Numbers) {
  const NumberCase cases[] = {
      {"0", Kind::kInteger, 0, 0},
      {"017", Kind::kInteger, 15, 0},
      {"0x1F", Kind::kInteger, 31, 0},
      {"0XfFU", Kind::kInteger, 255, 0},
      {"0b101", Kind::kInteger, 5, 0},
      {"3U", Kind::kInteger, 3, 0},
      {"18446744073709551615", Kind::kInteger, ~0ULL, 0},
      {"-9223372036854775808", Kind::kInteger, 0x8000000000000000ULL, 0},
      {"~1", Kind::kInteger, 0xfffffffffffffffeULL, 0},
      {"WARP_SZ", Kind::kInteger, 32, 0},
      {"0f3F800000", Kind::kFloat, 0x3f800000, 32},
      {"-0f3F800000", Kind::kFloat, 0xbf800000, 32},
      {"0d400A000000000000", Kind::kFloat, 0x400a000000000000ULL, 64},
      {"1.5", Kind::kFloat, 0x3ff8000000000000ULL, 64},
      {"25e-1", Kind::kFloat, 0x4004000000000000ULL, 64},
  };
  for (const NumberCase& c : cases) {
    const Function f = ParseBody("mov.b64 %rd1, " + std::string(c.text) + "; ret;");
    ASSERT_EQ(f.body.size(), 2U) << c.text;
    const Operand& operand = f.body[0].operands[1];
    EXPECT_EQ(operand.kind, c.kind) << c.text;
    EXPECT_EQ(operand.bits, c.bits) << c.text;
    EXPECT_EQ(operand.float_bits, c.float_bits) << c.text;
  }
  for (const char* text :
       {"0f3F8", "0f3F8000000", "0d3F800000", "0x", "18446744073709551616", "12a", "1e999", "09"}) {
    EXPECT_THAT(BodyError("mov.b32 %r1, " + std::string(text) + ";"), HasSubstr("t.ptx:6: "))
        << text;
  }
}

TEST(Parser, WideConstantsNarrowInSinglePrecision) {
  const Function f = ParseBody("add.f32 %f1, %f2, 1.5; mov.f32 %f1, 0d3FF8000000000000; ret;");
  EXPECT_EQ(f.body[0].operands[2].bits, 0x3fc00000U);
  EXPECT_EQ(f.body[0].operands[2].float_bits, 32);
  EXPECT_EQ(f.body[1].operands[1].bits, 0x3fc00000U);
}

TEST(Parser, SpecialRegisters) {
  const Function f = ParseBody(
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %nctaid.z; mov.u64 %rd1, %clock64;\n"
      "mov.u32 %r3, %cluster_ctaid.y; mov.u32 %r4, %envreg17; mov.u32 %r5, %lanemask_lt;\n"
      "mov.u32 %r6, %total_smem_size; ret;");
  EXPECT_EQ(f.body[0].operands[1].kind, Kind::kSpecial);
  EXPECT_EQ(f.body[0].operands[1].special, Special::kTidX);
  EXPECT_EQ(f.body[1].operands[1].special, Special::kNctaidZ);
  EXPECT_EQ(f.body[2].operands[1].special, Special::kClock64);
  EXPECT_EQ(f.body[3].operands[1].special, Special::kOther);
  EXPECT_EQ(f.body[3].operands[1].text, "%cluster_ctaid.y");
  EXPECT_EQ(f.body[4].operands[1].text, "%envreg17");
  EXPECT_EQ(f.body[5].operands[1].special, Special::kLanemaskLt);
  EXPECT_EQ(f.body[6].operands[1].special, Special::kTotalSmemSize);
  EXPECT_THAT(BodyError("mov.u32 %r1, %tidy;"), HasSubstr("register '%tidy' is not declared"));
  EXPECT_THAT(BodyError("mov.u32 %r1, %r32;"), HasSubstr("'%r32' is not declared"))
      << "%r<32> ends at %r31";
}

TEST(Parser, Addresses) {
  const Function f = ParseBody(
      "ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n+0]; ld.shared.f32 %f1, [dyn+16];\n"
      "ld.global.f32 %f1, [64]; st.shared.f32 [dyn+%r1+-8], %f1; mov.u64 %rd2, dyn+12;\n"
      "ld.global.f32 %f1, [%rd1-12]; ret;");
  EXPECT_EQ(f.body[0].operands[1].text, "a");
  EXPECT_EQ(f.body[0].operands[1].reg, Operand::kNoRegister);
  EXPECT_EQ(f.body[2].operands[1].text, "dyn");
  EXPECT_EQ(f.body[2].operands[1].offset, 16);
  EXPECT_EQ(f.body[3].operands[1].kind, Kind::kAddress);
  EXPECT_EQ(f.body[3].operands[1].offset, 64);
  EXPECT_TRUE(f.body[3].operands[1].text.empty());
  EXPECT_EQ(f.body[4].operands[0].text, "dyn");
  EXPECT_EQ(NameOf(f, f.body[4].operands[0]), "%r1");
  EXPECT_EQ(f.body[4].operands[0].offset, -8);
  EXPECT_EQ(f.body[5].operands[1].kind, Kind::kSymbol);
  EXPECT_EQ(f.body[5].operands[1].offset, 12);
  EXPECT_EQ(f.body[6].operands[1].offset, -12);
  EXPECT_THAT(BodyError("ld.global.f32 %f1, [%rd1+%rd2];"), HasSubstr("second base"));
  EXPECT_THAT(BodyError("ld.global.f32 %f1, [nowhere];"), HasSubstr("'nowhere' is not declared"));
}

TEST(Parser, InnerScopesShadowAndStayApart) {
  const Function f = ParseBody(
      "setp.eq.s32 %p1, %r1, 0;\n"
      "{ .reg .pred p; setp.eq.s32 p, %r1, 1; selp.b32 %r2, 1, 0, p; }\n"
      "{\n.reg .pred p;\n.reg .b64 %r1;\nmov.pred p, %p1; mov.b64 %r1, 7; /* \n */ } // end\n"
      "mov.u32 %r1, 3; ret;");
  const std::uint32_t first = f.body[1].operands[0].reg;
  const std::uint32_t second = f.body[3].operands[0].reg;
  EXPECT_NE(first, second);
  EXPECT_NE(f.registers[first].name, f.registers[second].name);
  EXPECT_EQ(f.registers[first].name, "p");
  const std::uint32_t outer = f.body[0].operands[1].reg;
  EXPECT_EQ(f.body[5].operands[0].reg, outer);
  EXPECT_NE(f.body[4].operands[0].reg, outer);
  EXPECT_EQ(f.registers[f.body[4].operands[0].reg].type, Type::kB64);
  EXPECT_EQ(f.registers[outer].type, Type::kB32);
  EXPECT_THAT(BodyError("{ .reg .b32 t; } mov.u32 t, 1;"), HasSubstr("'t' is not declared"));
  EXPECT_THAT(BodyError(".reg .b32 t, t;"), HasSubstr("'t' is declared twice"));
}

TEST(Parser, LabelsAreLocalToTheirScope) {
  const Function f = ParseBody(
      "L: { bra L; nop; L: mov.u32 %r1, 1; }\n"
      "{ bra L; bra DONE; }\nDONE: ret;");
  EXPECT_EQ(f.body[0].operands[0].target, 2U) << "the inner L, though it comes later";
  EXPECT_EQ(f.body[3].operands[0].target, 0U) << "the outer L";
  EXPECT_EQ(f.body[4].operands[0].target, 5U);
  EXPECT_THAT(BodyError("{ IN: ret; }\n\nbra IN;"), HasSubstr("t.ptx:8: label 'IN' is not in"));
  EXPECT_THAT(BodyError("A: A: ret;"), HasSubstr("'A' is declared twice"));
  EXPECT_THAT(BodyError("A: mov.u32 %r1, A;"), HasSubstr("used as a value"));
}

TEST(Parser, EveryBodyEndsInAReturn) {
  EXPECT_EQ(ParseBody("").body.at(0).opcode, "ret");
  EXPECT_EQ(ParseBody("ret;").body.size(), 1U);
  EXPECT_EQ(ParseBody("@%p1 ret;").body.size(), 2U);
  EXPECT_EQ(ParseBody("ret; $L__func_end0:").body.size(), 1U) << "nobody goes there";
  const Function f = ParseBody("@%p1 bra END; exit; END:");
  ASSERT_EQ(f.body.size(), 3U);
  EXPECT_EQ(f.body[0].operands[0].target, 2U);
  EXPECT_EQ(f.body[2].opcode, "ret");
}

TEST(Parser, IndexedBranches) {
  const Function f = ParseBody(
      "brx.idx %r1, LIST;\nLIST: .branchtargets A, B,\nA;\n"
      "A: mov.u32 %r1, 1;\nB: ret;");
  EXPECT_THAT(f.body[0].branch_targets, ElementsAre(1U, 2U, 1U));
  EXPECT_EQ(f.body[0].operands[1].text, "LIST");
  EXPECT_THAT(BodyError("A: brx.idx %r1, A;"), HasSubstr("not a list of .branchtargets"));
  EXPECT_THAT(BodyError("L: .branchtargets A; A: bra L;"), HasSubstr("'L' is not a label"));
  EXPECT_THAT(BodyError("L: .branchtargets NO;"), HasSubstr("label 'NO'"));
}

TEST(Parser, Calls) {
  const Module module = ParseModule(
      ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b) ;\n"
      ".func f () .noreturn { ret; }\n"
      ".visible .entry k() { .reg .b64 %rd<4>; .reg .b32 %r<3>;\n"
      "{ .param .b64 param0; .param .align 8 .b8 param1[24]; .param .b32 retval0;\n"
      "st.param.b64 [param0+0], %rd1;\n"
      "call.uni (retval0), \nvprintf, \n(\nparam0, \nparam1\n);\nld.param.b32 %r1, [retval0]; }\n"
      "{ .param .b64 param0; P : .callprototype (.param .b32 _) _ (.param .b64 _);\n"
      "st.param.b64 [param0], %rd1; call f; call %rd2, (param0), P; } }\n");
  ASSERT_EQ(module.functions.size(), 3U);
  EXPECT_TRUE(module.Find("vprintf")->is_declaration);
  EXPECT_FALSE(module.Find("f")->is_declaration);
  EXPECT_EQ(module.Find("nothing"), nullptr);
  const Function& k = *module.Find("k");
  ASSERT_EQ(k.call_slots.size(), 4U);
  EXPECT_EQ(k.call_slots[1].bytes, 24U);
  EXPECT_EQ(k.call_slots[1].offset, 8U);
  EXPECT_EQ(k.call_slots[2].offset, 32U);
  EXPECT_EQ(k.call_slots[3].offset, 40U) << "aligned to 8 behind the 4 bytes of retval0";
  EXPECT_NE(k.call_slots[3].name, k.call_slots[0].name);
  const Instruction& call = k.body.at(1);
  ASSERT_EQ(call.operands.size(), 3U);
  EXPECT_EQ(call.operands[0].kind, Kind::kVector);
  EXPECT_EQ(call.operands[0].elements.at(0).text, "retval0");
  EXPECT_EQ(call.operands[1].kind, Kind::kSymbol);
  EXPECT_EQ(call.operands[1].text, "vprintf");
  EXPECT_EQ(call.operands[2].elements.at(1).text, "param1");
  EXPECT_EQ(k.body.at(3).operands[0].text, k.call_slots[3].name);
  EXPECT_EQ(k.body.at(4).operands.size(), 1U);
  EXPECT_EQ(k.body.at(5).operands[0].kind, Kind::kRegister);
  EXPECT_EQ(k.body.at(5).operands[2].text, "P");
}

TEST(Parser, ParametersAndLaunchBounds) {
  const Module module = ParseModule(
      ".visible .entry k(.param .u32 a, .param .u64 .ptr .global .align 16 b,\n"
      ".param .align 64 .b8 c[128], .param .u8 d, .param .f64 e)\n"
      ".maxntid 128, 2, 1\n.reqntid 64\n.minnctapersm 2\n.maxnreg 40\n.explicitcluster\n"
      ".reqnctapercluster 2, 1, 1\n.maxclusterrank 8\n.pragma \"x\";\n{ ret; }");
  const Function& k = module.functions.at(0);
  EXPECT_TRUE(k.is_entry);
  EXPECT_EQ(k.ptx_line, 4U);
  ASSERT_EQ(k.parameters.size(), 5U);
  const std::uint32_t offsets[] = {0, 8, 64, 192, 200};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(k.parameters[i].offset, offsets[i]) << i;
  }
  EXPECT_EQ(k.parameters[1].type, Type::kU64);
  EXPECT_EQ(k.parameters[1].alignment, 8U) << "16 is the alignment of what it points to";
  EXPECT_EQ(k.parameters[2].bytes, 128U);
  EXPECT_THAT(k.max_ntid, ElementsAre(128U, 2U, 1U));
  EXPECT_THAT(k.req_ntid, ElementsAre(64U, 1U, 1U));
  EXPECT_THAT(k.req_cluster, ElementsAre(2U, 1U, 1U));
  EXPECT_EQ(k.min_ctas_per_sm, 2U);
  EXPECT_EQ(k.max_registers, 40U);
  EXPECT_EQ(k.max_cluster_ctas, 8U);
  EXPECT_TRUE(k.explicit_cluster);
  EXPECT_THAT(ErrorOf(".entry k(.reg .u32 x) { ret; }"), HasSubstr("not supported"));
  EXPECT_THAT(ErrorOf(".entry k() .fastmath { ret; }"), HasSubstr("unknown function directive"));
}

TEST(Parser, DefinitionReplacesDeclaration) {
  const Module module = ParseModule(
      ".func (.param .b32 r) g (.param .b32 x);\n"
      ".visible .func (.param .b32 r) g (.param .b32 x) { ret; }\n"
      ".func (.param .b32 r) g (.param .b32 x);\n");
  ASSERT_EQ(module.functions.size(), 1U);
  EXPECT_FALSE(module.functions[0].is_declaration);
  EXPECT_EQ(module.functions[0].returns.at(0).bytes, 4U);
  EXPECT_THAT(ErrorOf(".func g() { ret; }\n.func g() { ret; }"),
              HasSubstr("t.ptx:5: function 'g' is defined twice"));
  EXPECT_THAT(ErrorOf(".global .u32 g;\n.func g() { ret; }"), HasSubstr("'g' is declared twice"));
}

TEST(Parser, PragmasSectionsAndLocalVariables) {
  const Module module = ParseModule(
      ".global .align 4 .u32 x;\n"
      ".entry k() { .reg .b32 %r<2>; .local .align 16 .b8 depot[64]; .shared .f32 t[32][33];\n"
      ".pragma \"nounroll\";\n{ .shared .u32 x; mov.u32 %r1, x; } mov.u32 %r1, x; ret; }\n"
      "#line 1\n@@DWARF .section whatever {\n"
      ".section .debug_str\n{\n$L__s0:\n.b8 95\n.b64 $L__a-$L__b\n{ } }\n");
  const Function& k = module.functions.at(0);
  ASSERT_EQ(k.variables.size(), 3U);
  EXPECT_EQ(k.variables[0].space, Space::kLocal);
  EXPECT_EQ(k.variables[0].alignment, 16U);
  EXPECT_EQ(k.variables[0].bytes, 64U);
  EXPECT_EQ(k.variables[1].space, Space::kShared);
  EXPECT_EQ(k.variables[1].bytes, 32U * 33U * 4U);
  EXPECT_NE(k.variables[2].name, "x") << "the module's x must stay distinct";
  EXPECT_EQ(k.body[0].operands[1].text, k.variables[2].name);
  EXPECT_EQ(k.body[1].operands[1].text, "x");
}

TEST(Parser, TypesAnswer) {
  EXPECT_EQ(ParseType("bf16x2"), Type::kBF16x2);
  EXPECT_EQ(ParseType("v4"), Type::kNone);
  EXPECT_EQ(ParseType(""), Type::kNone);
  for (int i = 1; i <= static_cast<int>(Type::kE5M2x2); ++i) {
    const auto type = static_cast<Type>(i);
    EXPECT_EQ(ParseType(Name(type)), type) << Name(type);
  }
  EXPECT_EQ(SizeOf(Type::kPred), 0U);
  EXPECT_EQ(SizeOf(Type::kB128), 16U);
  EXPECT_EQ(SizeOf(Type::kE4M3x2), 2U);
  EXPECT_TRUE(IsFloat(Type::kTF32));
  EXPECT_FALSE(IsFloat(Type::kB32));
  EXPECT_TRUE(IsSigned(Type::kS8));
  EXPECT_FALSE(IsSigned(Type::kU64));
}

}  // namespace
}  // namespace kernelpro::ptx
