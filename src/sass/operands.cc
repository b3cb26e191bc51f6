// SPDX-License-Identifier: Apache-2.0
#include "sass/operands.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/text.h"
#include "sass/listing_parts.h"
#include "sass/matrix_shape.h"
#include "sass/opcode.h"

namespace kernelpro::sass {
namespace {

constexpr std::size_t kMostOperands = 64;  // The largest real instruction has about ten.

enum class Bank : std::uint8_t { kNone, kGeneral, kUniform, kPredicate, kUniformPredicate };

/// A register name at the start of a text, and how long the name is.
struct Name {
  Bank bank = Bank::kNone;
  unsigned index = 0;
  bool constant = false;  ///< RZ, URZ, PT, UPT
  std::size_t length = 0;
};

Name NameAt(std::string_view text) {
  Name name;
  const bool uniform = text.starts_with('U');
  const std::size_t at = uniform ? 1 : 0;
  if (text.size() < at + 2 || (text[at] != 'R' && text[at] != 'P')) {
    return name;
  }
  const bool predicate = text[at] == 'P';
  const char next = text[at + 1];
  if (next == (predicate ? 'T' : 'Z')) {
    name.constant = true;
    name.length = at + 2;
  } else {
    const char* begin = text.data() + at + 1;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), name.index);
    if (error != std::errc() || name.index > (predicate ? 7U : 254U)) {
      return name;
    }
    name.length = at + 1 + static_cast<std::size_t>(end - begin);
  }
  const char after = name.length < text.size() ? text[name.length] : ' ';
  if ((after >= 'A' && after <= 'Z') || (after >= '0' && after <= '9') || after == '_') {
    return name;  // SR_TID and the like never come here; "R2UR" would.
  }
  name.bank = predicate ? (uniform ? Bank::kUniformPredicate : Bank::kPredicate)
                        : (uniform ? Bank::kUniform : Bank::kGeneral);
  return name;
}

bool IsPredicate(Bank bank) {
  return bank == Bank::kPredicate || bank == Bank::kUniformPredicate;
}

void Put(const Name& name, unsigned count, std::vector<Slot>* slots) {
  if (name.constant || name.bank == Bank::kNone) {
    return;
  }
  const unsigned base = name.bank == Bank::kGeneral     ? 0U
                        : name.bank == Bank::kUniform   ? kUniformSlots
                        : name.bank == Bank::kPredicate ? kPredicateSlots
                                                        : kUniformPredicateSlots;
  const unsigned limit = IsPredicate(name.bank) ? 8U : 255U;
  for (unsigned i = 0; i < count && name.index + i < limit; ++i) {
    slots->push_back(static_cast<Slot>(base + name.index + i));
  }
}

/// An operand without its signs: "-|R2|.reuse" -> R2 and the text behind it.
struct Operand {
  std::string_view text;  ///< without signs
  Name name;
  bool bracket = false;  ///< an address, a constant bank or a descriptor
  bool pair = false;     ///< R2.64
  bool reuse = false;
};

Operand Parse(std::string_view text) {
  Operand operand;
  text = text.substr(std::min(text.size(), text.find_first_not_of("-+|!~ ")));
  operand.text = text;
  operand.bracket = text.find('[') != text.npos;
  if (operand.bracket) {
    return operand;
  }
  operand.name = NameAt(text);
  if (operand.name.bank != Bank::kNone) {
    const std::string_view rest = text.substr(operand.name.length);
    operand.pair = rest.find(".64") != rest.npos;
    operand.reuse = rest.find(".reuse") != rest.npos;
  }
  return operand;
}

/// How many registers each operand takes.
struct Widths {
  unsigned writes = 1;
  std::array<unsigned, 3> reads = {1, 1, 1};  ///< sources in order, memory left out
};

bool IsDouble(const Opcode& op) {
  return op.Is("DADD", "DMUL", "DFMA", "DSETP", "DMNMX") ||
         op.Is("FFMA2", "FADD2", "FMUL2", "FMNMX2");
}

Widths OfConversion(const Opcode& op) {
  // F2F.F32.F64: to, from. F2I.S64.F64, I2F.F64.S64 alike; the default is 32 bit.
  const auto wide = [](std::string_view type) {
    return type == "F64" || type == "S64" || type == "U64";
  };
  std::size_t found = 0;
  Widths widths;
  for (std::size_t i = 0; i < 6 && !op.Modifier(i).empty(); ++i) {
    found += wide(op.Modifier(i)) ? 1U : 0U;
  }
  if (found == 0) {
    return widths;
  }
  const bool to_wide = op.Is("F2F", "FRND") ? wide(op.Modifier(0))
                       : op.Is("I2F")       ? op.Has("F64")
                                            : op.Has("S64") || op.Has("U64");
  widths.writes = to_wide ? 2 : 1;
  widths.reads[0] = found > 1 || !to_wide || op.Is("FRND") ? 2 : 1;
  return widths;
}

unsigned TensorMemoryRegisters(const Opcode& op) {
  unsigned times = 1, per = 1;
  for (std::size_t i = 0; i < 4 && !op.Modifier(i).empty(); ++i) {
    const std::string_view word = op.Modifier(i);
    if (word.starts_with('x')) {
      std::from_chars(word.data() + 1, word.data() + word.size(), times);
    }
    per = word.ends_with("dp256bit") ? 4U : word.ends_with("dp128bit") ? 2U : per;
  }
  return std::clamp(times * per, 1U, 255U);
}

Widths WidthsOf(const Opcode& op) {
  if (IsMma(op)) {
    const MatrixRegisters m = MatrixRegistersOf(op);
    return {.writes = m.d, .reads = {m.a, m.b, m.c}};
  }
  if (IsDouble(op)) {
    return {.writes = 2, .reads = {2, 2, 2}};
  }
  if (op.Is("IMAD", "UIMAD") && op.Has("WIDE")) {
    return {.writes = 2, .reads = {1, 1, 2}};
  }
  if (op.Is("F2F", "F2I", "I2F", "FRND")) {
    return OfConversion(op);
  }
  if (op.Is("CS2R")) {
    return {.writes = op.Has("32") ? 1U : 2U};
  }
  if (op.Is("LDTM", "STTM")) {
    const unsigned n = TensorMemoryRegisters(op);
    return {.writes = n, .reads = {n, n, n}};
  }
  if (op.Is("LDSM", "STSM", "LDG", "LD", "LDS", "LDL", "LDC", "ULDC", "LDCU", "STG", "ST", "STS",
            "STL", "ATOM", "ATOMG", "ATOMS", "RED", "REDG", "LDGMC", "STAS", "TEX", "TLD",
            "TLD4")) {
    const unsigned n = std::max(1U, BytesPerLane(op) / 4);
    return {.writes = n, .reads = {n, n, n}};
  }
  if (op.Has("64") && !op.Is("SYNCS", "SHF", "USHF")) {
    return {.writes = 2, .reads = {2, 2, 2}};
  }
  return {};
}

bool WritesNothing(const Opcode& op) {
  return op.Is("STG", "ST", "STS", "STL", "STSM", "STTM", "STAS", "RED", "REDG", "LDGSTS", "BAR",
               "BRA", "BRX", "JMP", "JMX", "CALL", "RET", "EXIT", "BSSY", "BSYNC", "BREAK") ||
         op.Is("DEPBAR", "LDGDEPBAR", "MEMBAR", "NANOSLEEP", "CCTL", "CCTLL", "UTMALDG", "UTMASTG",
               "UTMAREDG", "UTMAPF", "UTMACCTL", "UBLKCP", "UBLKRED", "UBLKPF", "UTCBAR", "UTCCP",
               "USETMAXREG", "FENCE", "ERRBAR", "KILL", "WARPSYNC", "BPT") ||
         op.Is("WARPGROUP", "ARRIVES", "UCGABAR_ARV", "UCGABAR_WAIT", "SUST", "SURED", "YIELD",
               "NOP", "R2B", "UTCSHIFT") ||
         (op.base().starts_with("UTC") && op.base().ends_with("MMA"));
}

class Reader {
 public:
  explicit Reader(const Instruction& instruction)
      : instruction_(instruction), op_(instruction.opcode), widths_(WidthsOf(op_)) {}

  Access Read() {
    Guard();
    std::vector<std::string_view> parts = SplitOperands(instruction_.operands);
    std::size_t at = 0;
    if (!WritesNothing(op_)) {
      at = Destinations(parts);
    }
    for (; at < parts.size(); ++at) {
      Source(parts[at]);
    }
    if (op_.Is("R2P")) {
      Put({.bank = Bank::kPredicate}, 7, &access_.writes);
    } else if (op_.Is("P2R")) {
      Put({.bank = Bank::kPredicate}, 7, &access_.reads);
    }
    return std::move(access_);
  }

 private:
  void Guard() {
    std::string_view guard = instruction_.predicate;
    if (guard.empty()) {
      return;
    }
    guard.remove_prefix(1);
    const bool negated = guard.starts_with('!');
    const Operand operand = Parse(guard);
    access_.guarded = !operand.name.constant || negated;  // @!PT never happens.
    Put(operand.name, 1, &access_.reads);
  }

  /// A predicate or two, a register, a predicate or two: as many as stand at the front.
  std::size_t Destinations(const std::vector<std::string_view>& parts) {
    std::size_t at = 0;
    const auto predicate = [&](std::size_t i) {
      return i < parts.size() && IsPredicate(Parse(parts[i]).name.bank) &&
             !parts[i].starts_with('!');
    };
    const std::size_t most = op_.Is("PLOP3", "UPLOP3", "ISETP", "UISETP", "FSETP", "DSETP",
                                    "HSETP2", "PSETP", "UPSETP", "VSETP", "UFSETP")
                                 ? 2
                                 : 1;
    if (predicate(0)) {
      for (; at < most && predicate(at); ++at) {
        Put(Parse(parts[at]).name, 1, &access_.writes);
      }
      if (most == 2 || op_.Is("FCHK")) {
        return at;
      }
    }
    if (at >= parts.size()) {
      return at;
    }
    const Operand first = Parse(parts[at]);
    if (first.bracket || first.name.bank == Bank::kNone || IsPredicate(first.name.bank)) {
      return at;
    }
    Put(first.name, first.pair ? std::max(2U, widths_.writes) : widths_.writes, &access_.writes);
    ++at;
    // Carries: IADD3 R2, P0, P1, R4, ...; ISETP-like ends are sources and stand behind registers.
    const std::size_t carries = op_.Is("IADD3", "UIADD3") ? 2 : CarriesOne() ? 1 : 0;
    for (std::size_t i = 0; i < carries && predicate(at); ++i, ++at) {
      Put(Parse(parts[at]).name, 1, &access_.writes);
    }
    return at;
  }

  [[nodiscard]] bool CarriesOne() const {
    return op_.Is("LEA", "ULEA", "IMAD", "UIMAD", "VOTE", "VOTEU", "ELECT", "MATCH", "IADD",
                  "VIADD", "UTCATOMSWS", "B2R");
  }

  void Source(std::string_view text) {
    const Operand operand = Parse(text);
    if (operand.bracket) {
      InBrackets(operand.text);
      return;
    }
    if (operand.name.bank == Bank::kNone) {
      ++source_;  // An immediate takes the place of a source register too.
      return;
    }
    const bool general = operand.name.bank == Bank::kGeneral || operand.name.bank == Bank::kUniform;
    unsigned count = 1;
    if (general) {
      count = operand.pair ? 2U : widths_.reads[std::min<std::size_t>(source_, 2)];
      ++source_;
      if (op_.Is("BRX", "RET", "CALL", "JMX", "JMP")) {
        count = 2;
      }
    }
    Put(operand.name, count, &access_.reads);
    if (general) {
      Put(operand.name, count, &access_.data);
    }
    if (operand.name.bank == Bank::kGeneral && !operand.reuse) {
      Put(operand.name, 1, &access_.plain);
    }
  }

  /// Every register inside [...]: pairs where .64 says so, and for descriptors.
  void InBrackets(std::string_view text) {
    const bool matrix = op_.Is("HGMMA", "QGMMA", "IGMMA", "BGMMA");
    // A constant operand takes the place of a source register.
    source_ +=
        text.starts_with("c[") || text.starts_with("cx[") || text.starts_with("gdesc") ? 1 : 0;
    for (std::size_t at = 0; at < text.size();) {
      const bool starts = at == 0 || text[at - 1] == '[' || text[at - 1] == '+' ||
                          text[at - 1] == '-' || text[at - 1] == ' ';
      const Name name = starts ? NameAt(text.substr(at)) : Name();
      if (name.bank == Bank::kNone) {
        ++at;
        continue;
      }
      const std::string_view rest = text.substr(at + name.length);
      const bool descriptor =
          name.bank == Bank::kUniform && at >= 5 && text.substr(0, at).ends_with("desc[");
      const bool bank = text.substr(0, at).ends_with("cx[");
      const unsigned count = descriptor && matrix ? (access_.data.empty() ? 4U : 2U)
                             : rest.starts_with(".64") || descriptor || bank ? 2U
                                                                             : 1U;
      Put(name, count, &access_.reads);
      Put(name, count, &access_.address);
      at += name.length;
    }
  }

  const Instruction& instruction_;
  Opcode op_;
  Widths widths_;
  Access access_;
  std::size_t source_ = 0;
};

}  // namespace

std::vector<std::string_view> SplitOperands(std::string_view operands) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= operands.size() && parts.size() < kMostOperands; ++i) {
    const char c = i < operands.size() ? operands[i] : ',';
    depth += c == '[' || c == '{' || c == '(' ? 1 : 0;
    depth -= (c == ']' || c == '}' || c == ')') && depth > 0 ? 1 : 0;
    if ((c == ',' && depth == 0) || i == operands.size()) {
      const std::string_view part = Trim(operands.substr(start, i - start));
      if (!part.empty()) {
        parts.push_back(part);
      }
      start = i + 1;
    }
  }
  return parts;
}

Access AccessOf(const Instruction& instruction) {
  return Reader(instruction).Read();
}

std::optional<Address> AddressOf(const Instruction& instruction) {
  std::string_view found;
  for (const std::string_view part : SplitOperands(instruction.operands)) {
    // Of desc[UR4][R2.64+0x10] the last bracket is the address; c[0x0][0x10] is a constant.
    const std::size_t open = part.rfind('[');
    if (open != part.npos && part.ends_with(']') && !part.starts_with("c[") &&
        !part.starts_with("cx[")) {
      found = part.substr(open + 1, part.size() - open - 2);
    }
  }
  if (found.empty()) {
    return std::nullopt;
  }
  Address address;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= found.size(); ++i) {
    if (i < found.size() && (found[i] != '+' && found[i] != '-')) {
      continue;
    }
    const std::string_view term = Trim(found.substr(start, i - start));
    const bool minus = start > 0 && found[start - 1] == '-';
    start = i + 1;
    std::vector<Slot> slot;
    if (const Name name = NameAt(term); name.bank != Bank::kNone) {
      Put(name, 1, &slot);
      if (!slot.empty()) {
        (name.bank == Bank::kUniform ? address.uniform : address.base) = slot[0];
      }
    } else if (const auto value = term.starts_with("0x") ? ParseHex(term) : std::nullopt) {
      // "+-0x10" has an empty term in between; the sign that counts is the last one.
      address.offset = static_cast<std::int64_t>(minus ? 0 - *value : *value);
    }
  }
  return address;
}

}  // namespace kernelpro::sass
