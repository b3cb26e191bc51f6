// SPDX-License-Identifier: Apache-2.0
#include "sass/listing_parts.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace kernelpro::sass {

std::string Instruction::Text() const {
  std::string text = predicate;
  for (const std::string_view part : {std::string_view(opcode), std::string_view(operands)}) {
    if (!part.empty()) {
      text += text.empty() ? "" : " ";
      text += part;
    }
  }
  return text;
}

std::string_view Function::FileOf(const Instruction& instruction) const {
  return instruction.file == 0 || instruction.file > files.size() ? std::string_view()
                                                                  : files[instruction.file - 1];
}

int Function::Architecture() const {
  int number = 0;
  if (arch.starts_with("sm_")) {
    std::from_chars(arch.data() + 3, arch.data() + arch.size(), number);
  }
  return number;
}

std::optional<std::uint64_t> ParseHex(std::string_view text) {
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

bool SplitInstruction(std::string_view text, Instruction* instruction) {
  text = Trim(text);
  if (text.starts_with('@')) {
    const std::size_t space = text.find_first_of(" \t");
    instruction->predicate = std::string(text.substr(0, space));
    text = space == text.npos ? std::string_view() : Trim(text.substr(space));
  }
  const std::size_t space = text.find_first_of(" \t");
  instruction->opcode = std::string(text.substr(0, space));
  instruction->operands =
      space == text.npos ? std::string() : std::string(Trim(text.substr(space)));
  const char first = instruction->opcode.empty() ? '\0' : instruction->opcode[0];
  return first >= 'A' && first <= 'Z';
}

bool HasTarget(std::string_view opcode) {
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  for (const std::string_view known :
       {"BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "CALL", "BSSY", "WARPSYNC"}) {
    if (base == known) {
      return true;
    }
  }
  return false;
}

std::optional<std::uint64_t> NumericTarget(std::string_view operands) {
  const std::size_t at = operands.find_last_of(" ,");
  const std::string_view last = at == operands.npos ? operands : operands.substr(at + 1);
  return last.starts_with("0x") ? ParseHex(last) : std::nullopt;
}

bool IsToolkitHeader(std::string_view path) {
  const std::size_t include = path.find("/include/");
  return include != path.npos && (path.substr(0, include).find("/targets/") != path.npos ||
                                  path.substr(0, include).find("cuda") != path.npos);
}

std::string_view LooksLike(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kStarts = {{
      {"\xff\xfe", "text in UTF-16; convert it to UTF-8"},
      {"NVR", "a report of Nsight Compute"},
      {"SQLite format 3", "a database (nsys export)"},
      {"{\"", "JSON of another kind"},
  }};
  for (const auto& [start, kind] : kStarts) {
    if (text.starts_with(start)) {
      return kind;
    }
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kMarks = {{
      {"========= COMPUTE-SANITIZER", "the log of compute-sanitizer"},
      {"========= ERROR SUMMARY", "the log of compute-sanitizer"},
      {".address_size 64", "PTX, which the driver still compiles"},
      {"ptxas info", "the log of ptxas"},
      {"Resource usage:", "the output of cuobjdump -res-usage"},
      {"==PROF==", "the log of Nsight Compute"},
      {"\"ID\",\"", "a table of Nsight Compute"},
      {"cuda_gpu_kern_sum", "the output of nsys"},
      {"__global__", "CUDA source"},
  }};
  for (const auto& [mark, kind] : kMarks) {
    if (text.find(mark) != text.npos) {
      return kind;
    }
  }
  return {};
}

}  // namespace kernelpro::sass
