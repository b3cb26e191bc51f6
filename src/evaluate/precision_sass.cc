// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "evaluate/precision.h"
#include "evaluate/precision_scan.h"

namespace kernelpro {
namespace {

/// The machine instruction of a line, without address comment and guard; empty when it has none.
std::string_view InstructionIn(std::string_view line) {
  line = Trim(line);
  if (!line.starts_with("/*")) {
    return {};
  }
  const std::size_t end = line.find("*/");
  if (end == line.npos) {
    return {};
  }
  line = Trim(line.substr(end + 2));
  if (line.starts_with('@')) {
    const std::size_t space = line.find(' ');
    line = space == line.npos ? std::string_view() : Trim(line.substr(space));
  }
  return line.substr(0, line.find(';'));
}

class SassScanner {
 public:
  explicit SassScanner(const Task& task) : found_(task) {}

  ArithmeticUses Scan(std::string_view sass) {
    for (const std::string_view line : Lines(sass)) {
      if (const std::size_t at = line.find("Function : "); at != line.npos) {
        kernel_ = Trim(line.substr(at + 11));  // cuobjdump
      } else if (const std::string_view text = Trim(line);
                 text.starts_with(".text.") && text.ends_with(':')) {
        kernel_ = text.substr(6, text.size() - 7);  // nvdisasm
      } else if (const std::string_view instruction = InstructionIn(line); !instruction.empty()) {
        const std::size_t space = instruction.find(' ');
        Instruction(instruction.substr(0, space),
                    space == instruction.npos ? "" : instruction.substr(space));
      }
    }
    return found_.Take();
  }

 private:
  void Instruction(std::string_view opcode, std::string_view operands) {
    const std::vector<std::string_view> parts = Parts(opcode);
    const auto has = [&parts](std::string_view part) {
      return std::ranges::find(parts, part) != parts.end();
    };
    const std::string_view base = parts[0];
    const auto is = [base](auto... words) { return ((base == words) || ...); };
    if (is("HMMA", "HGMMA", "UTCHMMA")) {
      const Precision operand = has("TF32")   ? Precision::kTf32
                                : has("BF16") ? Precision::kBf16
                                              : Precision::kFp16;
      found_.AddMatrix(operand, has("F32"), opcode, kernel_);
    } else if (is("QMMA", "QGMMA", "UTCQMMA")) {
      found_.Add(Precision::kFp8, opcode, kernel_);
    } else if (is("OMMA", "UTCOMMA")) {
      found_.Add(Precision::kFp4, opcode, kernel_);
    } else if (is("IMMA", "IGMMA", "BMMA", "UTCIMMA", "IDP")) {
      found_.Add(Precision::kInt8, opcode, kernel_);
    } else if (is("DMMA", "DADD", "DMUL", "DFMA")) {
      found_.Add(Precision::kFp64, opcode, kernel_);
    } else if (is("HADD2", "HMUL2", "HFMA2")) {
      Packed(has, opcode, operands);
    } else if (is("F2F", "F2FP") && parts.size() > 1) {
      Rounding(parts[1], opcode);
    }
  }

  void Rounding(std::string_view type, std::string_view opcode) {
    const Precision to = type == "F16"                      ? Precision::kFp16
                         : type == "BF16"                   ? Precision::kBf16
                         : type == "TF32"                   ? Precision::kTf32
                         : type == "E4M3" || type == "E5M2" ? Precision::kFp8
                                                            : Precision::kExact;
    if (to != Precision::kExact && !found_.Declares(to)) {
      found_.Add(to, opcode, kernel_, "rounds values in between");
    }
  }

  /// Two things look like half arithmetic and are none: HFMA2 R1, -RZ, RZ, 1, 2 loads a constant,
  /// and HADD2.F32 R1, -RZ, R2.H0_H0 widens a half.
  template <class Has>
  void Packed(const Has& has, std::string_view opcode, std::string_view operands) {
    if (has("F32") || operands.find("RZ,") != operands.npos) {
      return;
    }
    const bool brain = has("BF16_V2") || has("BF16");
    found_.Add(brain ? Precision::kBf16 : Precision::kFp16, opcode, kernel_);
  }

  UseCollector found_;
  std::string_view kernel_;
};

}  // namespace

ArithmeticUses FindInSass(std::string_view sass, const Task& task) {
  return SassScanner(task).Scan(sass);
}

}  // namespace kernelpro
