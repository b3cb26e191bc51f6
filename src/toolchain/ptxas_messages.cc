// SPDX-License-Identifier: Apache-2.0
#include "toolchain/ptxas_messages.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr std::size_t kLongestText = 400;
constexpr std::size_t kLongestName = 2000;

/// "(C7511) text" -> "C7511" and the text behind it.
std::string_view TakeCode(std::string_view* text) {
  if (!text->starts_with("(C")) {
    return {};
  }
  const std::size_t close = text->find(')');
  const std::string_view code = text->substr(1, close == std::string_view::npos ? 0 : close - 1);
  if (code.size() < 2 || code.find_first_not_of("0123456789", 1) != std::string_view::npos) {
    return {};
  }
  *text = Trim(text->substr(close + 1));
  return code;
}

std::string_view KindOf(std::string_view text) {
  struct Words {
    std::string_view in_text, kind;
  };

  constexpr Words kWords[] = {
      {"wgmma.mma_async instructions are serialized", "wgmma_serialized"},
      {"'setmaxnreg' ignored", "setmaxnreg_ignored"},
      {"Registers are spilled to local memory", "spill"},
      {"Local memory used", "local_memory"},
      {"double precision computations", "double_precision"},
  };
  for (const Words& words : kWords) {
    if (text.find(words.in_text) != std::string_view::npos) {
      return words.kind;
    }
  }
  return "other";
}

std::string_view FunctionOf(std::string_view text) {
  constexpr std::string_view kFunction = "function '";
  const std::size_t at = text.find(kFunction);
  if (at == std::string_view::npos) {
    return {};
  }
  const std::string_view name = text.substr(at + kFunction.size());
  const std::size_t end = name.find('\'');
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

/// "k.ptx, line 286" into the note.
void ReadPlace(std::string_view place, CompilerNote& note) {
  constexpr std::string_view kLine = ", line ";
  const std::size_t at = place.rfind(kLine);
  long long line = 0;
  if (at == std::string_view::npos || !ParseInteger(Trim(place.substr(at + kLine.size())), &line) ||
      line < 0 || line > UINT32_MAX) {
    return;
  }
  note.file = Printable(Trim(place.substr(0, at)), kLongestText);
  note.line = static_cast<std::uint32_t>(line);
}

std::optional<PtxasMessage> ParseMessage(std::string_view line) {
  constexpr std::string_view kTool = "ptxas ";
  const std::size_t tool = line.find(kTool);
  if (tool == std::string_view::npos) {
    return std::nullopt;
  }
  line.remove_prefix(tool + kTool.size());
  const std::size_t colon = line.find(" : ");
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view severity = Trim(line.substr(0, colon));
  std::string_view text = Trim(line.substr(colon + 3));
  PtxasMessage message;
  if (const std::size_t semicolon = severity.rfind(';'); semicolon != std::string_view::npos) {
    ReadPlace(severity.substr(0, semicolon), message.note);
    severity = Trim(severity.substr(semicolon + 1));
  }
  const std::string_view code = TakeCode(&text);
  const bool remark = severity == "info" && (!code.empty() || text.starts_with("Potential "));
  if (text.empty() || (severity != "warning" && !remark)) {
    return std::nullopt;
  }
  message.note.kind = KindOf(text);
  message.note.code = code;
  message.note.text = Printable(text, kLongestText);
  message.function = Printable(FunctionOf(text), kLongestName);
  return message;
}

}  // namespace

std::vector<PtxasMessage> ParsePtxasMessages(std::string_view log) {
  std::vector<PtxasMessage> messages;
  std::set<std::tuple<std::string, std::string, std::uint32_t, std::string>> seen;
  for (const std::string_view line : Lines(log)) {
    auto message = ParseMessage(line);
    if (message &&
        seen.emplace(message->note.text, message->note.file, message->note.line, message->function)
            .second) {
      messages.push_back(*std::move(message));
    }
  }
  return messages;
}

}  // namespace kernelpro
