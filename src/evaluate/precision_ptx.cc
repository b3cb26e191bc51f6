// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/text.h"
#include "evaluate/precision.h"
#include "evaluate/precision_scan.h"

namespace kernelpro {
namespace {

/// Type words of PTX that say how precise a value is.
std::optional<Precision> TypeOf(std::string_view part) {
  const auto is = [part](auto... words) { return ((part == words) || ...); };
  if (is("f64")) {
    return Precision::kFp64;
  }
  if (is("f32", "f32x2")) {
    return Precision::kFp32;
  }
  if (is("tf32")) {
    return Precision::kTf32;
  }
  if (is("bf16", "bf16x2")) {
    return Precision::kBf16;
  }
  if (is("f16", "f16x2")) {
    return Precision::kFp16;
  }
  if (part.starts_with("e4m3") || part.starts_with("e5m2") || part.starts_with("ue8m0")) {
    return Precision::kFp8;
  }
  if (part.starts_with("e2m1") || part.starts_with("e2m3") || part.starts_with("e3m2")) {
    return Precision::kFp4;
  }
  return std::nullopt;
}

bool IsSmallInteger(std::string_view part) {
  return part == "s8" || part == "u8" || part == "s4" || part == "u4" || part == "b1";
}

/// Instructions that round: the others move, compare or choose.
bool IsArithmetic(std::string_view base) {
  constexpr std::string_view kBases[] = {"add", "sub",   "mul", "mad", "fma", "div", "sqrt",
                                         "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"};
  return std::ranges::find(kBases, base) != std::end(kBases);
}

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// The text without comments and without what stands in quotes.
std::string WithoutComments(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t at = 0;
  const auto skip_past = [&](std::string_view end, char left) {
    const std::size_t found = text.find(end, at);
    at = found == text.npos ? text.size() : found + end.size();
    out += left;
  };
  while (at < text.size()) {
    if (text.substr(at, 2) == "//") {
      skip_past("\n", '\n');
    } else if (text.substr(at, 2) == "/*") {
      at += 2;
      skip_past("*/", ' ');
    } else if (text[at] == '"') {
      ++at;
      skip_past("\"", ' ');
    } else {
      out += text[at++];
    }
  }
  return out;
}

/// Without the directives that end with their line and not with a semicolon.
std::string WithoutLineDirectives(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const std::string_view line : Lines(text)) {
    const std::string_view trimmed = Trim(line);
    const bool ends_here = std::ranges::any_of(
        std::initializer_list<std::string_view>{".loc", ".file", ".version", ".target",
                                                ".address_size", ".section"},
        [trimmed](std::string_view directive) { return trimmed.starts_with(directive); });
    if (!ends_here) {
      out += line;
      out += '\n';
    }
  }
  return out;
}

class PtxScanner {
 public:
  explicit PtxScanner(const Task& task) : found_(task) {}

  ArithmeticUses Scan(std::string_view ptx) {
    const std::string text = WithoutLineDirectives(WithoutComments(ptx));
    const std::string_view all = text;
    for (std::size_t start = 0; start < all.size();) {
      const std::size_t end = EndOfStatement(all, start);
      Statement(all.substr(start, end - start));
      start = end + 1;
    }
    return found_.Take();
  }

 private:
  /// At a semicolon, at the colon of a label, or at a brace that opens or closes a block; those of
  /// `mov.b32 %r1, {%rs1, %rs2};` are an operand's: something stands in front that is no header.
  static std::size_t EndOfStatement(std::string_view text, std::size_t start) {
    int vector = 0;
    bool empty = true;
    bool header = false;
    std::size_t end = start;
    for (; end < text.size() && text[end] != ';'; ++end) {
      const char c = text[end];
      if (c == ':' && end + 1 < text.size() && IsSpace(text[end + 1])) {
        return end;
      }
      if (c == '{') {
        if (empty || header) {
          return end;
        }
        ++vector;
      } else if (c == '}' && --vector < 0) {
        return end;
      }
      header = header ||
               (c == '.' && (text.substr(end, 6) == ".entry" || text.substr(end, 5) == ".func"));
      empty = empty && IsSpace(c);
    }
    return end;
  }

  static std::string_view Word(std::string_view* text) {
    while (!text->empty() && IsSpace(text->front())) {
      text->remove_prefix(1);
    }
    std::size_t end = 0;
    while (end < text->size() && !IsSpace((*text)[end]) && (*text)[end] != '(') {
      ++end;
    }
    const std::string_view word = text->substr(0, end);
    text->remove_prefix(end);
    return word;
  }

  void Statement(std::string_view text) {
    std::string_view word = Word(&text);
    while (word.starts_with('@') || word == ".visible" || word == ".weak" || word == ".extern") {
      word = Word(&text);
    }
    if (word == ".entry" || word == ".func") {
      rounded_.clear();
      // A .func may have its results in front of its name.
      while (!text.empty() && (IsSpace(text.front()) || text.front() == '(')) {
        const bool results = text.front() == '(';
        text.remove_prefix(results ? std::min(text.size(), text.find(')') + 1) : 1);
      }
      kernel_ = Word(&text);
    } else if (!word.empty() && word[0] != '.' && word[0] != '%') {
      Instruction(word, text);
    }
  }

  void Instruction(std::string_view opcode, std::string_view operands) {
    const std::vector<std::string_view> parts = Parts(opcode);
    const auto has = [&parts](std::string_view part) {
      return std::ranges::find(parts, part) != parts.end();
    };
    const std::string_view base = parts[0];
    if (has("approx")) {
      found_.AddApproximate(opcode);
    }
    if (base == "mma" || ((base == "wgmma" || base == "wmma" || base == "tcgen05") &&
                          (has("mma") || has("mma_async")))) {
      Matrix(parts, opcode);
    } else if (base == "cvt") {
      Convert(parts, opcode, operands);
      return;
    } else if (base == "dp4a" || base == "dp2a") {
      found_.Add(Precision::kInt8, opcode, kernel_);
    } else if (IsArithmetic(base) || ((base == "red" || base == "atom") && has("add"))) {
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (const auto type = TypeOf(*part)) {
          found_.Add(*type, opcode, kernel_);
          break;
        }
      }
    }
    FollowRounded(base, opcode, operands);
  }

  void Matrix(const std::vector<std::string_view>& parts, std::string_view opcode) {
    std::vector<Precision> types;
    for (const std::string_view part : parts) {
      if (const auto type = TypeOf(part)) {
        types.push_back(*type);
      } else if (IsSmallInteger(part) || part == "kind::i8") {
        found_.Add(Precision::kInt8, opcode, kernel_);
        return;
      } else if (part.starts_with("kind::")) {
        types = {Precision::kFp32, part == "kind::tf32"             ? Precision::kTf32
                                   : part == "kind::f16"            ? Precision::kFp16
                                   : part.find("mxf4") != part.npos ? Precision::kFp4
                                                                    : Precision::kFp8};
        break;
      }
    }
    if (types.empty()) {
      return;
    }
    // wmma with half operands names its sums only: wmma.mma...f32.f32.
    const bool implied = parts[0] == "wmma" && types.size() == 2;
    const Precision operand =
        implied ? Precision::kFp16 : types[std::min<std::size_t>(1, types.size() - 1)];
    found_.AddMatrix(operand, types[0] <= Precision::kFp32, opcode, kernel_);
  }

  void Convert(const std::vector<std::string_view>& parts, std::string_view opcode,
               std::string_view operands) {
    std::vector<Precision> types;
    for (const std::string_view part : parts) {
      if (const auto type = TypeOf(part)) {
        types.push_back(*type);
      }
    }
    if (types.size() < 2) {
      return;
    }
    const Precision to = types[types.size() - 2];
    const Precision from = types.back();
    if (to > Precision::kFp32 && from < to) {
      if (!found_.Declares(to)) {
        found_.Add(to, opcode, kernel_, "rounds values in between");
      } else if (const auto registers = Registers(operands); !registers.empty()) {
        rounded_.emplace(registers.front());
      }
      return;
    }
    if (from > Precision::kFp32 && AnyRounded(operands)) {
      found_.Add(from, opcode, kernel_, "computes on values that were rounded in between");
    }
  }

  /// Values rounded to a declared narrow type may be stored to global memory; computing on them, or
  /// keeping them in shared memory, is narrow arithmetic.
  void FollowRounded(std::string_view base, std::string_view opcode, std::string_view operands) {
    if (rounded_.empty() || !AnyRounded(operands)) {
      return;
    }
    const std::vector<std::string_view> parts = Parts(opcode);
    const bool shared = std::ranges::any_of(
        parts, [](std::string_view part) { return part.starts_with("shared"); });
    if (base == "mov" || base == "prmt" || base == "selp" || base == "shl" || base == "or") {
      for (const std::string_view name : Registers(operands.substr(0, Destination(operands)))) {
        rounded_.emplace(name);
      }
    } else if (base == "mma" || base == "wgmma" || base == "wmma" ||
               ((base == "st" || base == "stmatrix") && shared)) {
      const Precision narrow =
          found_.Declares(Precision::kFp16) ? Precision::kFp16 : Precision::kBf16;
      found_.Add(narrow, opcode, kernel_, "computes on values that were rounded in between");
    }
  }

  /// Length of the first operand: up to a comma outside braces.
  static std::size_t Destination(std::string_view operands) {
    int depth = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      depth += operands[i] == '{' ? 1 : operands[i] == '}' ? -1 : 0;
      if (operands[i] == ',' && depth == 0) {
        return i;
      }
    }
    return operands.size();
  }

  static std::vector<std::string_view> Registers(std::string_view operands) {
    std::vector<std::string_view> names;
    for (std::size_t at = operands.find('%'); at != operands.npos;) {
      std::size_t end = at + 1;
      while (end < operands.size() && !IsSpace(operands[end]) &&
             std::string_view(",;{}[]()+|").find(operands[end]) == std::string_view::npos) {
        ++end;
      }
      names.push_back(operands.substr(at, end - at));
      at = operands.find('%', end);
    }
    return names;
  }

  [[nodiscard]] bool AnyRounded(std::string_view operands) const {
    return std::ranges::any_of(Registers(operands), [this](std::string_view name) {
      return rounded_.contains(std::string(name));
    });
  }

  UseCollector found_;
  std::string kernel_;
  std::unordered_set<std::string> rounded_;  ///< registers of this function
};

}  // namespace

ArithmeticUses FindInPtx(std::string_view ptx, const Task& task) {
  return PtxScanner(task).Scan(ptx);
}

}  // namespace kernelpro
