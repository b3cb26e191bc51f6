// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// PTX text as data (PTX ISA 9.0). Nothing is executed or resolved to machine state here.
namespace kernelpro::ptx {

enum class Type : std::uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBF16,
  kBF16x2,
  kTF32,
  kF32,
  kF64,
  kE4M3x2,
  kE5M2x2,
};

/// Storage of one value in bytes; 0 for kNone and kPred.
[[nodiscard]] std::uint32_t SizeOf(Type type);
[[nodiscard]] bool IsFloat(Type type);
/// The signed integers; floating-point types are not among them.
[[nodiscard]] bool IsSigned(Type type);
/// "f32" -> kF32; kNone when it names no type.
[[nodiscard]] Type ParseType(std::string_view name);
[[nodiscard]] std::string_view Name(Type type);

enum class Space : std::uint8_t {
  kNone,
  kReg,
  kSpecialReg,
  kConst,
  kGlobal,
  kLocal,
  kParam,
  kShared,
  kGeneric,
};

/// Where an instruction comes from: its line in the PTX text, and, under -lineinfo, the CUDA source
/// line (.loc; file is an index into Module::files, line 0 when unknown).
struct SourceLocation {
  std::uint32_t ptx_line = 0;
  std::uint32_t file = 0;
  std::uint32_t line = 0;
};

struct Register {
  std::string name;  ///< as written, e.g. "%rd12" (unique in its function after scoping)
  Type type = Type::kNone;
};

/// A variable: module scope (.global, .const, .shared), or function scope (.shared, .local).
/// Names from inner scopes are made unique.
struct Variable {
  /// `*(u64*)&init[offset] = address of symbol + addend` at load time (u32 when `bytes` is 4).
  struct Relocation {
    std::uint64_t offset = 0;  ///< may lie beyond the end of `init`
    std::uint32_t bytes = 8;
    std::string symbol;
    std::int64_t addend = 0;
    bool generic = false;
  };

  std::string name;
  Space space = Space::kNone;
  Type type = Type::kNone;
  std::uint32_t alignment = 1;
  std::uint64_t bytes = 0;  ///< 0 for `extern .shared x[]`
  bool is_extern = false;
  std::string init;  ///< bytes, shorter than `bytes` when the tail is zero
  std::vector<Relocation> relocations;
};

struct Parameter {
  std::string name;
  Type type = Type::kNone;  ///< element type (kB8 for a struct passed by value)
  std::uint32_t alignment = 1;
  std::uint32_t bytes = 0;
  std::uint32_t offset = 0;  ///< in the parameter block of the launch or call
};

enum class Special : std::uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNwarpId,
  kSmId,
  kNsmId,
  kGridId,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClock,
  kClockHi,
  kClock64,
  kGlobalTimer,
  kGlobalTimerLo,
  kGlobalTimerHi,
  kDynamicSmemSize,
  kTotalSmemSize,
  kOther,  ///< kOther: known to PTX, not listed; see Operand::text
};

struct Operand {
  enum class Kind : std::uint8_t {
    kRegister,  ///< reg
    kInteger,   ///< value: 5, 0x10, -1, 3U; bits in `bits`
    kFloat,     ///< value: 0fXXXXXXXX (bits, 32), or 0dXXXXXXXXXXXXXXXX or decimal (bits, 64);
                ///< width in `float_bits`; already narrowed to 32 where the opcode ends in .f32
    kSpecial,   ///< %tid.x ...
    kSymbol,    ///< address of a variable, or a parameter or function name; + offset
    kAddress,   ///< [reg + offset], [symbol + offset], [imm]; base in reg or text (both for
                ///< [symbol + reg]); what follows a comma, as in [%rd1, {%r1, %r2}], in elements
    kVector,    ///< {a, b, ...}: elements
    kLabel,  ///< branch target or .branchtargets list: index of the instruction in Function::body
    kSink,   ///< "_": result not wanted
    kPredicatePair,  ///< p|q of setp: elements[0], elements[1] (also d|p of shfl)
  };
  Kind kind = Kind::kRegister;
  std::uint32_t reg =
      kNoRegister;          ///< index into Function::registers; kNoRegister when text is the base
  bool negated = false;     ///< !p as a source predicate
  std::int64_t offset = 0;  ///< kAddress, kSymbol
  std::uint64_t bits = 0;
  std::uint8_t float_bits = 0;
  Special special = Special::kOther;
  std::uint32_t target = 0;  ///< kLabel
  std::string text;          ///< symbol or special register or label as written
  std::vector<Operand> elements;

  static constexpr std::uint32_t kNoRegister = 0xffffffffU;
};

struct Instruction {
  std::string opcode;              ///< whole, with modifiers: "ld.global.nc.v4.f32"
  std::vector<std::string> parts;  ///< opcode split at dots: {"ld","global","nc","v4","f32"}
  std::uint32_t guard = Operand::kNoRegister;
  bool guard_negated = false;
  std::vector<Operand> operands;              ///< destination(s) first, as written
  std::vector<std::uint32_t> branch_targets;  ///< brx.idx: indices into body, in order
  /// Code inlined from a toolkit or system header counts for the nearest call site that lies in
  /// another file (the .loc's chain of inlined_at).
  SourceLocation where;

  /// True when `modifier` is one of the parts after the first.
  [[nodiscard]] bool Has(std::string_view modifier) const;
};

/// A kernel (.entry) or a device function (.func). `call` keeps its operands as written:
/// (returns), function, (arguments) are kVector, kSymbol, kVector.
struct Function {
  std::string name;
  bool is_entry = false;
  bool is_declaration = false;  ///< no body in this module (vprintf, malloc, ...)
  std::vector<Parameter> parameters;
  std::vector<Parameter> returns;
  std::vector<Register> registers;    ///< those used in the body, of every scope
  std::vector<Variable> variables;    ///< .shared and .local of every scope of the body
  std::vector<Parameter> call_slots;  ///< .param variables declared in the body for calls, each
                                      ///< at its own offset
  /// Never empty for a definition: where control could fall off the end, Parse adds a ret, so
  /// every branch target is the index of an instruction.
  std::vector<Instruction> body;
  std::uint32_t max_ntid[3] = {0, 0, 0};  ///< .maxntid, 0 when absent
  std::uint32_t req_ntid[3] = {0, 0, 0};
  std::uint32_t min_ctas_per_sm = 0;
  std::uint32_t max_registers = 0;           ///< .maxnreg, 0 when absent
  std::uint32_t req_cluster[3] = {0, 0, 0};  ///< .reqnctapercluster, 0 when absent
  std::uint32_t max_cluster_ctas = 0;        ///< .maxclusterrank, 0 when absent
  bool explicit_cluster = false;             ///< .explicitcluster
  std::uint32_t ptx_line = 0;
};

struct Module {
  std::string label;  ///< what was parsed, for messages
  std::uint32_t version_major = 0, version_minor = 0;
  std::string target;               ///< "sm_90"
  std::vector<std::string> files;   ///< by .file index; index 0 unused unless declared
  std::vector<Variable> variables;  ///< module scope
  std::vector<Function> functions;

  [[nodiscard]] const Function* Find(std::string_view name) const;
};

/// Both dialects of nvcc 13 (NVVM 7.0.1 and 20.0.0) and clang's. Any byte sequence is safe to
/// pass. kParse with "<label>:<line>: what" when it is not PTX that this parser knows; opcodes are
/// not judged here, only syntax.
[[nodiscard]] Result<Module> Parse(std::string_view text, std::string label);

}  // namespace kernelpro::ptx
