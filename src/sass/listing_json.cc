// SPDX-License-Identifier: Apache-2.0
// The JSON of nvdisasm (schema of CUDA 12.8): [ {metadata}, [ {function}, ... ] ], read as events
// so that a large file never stands in memory as a tree.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/text.h"
#include "sass/listing_parts.h"

namespace kernelpro::sass {
namespace {

constexpr std::uint64_t kInstructionBytes = 16;

class Events : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }

  bool boolean(bool /*value*/) override { return true; }

  bool number_float(double /*value*/, const std::string& /*text*/) override { return true; }

  bool binary(binary_t& /*value*/) override { return true; }

  bool number_integer(std::int64_t value) override {
    return value < 0 || number_unsigned(static_cast<std::uint64_t>(value));
  }

  bool number_unsigned(std::uint64_t value) override {
    if (depth_ == kFunction && key_ == "start") {
      start_ = value;
    } else if (depth_ == 4 && in_version_ && value < 1000) {
      (key_ == "major" ? major_ : minor_) = value;
    }
    return true;
  }

  bool string(std::string& value) override {
    if (depth_ == kFunction && key_ == "function-name") {
      function_.name = value;
    } else if (depth_ == kInstruction && in_code_) {
      if (key_ == "opcode") {
        instruction_.opcode = std::move(value);
      } else if (key_ == "operands") {
        instruction_.operands = std::move(value);
      } else if (key_ == "predicate") {
        instruction_.predicate = std::move(value);
      }
    } else if (key_ == "tki_toolOptions") {
      Options(value);
    }
    return true;
  }

  bool start_object(std::size_t /*size*/) override {
    ++depth_;
    if (depth_ == kInstruction && in_code_) {
      instruction_ = Instruction();
    } else if (depth_ == kFunction && in_functions_) {
      function_ = Function();
      start_ = index_ = 0;
    } else if (depth_ == 3 && key_ == "SM") {
      in_sm_ = true;
    } else if (depth_ == 4 && in_sm_ && key_ == "version") {
      in_version_ = true;
    }
    return true;
  }

  bool end_object() override {
    if (depth_ == kInstruction && in_code_) {
      return EndInstruction();
    }
    if (depth_ == kFunction && in_functions_ && !EndFunction()) {
      return false;
    }
    in_version_ = in_version_ && depth_ != 4;
    in_sm_ = in_sm_ && depth_ != 3;
    --depth_;
    return true;
  }

  bool start_array(std::size_t /*size*/) override {
    ++depth_;
    if (depth_ == 2) {
      in_functions_ = true;
    } else if (depth_ == 4 && in_functions_ && key_ == "sass-instructions") {
      in_code_ = true;
    }
    return true;
  }

  bool end_array() override {
    in_code_ = in_code_ && depth_ != 4;
    in_functions_ = in_functions_ && depth_ != 2;
    --depth_;
    return true;
  }

  bool key(std::string& value) override {
    key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    position_ = position;
    problem_ = "broken JSON";
    return false;
  }

  [[nodiscard]] Listing Take() {
    for (Function& function : listing_.functions) {
      if (major_ > 0) {
        const std::uint64_t number = major_ * 10 + minor_;
        const bool exact = arch_.starts_with(fmt::format("sm_{}", number));
        function.arch = exact ? arch_ : fmt::format("sm_{}", number);
      } else {
        function.arch = arch_;
      }
    }
    return std::move(listing_);
  }

  [[nodiscard]] std::size_t position() const { return position_; }

  [[nodiscard]] const std::string& problem() const { return problem_; }

  [[nodiscard]] bool saw_functions() const { return saw_functions_; }

 private:
  static constexpr int kFunction = 3;     ///< depth of a function's own keys
  static constexpr int kInstruction = 5;  ///< depth of an instruction's keys

  /// "-arch sm_90a -m 64": the only place of the letter.
  void Options(std::string_view options) {
    const std::size_t at = options.find("sm_");
    if (at == options.npos) {
      return;
    }
    const std::string_view rest = options.substr(at, 8);
    arch_ = std::string(rest.substr(0, rest.find_first_of(" \t,\"'")));
  }

  bool EndInstruction() {
    --depth_;
    const std::uint64_t offset = kInstructionBytes * index_++;
    if (instruction_.opcode.empty()) {
      return true;  // A gap between pieces of code; it counts in the address.
    }
    if (++count_ > kMostInstructions) {
      problem_ = fmt::format("more than {} instructions", kMostInstructions);
      return false;
    }
    instruction_.address = offset;
    if (HasTarget(instruction_.opcode)) {
      if (const auto target = NumericTarget(instruction_.operands)) {
        instruction_.targets.push_back(*target);
      }
    }
    function_.instructions.push_back(std::move(instruction_));
    return true;
  }

  bool EndFunction() {
    saw_functions_ = true;
    if (function_.instructions.empty()) {
      return true;
    }
    if (listing_.functions.size() >= kMostFunctions) {
      problem_ = fmt::format("more than {} functions", kMostFunctions);
      return false;
    }
    // Addresses are offsets in the function. Targets are too, or they count from where the file
    // puts its start: then none lies in front of that.
    const bool absolute = std::ranges::all_of(function_.instructions, [this](const auto& i) {
      return std::ranges::all_of(i.targets, [this](std::uint64_t t) { return t >= start_; });
    });
    for (Instruction& instruction : function_.instructions) {
      for (std::uint64_t& target : instruction.targets) {
        target -= absolute ? start_ : 0;
      }
    }
    listing_.functions.push_back(std::move(function_));
    return true;
  }

  Listing listing_;
  Function function_;
  Instruction instruction_;
  std::string key_, arch_, problem_;
  std::uint64_t start_ = 0, index_ = 0, major_ = 0, minor_ = 0;
  std::size_t count_ = 0, position_ = 0;
  int depth_ = 0;
  bool in_functions_ = false, in_code_ = false, in_sm_ = false, in_version_ = false;
  bool saw_functions_ = false;
};

}  // namespace

Result<Listing> ParseJsonListing(std::string_view text, std::string_view label) {
  Events events;
  if (!nlohmann::json::sax_parse(text, &events, nlohmann::json::input_format_t::json, true, true)) {
    const auto end =
        text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), events.position()));
    return Fail(ErrorCode::kParse,
                fmt::format("{}:{}: {}; the file is cut or not made by `nvdisasm -json`", label,
                            1 + std::count(text.begin(), end, '\n'), events.problem()));
  }
  const bool saw = events.saw_functions();
  Listing listing = events.Take();
  if (!listing.functions.empty()) {
    for (const Function& function : listing.functions) {
      if (const int arch = function.Architecture(); arch > 0 && arch < 70) {
        return Fail(ErrorCode::kParse,
                    fmt::format("{}:1: code for {}: only sm_70 and later can be read", label,
                                function.arch));
      }
    }
    return listing;
  }
  return saw ? Fail(ErrorCode::kNotFound, fmt::format("{}: the listing holds no function", label))
             : Fail(ErrorCode::kParse,
                    fmt::format("{}:1: JSON, but not that of `nvdisasm -json`", label));
}

}  // namespace kernelpro::sass
