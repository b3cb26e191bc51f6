// SPDX-License-Identifier: Apache-2.0
#include "sass/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "sass/listing_parts.h"

namespace kernelpro::sass {
namespace {

constexpr std::uint64_t kInstructionBytes = 16;

/// A branch to a label that has no address yet.
struct Pending {
  std::size_t instruction = 0;
  std::string label;
};

class TextReader {
 public:
  TextReader(std::string_view text, std::string_view label) : text_(text), label_(label) {}

  Result<Listing> Read() {
    std::size_t at = 0;
    while (at < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      ++line_;
      KP_RETURN_IF_ERROR(Line(Trim(text_.substr(at, end - at))));
      at = end + 1;
    }
    EndFunction();
    EndBinary();
    if (!listing_.functions.empty()) {
      return std::move(listing_);
    }
    if (!old_arch_.empty()) {
      return Fail(
          ErrorCode::kParse,
          fmt::format("{}: code for {}: only sm_70 and later can be read", label_, old_arch_));
    }
    if (listing_.empty_binaries > 0 || saw_header_) {
      return Fail(
          ErrorCode::kNotFound,
          fmt::format("{}: the listing holds no function; was the GPU code kept as PTX only "
                      "(-arch=compute_XX)?",
                      label_));
    }
    const std::string_view kind = LooksLike(text_);
    return Fail(ErrorCode::kParse,
                fmt::format("{}: not a listing of machine code{}{}; make one with "
                            "`cuobjdump -sass FILE` or `nvdisasm -json FILE.cubin`",
                            label_, kind.empty() ? "" : ": it looks like ", kind));
  }

 private:
  [[nodiscard]] Error Odd(std::string_view what) const {
    return Fail(ErrorCode::kParse, fmt::format("{}:{}: {}", label_, line_, what));
  }

  [[nodiscard]] Status Line(std::string_view line) {
    if (line.empty() || (old_code_ && !line.starts_with("code for sm_"))) {
      return Ok();
    }
    if (line.starts_with("/*")) {
      return Comment(line);
    }
    if (line.starts_with("//## File ")) {
      SourceLine(line);
      return Ok();
    }
    if (line.starts_with("code for sm_")) {
      EndFunction();
      EndBinary();
      SetArch(line.substr(9));
      open_binary_ = !old_code_;
      return Ok();
    }
    if (line.starts_with(".target") && line.find("sm_") != line.npos) {
      SetArch(line.substr(line.find("sm_")));
      return Ok();
    }
    if (line.starts_with("Fatbin ptx code")) {
      EndFunction();
      saw_header_ = true;
      return Ok();
    }
    if (line.starts_with(".headerflags")) {
      saw_header_ = true;
      HeaderFlags(line);
      return Ok();
    }
    if (line.starts_with("Function :")) {
      return StartFunction(Trim(line.substr(10)));
    }
    if (line.ends_with(':')) {
      return Label(line.substr(0, line.size() - 1));
    }
    if (LooksLikeAssemblerInput(line)) {
      return Odd(
          "assembler input (control codes in front of the instructions), not a dump; "
          "assemble it and dump the result with `cuobjdump -sass`");
    }
    return Ok();
  }

  /// "--:-:0:-:2   LDS vA, [RZ+0x100];" (turingas) or "[B------:R-:W0:-:S02] ..." (CuAssembler).
  static bool LooksLikeAssemblerInput(std::string_view line) {
    if (line.starts_with("[B") && line.find(":R") < 10 && line.find(":S") != line.npos) {
      return true;
    }
    const auto field = [](char c) {
      return c == '-' || c == 'Y' || c == 'y' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    };
    constexpr std::string_view kForm = "xx:x:x:x:x";
    if (line.size() <= kForm.size() || line[kForm.size()] != ' ') {
      return false;
    }
    for (std::size_t i = 0; i < kForm.size(); ++i) {
      if (kForm[i] == ':' ? line[i] != ':' : !field(line[i])) {
        return false;
      }
    }
    return true;
  }

  /// Code before sm_70 has instructions of 8 bytes and is passed over.
  void SetArch(std::string_view text) {
    std::size_t end = 3;
    while (end < text.size() && end < 10 &&
           ((text[end] >= '0' && text[end] <= '9') || (text[end] >= 'a' && text[end] <= 'z'))) {
      ++end;
    }
    arch_ = text.substr(0, end);
    Function probe;
    probe.arch = arch_;
    old_code_ = probe.Architecture() > 0 && probe.Architecture() < 70;
    old_arch_ = old_code_ ? arch_ : old_arch_;
  }

  /// Older nvdisasm names the architecture only here: EF_CUDA_SM70.
  void HeaderFlags(std::string_view line) {
    const std::size_t at = line.find("EF_CUDA_SM");
    if (arch_.empty() && at != line.npos) {
      SetArch(fmt::format("sm_{}", line.substr(at + 10, 4)));
    }
  }

  [[nodiscard]] Status StartFunction(std::string_view name) {
    EndFunction();
    if (listing_.functions.size() >= kMostFunctions) {
      return Odd(fmt::format("more than {} functions", kMostFunctions));
    }
    Function function;
    function.name = std::string(name);
    function.arch = arch_;
    listing_.functions.push_back(std::move(function));
    open_function_ = true;
    open_binary_ = false;
    return Ok();
  }

  [[nodiscard]] Status Label(std::string_view label) {
    if (label.starts_with(".text.")) {
      return StartFunction(label.substr(6));
    }
    if (open_function_ && label.find(' ') == label.npos) {
      waiting_labels_.emplace_back(label);
    }
    return Ok();
  }

  /// The first mark after an instruction is the innermost place; those that follow it say where
  /// that was inlined. The innermost one that its user wrote is of use.
  void SourceLine(std::string_view line) {
    if (fresh_mark_ && !in_toolkit_) {
      return;
    }
    const std::size_t open = line.find('"');
    const std::size_t close = open == line.npos ? line.npos : line.find('"', open + 1);
    const std::size_t word = close == line.npos ? line.npos : line.find("line ", close);
    if (word == line.npos) {
      return;
    }
    std::string_view number = line.substr(word + 5);
    number = number.substr(0, number.find_first_not_of("0123456789"));
    long long value = 0;
    if (!open_function_ || !ParseInteger(number, &value) || value < 0 ||
        value > std::numeric_limits<std::uint32_t>::max()) {
      return;
    }
    in_toolkit_ = IsToolkitHeader(line.substr(open + 1, close - open - 1));
    if (fresh_mark_ && in_toolkit_) {
      return;
    }
    fresh_mark_ = true;
    source_file_ = FileIndex(line.substr(open + 1, close - open - 1));
    source_line_ = static_cast<std::uint32_t>(value);
  }

  std::uint32_t FileIndex(std::string_view file) {
    std::vector<std::string>& files = listing_.functions.back().files;
    const auto [entry, added] =
        file_index_.try_emplace(std::string(file), static_cast<std::uint32_t>(files.size() + 1));
    if (added) {
      files.emplace_back(file);
    }
    return entry->second;
  }

  /// A line that starts with a comment: an instruction behind its address, or an encoding word.
  [[nodiscard]] Status Comment(std::string_view line) {
    const std::size_t close = line.find("*/");
    if (close == line.npos) {
      return Ok();
    }
    const std::string_view inside = Trim(line.substr(2, close - 2));
    if (inside.starts_with("0x")) {
      SecondWord(inside);
      return Ok();
    }
    const std::optional<std::uint64_t> address = ParseHex(inside);
    const std::string_view rest = Trim(line.substr(close + 2));
    if (!address || rest.empty()) {
      return Ok();
    }
    const std::size_t semicolon = rest.find(';');
    if (semicolon == rest.npos) {
      return Odd("an instruction without ';': the listing is cut or no dump");
    }
    return Add(*address, rest.substr(0, semicolon), rest.substr(semicolon + 1));
  }

  void SecondWord(std::string_view word) {
    if (!open_function_ || listing_.functions.back().instructions.empty()) {
      return;
    }
    Instruction& last = listing_.functions.back().instructions.back();
    if (const auto value = ParseHex(word); value && last.encoding) {
      (*last.encoding)[1] = *value;
    }
  }

  [[nodiscard]] Status Add(std::uint64_t address, std::string_view body, std::string_view tail) {
    if (!open_function_) {
      KP_RETURN_IF_ERROR(StartFunction("unnamed"));
    }
    std::vector<Instruction>& list = listing_.functions.back().instructions;
    if (++count_ > kMostInstructions) {
      return Odd(fmt::format("more than {} instructions", kMostInstructions));
    }
    if (!list.empty() && address < list.back().address + kInstructionBytes) {
      return Odd("addresses of one function overlap or go backwards");
    }
    Instruction instruction;
    instruction.address = address;
    if (!SplitInstruction(body, &instruction)) {
      return Odd("an address without an instruction");
    }
    instruction.file = source_file_;
    instruction.line = source_line_;
    fresh_mark_ = false;
    if (const std::size_t word = tail.find("0x"); word != tail.npos) {
      const std::string_view hex = tail.substr(word, tail.find('*', word) - word);
      if (const auto low = ParseHex(Trim(hex))) {
        instruction.encoding = {*low, 0};
      }
    }
    for (const std::string& label : waiting_labels_) {
      labels_.insert_or_assign(label, address);
    }
    waiting_labels_.clear();
    Targets(list.size(), &instruction);
    list.push_back(std::move(instruction));
    return Ok();
  }

  /// `(.L_x_8) anywhere, the list of BRANCH_TARGETS of an indirect branch, or a plain number.
  void Targets(std::size_t index, Instruction* instruction) {
    if (!HasTarget(instruction->opcode)) {
      return;
    }
    const std::string_view operands = instruction->operands;
    if (const std::size_t open = operands.find("`("); open != operands.npos) {
      const std::size_t close = operands.find(')', open);
      pending_.push_back({index, std::string(operands.substr(open + 2, close - open - 2))});
    } else if (const std::size_t list = operands.find("BRANCH_TARGETS "); list != operands.npos) {
      std::string_view names = operands.substr(list + 15);
      names = names.substr(0, names.find('"'));
      for (const std::string_view name : Split(names, ',')) {
        pending_.push_back({index, std::string(Trim(name))});
      }
    } else if (const auto target = NumericTarget(operands)) {
      instruction->targets.push_back(*target);
    }
  }

  void EndFunction() {
    if (open_function_) {
      std::vector<Instruction>& list = listing_.functions.back().instructions;
      for (const Pending& pending : pending_) {
        if (const auto found = labels_.find(pending.label); found != labels_.end()) {
          list[pending.instruction].targets.push_back(found->second);
        }
      }
      if (list.empty()) {
        listing_.functions.pop_back();
      }
    }
    open_function_ = fresh_mark_ = false;
    pending_.clear();
    labels_.clear();
    waiting_labels_.clear();
    file_index_.clear();
    source_file_ = source_line_ = 0;
  }

  void EndBinary() {
    listing_.empty_binaries += open_binary_ ? 1U : 0U;
    open_binary_ = false;
  }

  std::string_view text_, label_;
  std::size_t line_ = 0, count_ = 0;
  Listing listing_;
  std::string arch_, old_arch_;
  bool old_code_ = false;
  bool open_function_ = false, open_binary_ = false, saw_header_ = false, fresh_mark_ = false;
  bool in_toolkit_ = false;
  std::uint32_t source_file_ = 0, source_line_ = 0;
  std::unordered_map<std::string, std::uint32_t> file_index_;
  std::unordered_map<std::string, std::uint64_t> labels_;
  std::vector<std::string> waiting_labels_;
  std::vector<Pending> pending_;
};

}  // namespace

Result<Listing> ParseListing(std::string_view text, std::string_view label) {
  if (text.starts_with("\xef\xbb\xbf")) {
    text.remove_prefix(3);
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && (text[first] == '[' || text[first] == '{') &&
      text.substr(first, 2) != "[B") {
    return ParseJsonListing(text, label);
  }
  return TextReader(text, label).Read();
}

}  // namespace kernelpro::sass
