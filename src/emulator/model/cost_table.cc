// SPDX-License-Identifier: Apache-2.0
#include "emulator/model/cost_table.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "emulator/model/model.h"
#include "emulator/ptx/module.h"

namespace kernelpro::model {
namespace {

/// Latency as a sum, so that one row serves every GPU.
struct Latency {
  double cycles = 0, alu = 0, fp64 = 0, sfu = 0, division = 0, shuffle = 0, barrier = 0, l2 = 0;
};

/// One row: all of `needs` must be among the modifiers ("64" and "16" stand for any type of that
/// width that is not floating point). First match wins.
struct Row {
  std::string_view base;
  std::vector<std::string_view> needs;
  OpCost cost;
  Latency latency;
};

constexpr Latency kAluLatency{.alu = 1};
constexpr Latency kNoLatency{};
constexpr bool kGuess = false;

/// Figures without kGuess are the prototype's, checked on the 73 kernels timed on an H200. Figures
/// with it come from the SASS that ptxas 13.0 emits for the instruction alone on sm_90 (counted on
/// the path that ordinary values take), from NVIDIA's throughput table, or are called a guess.
const std::vector<Row>& FloatRows() {
  static const std::vector<Row> kRows = {
      // f32 division family: MUFU, Newton steps and range checks; the slow path is not counted.
      {"div", {"rn", "f32"}, {.issue = 10, .fma = 8, .sfu = 1}, {.division = 1}},
      {"div",
       {"approx", "f32"},
       {.issue = 6, .fma = 4, .alu = 2, .sfu = 1},
       {.cycles = 16, .sfu = 1}},
      {"div", {"full", "f32"}, {.issue = 6, .fma = 4, .sfu = 1}, {.cycles = 16, .sfu = 1}},
      {"rcp", {"rn", "f32"}, {.issue = 9, .fma = 6, .sfu = 1}, {.division = 1}},
      {"sqrt", {"rn", "f32"}, {.issue = 9, .fma = 6, .sfu = 1}, {.division = 1}},
      // f64: MUFU.RCP64H/RSQ64H seed, then DFMA/DMUL steps in one chain (8 of them: two Newton
      // steps of two or three, the product and its correction), an exponent check and a branch.
      // 9 passes of the FP64 pipe stand for those and the DSETP of the check.
      {"div",
       {"f64"},
       {.issue = 16, .alu = 4, .sfu = 1, .fp64 = 9, .validated = kGuess},
       {.cycles = 10, .fp64 = 8, .sfu = 1}},
      {"rcp",
       {"rn", "f64"},
       {.issue = 10, .alu = 3, .sfu = 1, .fp64 = 6, .validated = kGuess},
       {.cycles = 10, .fp64 = 5, .sfu = 1}},
      {"sqrt",
       {"rn", "f64"},
       {.issue = 16, .alu = 4, .sfu = 1, .fp64 = 9, .validated = kGuess},
       {.cycles = 10, .fp64 = 8, .sfu = 1}},
      // rcp/rsqrt.approx.ftz.f64: one MUFU on the high word.
      {"rcp", {"f64"}, {.sfu = 1, .validated = kGuess}, {.sfu = 1}},
      {"rsqrt", {"f64"}, {.sfu = 1, .validated = kGuess}, {.sfu = 1}},
      // Without .ftz the MUFU is wrapped in scaling for denormal inputs (4 instructions).
      {"ex2", {"ftz", "f32"}, {.sfu = 1}, {.sfu = 1}},
      {"lg2", {"ftz", "f32"}, {.sfu = 1}, {.sfu = 1}},
      {"rcp", {"ftz", "f32"}, {.sfu = 1}, {.sfu = 1}},
      {"sqrt", {"ftz", "f32"}, {.sfu = 1}, {.sfu = 1}},
      {"rsqrt", {"ftz", "f32"}, {.sfu = 1}, {.sfu = 1}},
      {"ex2", {"f32"}, {.issue = 4, .fma = 2, .alu = 1, .sfu = 1}, {.cycles = 10, .sfu = 1}},
      {"lg2",
       {"f32"},
       {.issue = 4, .fma = 2, .alu = 1, .sfu = 1, .validated = kGuess},
       {.cycles = 10, .sfu = 1}},
      {"rcp", {"f32"}, {.issue = 4, .fma = 2, .alu = 1, .sfu = 1}, {.cycles = 10, .sfu = 1}},
      {"sqrt", {"f32"}, {.issue = 4, .fma = 2, .alu = 1, .sfu = 1}, {.cycles = 10, .sfu = 1}},
      {"rsqrt", {"f32"}, {.issue = 4, .fma = 2, .alu = 1, .sfu = 1}, {.cycles = 10, .sfu = 1}},
      // sin and cos multiply by 1/2pi first.
      {"sin", {}, {.issue = 2, .fma = 1, .sfu = 1, .validated = kGuess}, {.alu = 1, .sfu = 1}},
      {"cos", {}, {.issue = 2, .fma = 1, .sfu = 1, .validated = kGuess}, {.alu = 1, .sfu = 1}},
      {"ex2", {"f16x2"}, {.issue = 3, .alu = 1, .sfu = 2, .validated = kGuess}, {.sfu = 1}},
      {"tanh", {"f16x2"}, {.issue = 3, .alu = 1, .sfu = 2, .validated = kGuess}, {.sfu = 1}},
      {"ex2", {}, {.sfu = 1, .validated = kGuess}, {.sfu = 1}},
      {"tanh", {}, {.sfu = 1}, {.sfu = 1}},
      // DSETP, and the selects that min and max are made of.
      {"setp", {"f64"}, {.fp64 = 1, .validated = kGuess}, {.fp64 = 1}},
      {"set", {"f64"}, {.issue = 2, .alu = 1, .fp64 = 1, .validated = kGuess}, {.fp64 = 1}},
      {"min",
       {"f64"},
       {.issue = 5, .alu = 4, .fp64 = 1, .validated = kGuess},
       {.alu = 2, .fp64 = 1}},
      {"max",
       {"f64"},
       {.issue = 5, .alu = 4, .fp64 = 1, .validated = kGuess},
       {.alu = 2, .fp64 = 1}},
      {"selp", {"f64"}, {.issue = 2, .alu = 2, .validated = kGuess}, kAluLatency},
      {"abs", {"f64"}, {.alu = 1, .validated = kGuess}, kAluLatency},
      {"neg", {"f64"}, {.alu = 1, .validated = kGuess}, kAluLatency},
      {"fma", {"f64"}, {.fp64 = 1}, {.fp64 = 1}},
      {"mad", {"f64"}, {.fp64 = 1}, {.fp64 = 1}},
      {"mul", {"f64"}, {.fp64 = 1}, {.fp64 = 1}},
      {"add", {"f64"}, {.fp64 = 1}, {.fp64 = 1}},
      {"sub", {"f64"}, {.fp64 = 1}, {.fp64 = 1}},
      {"fma", {"f32"}, {.fma = 1}, kAluLatency},
      {"mad", {"f32"}, {.fma = 1}, kAluLatency},
      {"mul", {"f32"}, {.fma = 1}, kAluLatency},
      {"add", {"f32"}, {.fma = 1}, kAluLatency},
      {"sub", {"f32"}, {.fma = 1}, kAluLatency},
  };
  return kRows;
}

/// Half precision and conversions.
const std::vector<Row>& HalfAndConversionRows() {
  static const std::vector<Row> kRows = {
      // HFMA2 and its relatives run on the FP32 pipe, packed or not.
      {"fma", {"half"}, {.fma = 1, .validated = kGuess}, kAluLatency},
      {"mul", {"half"}, {.fma = 1, .validated = kGuess}, kAluLatency},
      {"add", {"half"}, {.fma = 1, .validated = kGuess}, kAluLatency},
      {"sub", {"half"}, {.fma = 1, .validated = kGuess}, kAluLatency},
      // Conversions with a 64-bit side run at 16 a cycle on the XU pipe; the pass through the FP64
      // pipe makes them as slow as they are where that pipe has 2 lanes (throughput table: 2).
      {"cvt", {"f64"}, {.sfu = 1, .fp64 = 1, .validated = kGuess}, {.fp64 = 1, .sfu = 1}},
      {"cvt", {"f32", "64"}, {.sfu = 1, .fp64 = 1, .validated = kGuess}, {.fp64 = 1, .sfu = 1}},
      // F2FP packs two, HADD2.F32 and shifts unpack: ordinary instructions.
      {"cvt", {"half"}, {.alu = 1, .validated = kGuess}, kAluLatency},
      {"cvt", {"fp8"}, {.alu = 1, .validated = kGuess}, kAluLatency},
      {"cvt", {"f32", "tf32"}, {.alu = 1, .validated = kGuess}, kAluLatency},
      // s32 and u32 to f32 is I2FP, an ordinary instruction, from sm_89 on; narrower integers too.
      {"cvt", {"from_int", "f32"}, {.alu = 1, .validated = kGuess}, kAluLatency},
      {"cvt", {"f32"}, {.sfu = 1}, {.cycles = 14}},
      {"cvt", {}, {.issue = 0.5, .alu = 0.5}, {.cycles = 4}},
  };
  return kRows;
}

const std::vector<Row>& IntegerRows() {
  static const std::vector<Row> kRows = {
      // 64-bit division calls a subroutine (87 static instructions): a guess of its usual path.
      {"div",
       {"64"},
       {.issue = 50, .imad = 20, .alu = 20, .sfu = 2, .validated = kGuess},
       {.cycles = 60, .alu = 30, .sfu = 2}},
      {"rem",
       {"64"},
       {.issue = 54, .imad = 22, .alu = 22, .sfu = 2, .validated = kGuess},
       {.cycles = 60, .alu = 32, .sfu = 2}},
      {"div", {}, {.issue = 20, .imad = 8, .alu = 8, .sfu = 1}, {.cycles = 60}},
      {"rem", {}, {.issue = 20, .imad = 8, .alu = 8, .sfu = 1}, {.cycles = 60}},
      {"mul", {"wide"}, {.imad = 1}, kAluLatency},
      {"mul", {"hi", "64"}, {.issue = 17, .imad = 8, .alu = 9, .validated = kGuess}, {.alu = 5}},
      {"mul", {"hi"}, {.imad = 2}, kAluLatency},
      {"mul", {"64"}, {.issue = 4, .imad = 4}, {.cycles = 9}},
      {"mul", {}, {.imad = 1}, kAluLatency},
      {"mad", {"wide"}, {.imad = 1}, kAluLatency},
      {"mad", {"hi", "64"}, {.issue = 18, .imad = 8, .alu = 10, .validated = kGuess}, {.alu = 5}},
      {"mad", {"64"}, {.issue = 4, .imad = 4, .validated = kGuess}, {.cycles = 9}},
      {"mad", {}, {.imad = 1}, kAluLatency},
      {"mul24", {}, {.imad = 1, .validated = kGuess}, kAluLatency},
      {"mad24", {}, {.imad = 1, .validated = kGuess}, kAluLatency},
      {"dp4a", {}, {.imad = 1, .validated = kGuess}, kAluLatency},
      {"dp2a", {}, {.imad = 1, .validated = kGuess}, kAluLatency},
      // Two words: add with carry is often fused into the address of IMAD.WIDE or LEA, hence 1.5.
      {"add", {"64"}, {.issue = 1.5, .alu = 1.5}, kAluLatency},
      {"sub", {"64"}, {.issue = 1.5, .alu = 1.5}, kAluLatency},
      {"shl", {"64"}, {.issue = 2, .alu = 2}, {.cycles = 6}},
      {"shr", {"64"}, {.issue = 2, .alu = 2}, {.cycles = 6}},
      {"and", {"64"}, {.issue = 2, .alu = 2, .validated = kGuess}, kAluLatency},
      {"or", {"64"}, {.issue = 2, .alu = 2, .validated = kGuess}, kAluLatency},
      {"xor", {"64"}, {.issue = 2, .alu = 2, .validated = kGuess}, kAluLatency},
      {"not", {"64"}, {.issue = 2, .alu = 2, .validated = kGuess}, kAluLatency},
      {"setp", {"64"}, {.issue = 2, .alu = 2, .validated = kGuess}, {.alu = 2}},
      {"selp", {"64"}, {.issue = 2, .alu = 2, .validated = kGuess}, kAluLatency},
      {"min", {"64"}, {.issue = 4, .alu = 4, .validated = kGuess}, {.alu = 3}},
      {"max", {"64"}, {.issue = 4, .alu = 4, .validated = kGuess}, {.alu = 3}},
      // FLO, BREV and POPC are XU instructions.
      {"popc", {}, {.sfu = 1, .validated = kGuess}, {.sfu = 1}},
      {"brev", {}, {.sfu = 1, .validated = kGuess}, {.sfu = 1}},
      {"clz", {}, {.issue = 2, .alu = 1, .sfu = 1, .validated = kGuess}, {.alu = 1, .sfu = 1}},
      {"bfind", {}, {.sfu = 1, .validated = kGuess}, {.sfu = 1}},
      {"bfe", {}, {.issue = 3, .alu = 3, .validated = kGuess}, {.alu = 2}},
      {"bfi", {}, {.issue = 3, .alu = 3, .validated = kGuess}, {.alu = 2}},
  };
  return kRows;
}

/// Across lanes and warps, and what costs nothing.
const std::vector<Row>& OtherRows() {
  static const std::vector<Row> kRows = {
      // Register moves vanish in register allocation, conversions of address spaces too.
      {"mov", {}, {.issue = 0}, kNoLatency},
      {"cvta", {}, {.issue = 0}, kNoLatency},
      {"isspacep", {}, {.alu = 1, .validated = kGuess}, kAluLatency},
      {"shfl", {}, {.lsu = 1}, {.shuffle = 1}},
      {"vote", {}, {.alu = 1, .validated = kGuess}, {.alu = 3}},
      {"activemask", {}, {.alu = 1, .validated = kGuess}, {.alu = 3}},
      {"elect", {}, {.alu = 2, .validated = kGuess}, {.alu = 3}},
      // One pass a distinct value in the worst case; a middle figure.
      {"match", {}, {.lsu = 8, .validated = kGuess}, {.shuffle = 2}},
      {"redux", {}, {.sfu = 1, .validated = kGuess}, {.shuffle = 1}},
      {"bar", {"warp"}, {.validated = kGuess}, {.alu = 1}},
      {"bar", {}, {.issue = 1}, {.barrier = 1}},
      {"barrier", {}, {.issue = 1}, {.barrier = 1}},
      // Waits until earlier writes are visible: about a round trip.
      {"membar", {"cta"}, {.validated = kGuess}, {.barrier = 1}},
      {"membar", {}, {.issue = 3, .validated = kGuess}, {.l2 = 1}},
      {"fence", {"cta"}, {.validated = kGuess}, {.barrier = 1}},
      {"fence", {"proxy"}, {.validated = kGuess}, {.barrier = 1}},
      {"fence", {}, {.issue = 3, .validated = kGuess}, {.l2 = 1}},
      {"mbarrier", {}, {.lsu = 1, .validated = kGuess}, {.barrier = 1}},
      {"nanosleep", {}, {.validated = kGuess}, {.cycles = 100}},
      {"movmatrix", {}, {.lsu = 1, .validated = kGuess}, {.shuffle = 1}},
      {"call", {}, {.issue = 8, .alu = 4, .validated = kGuess}, {.cycles = 30}},
  };
  return kRows;
}

bool IsHalf(std::string_view part) {
  return part == "f16" || part == "f16x2" || part == "bf16" || part == "bf16x2";
}

bool IsInteger(std::string_view part, std::string_view width) {
  return part.size() == width.size() + 1 && (part[0] == 's' || part[0] == 'u' || part[0] == 'b') &&
         part.substr(1) == width;
}

/// The last part of a cvt is the type it converts from.
bool FromInteger(const ptx::Instruction& op) {
  const std::string& last = op.parts.back();
  return last.size() >= 2 && (last[0] == 's' || last[0] == 'u');
}

bool Meets(const ptx::Instruction& op, std::string_view need) {
  const auto any = [&](auto&& matches) {
    return std::any_of(op.parts.begin() + 1, op.parts.end(), matches);
  };
  if (need == "half") {
    return any([](const std::string& part) { return IsHalf(part); });
  }
  if (need == "fp8") {
    return any([](const std::string& part) { return part == "e4m3x2" || part == "e5m2x2"; });
  }
  if (need == "from_int") {
    return FromInteger(op);
  }
  if (need == "64" || need == "16") {
    return any([&](const std::string& part) { return IsInteger(part, need); });
  }
  return any([&](const std::string& part) { return part == need; });
}

double Cycles(const Latency& latency, const GpuSpec& spec) {
  return latency.cycles + latency.alu * spec.latency_alu + latency.fp64 * spec.latency_fp64 +
         latency.sfu * spec.latency_sfu + latency.division * spec.latency_division +
         latency.shuffle * spec.latency_shuffle + latency.barrier * spec.latency_barrier +
         latency.l2 * spec.latency_l2;
}

const Row* FindRow(const std::vector<Row>& rows, const ptx::Instruction& op) {
  const auto found = std::ranges::find_if(rows, [&](const Row& row) {
    return row.base == op.parts.front() &&
           std::ranges::all_of(row.needs, [&](std::string_view need) { return Meets(op, need); });
  });
  return found == rows.end() ? nullptr : &*found;
}

/// "m16n8k16" -> 2 x 16 x 8 x 16.
std::optional<double> TileFlops(std::string_view part) {
  double product = 2;
  for (const char dimension : {'m', 'n', 'k'}) {
    if (part.empty() || part.front() != dimension) {
      return std::nullopt;
    }
    const std::size_t end = std::min(part.find_first_not_of("0123456789", 1), part.size());
    long long value = 0;
    if (!ParseInteger(part.substr(1, end - 1), &value) || value <= 0 || value > 1024) {
      return std::nullopt;
    }
    product *= static_cast<double>(value);
    part.remove_prefix(end);
  }
  return part.empty() ? std::optional(product) : std::nullopt;
}

/// mma.sync, wmma.mma and wgmma (whose tile four warps share). Rates relative to f16 are those of
/// the data sheets: tf32 half, 8-bit double, f64 on the FP64 pipe at twice the DFMA rate. Latency
/// is about that of a k16 HMMA on Hopper. None of it is checked against timed kernels.
OpCost TensorCost(const ptx::Instruction& op) {
  OpCost cost{.issue = 1, .latency = 33, .validated = kGuess};
  double flops = 0;
  for (const std::string& part : op.parts) {
    flops = TileFlops(part).value_or(flops);
  }
  if (Meets(op, "f64")) {
    constexpr double kFlopsPerDfma = 64;
    cost.fp64 = flops / kFlopsPerDfma / 2;
    return cost;
  }
  double rate = 1;
  for (const std::string& part : op.parts) {
    if (part == "tf32") {
      rate = 0.5;
    } else if (part == "s8" || part == "u8" || part == "e4m3" || part == "e5m2") {
      rate = 2;
    } else if (part == "s4" || part == "u4") {
      rate = 4;
    }
  }
  cost.tensor_flops = flops / rate / (op.parts.front() == "wgmma" ? 4 : 1);
  return cost;
}

bool IsTensor(const ptx::Instruction& op) {
  const std::string& base = op.parts.front();
  return base == "mma" ||
         ((base == "wmma" || base == "wgmma") && (Meets(op, "mma") || Meets(op, "mma_async")));
}

}  // namespace

OpCost CostOf(const ptx::Instruction& op, const GpuSpec& spec) {
  if (op.parts.empty()) {
    return OpCost{.issue = 0};
  }
  const std::string& base = op.parts.front();
  if ((base == "ld" || base == "st") && Meets(op, "param")) {
    return OpCost{.issue = 0};  // a constant-bank operand, or a register of the call
  }
  if (IsTensor(op)) {
    return TensorCost(op);
  }
  if (base == "ld" || base == "st" || base == "atom" || base == "red" || base == "cp" ||
      base == "ldmatrix" || base == "stmatrix" || base == "wmma" || base == "wgmma" ||
      base == "prefetch" || base == "ret" || base == "exit" || base == "trap") {
    return OpCost{.issue = 1};
  }
  if (base == "bra" || base == "brx") {
    // An unguarded branch is often laid out as a fall-through.
    return OpCost{.issue = op.guard == ptx::Operand::kNoRegister ? 0.5 : 1};
  }
  if (base != "mov" && Meets(op, "pred") && base != "vote") {
    return OpCost{.issue = 0.5, .alu = 0.5, .latency = 4};
  }
  for (const std::vector<Row>* rows :
       {&OtherRows(), &FloatRows(), &HalfAndConversionRows(), &IntegerRows()}) {
    if (const Row* row = FindRow(*rows, op)) {
      OpCost cost = row->cost;
      cost.latency = Cycles(row->latency, spec);
      return cost;
    }
  }
  return OpCost{.alu = 1, .latency = spec.latency_alu};
}

}  // namespace kernelpro::model
