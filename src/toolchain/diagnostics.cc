// SPDX-License-Identifier: Apache-2.0
#include "toolchain/diagnostics.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace kernelpro {
namespace {

using Severity = Diagnostic::Severity;

constexpr std::size_t kMaxDiagnostics = 200;
constexpr std::size_t kMaxText = 1000;

struct SeverityWord {
  std::string_view word;
  Severity severity;
};

/// Longer words first: "error" is the tail of "fatal error".
constexpr std::array kWords = {
    SeverityWord{"catastrophic error", Severity::kError},
    SeverityWord{"internal compiler error", Severity::kError},
    SeverityWord{"fatal error", Severity::kError},
    SeverityWord{"fatal", Severity::kError},
    SeverityWord{"error", Severity::kError},
    SeverityWord{"warning", Severity::kWarning},
    SeverityWord{"remark", Severity::kNote},
    SeverityWord{"note", Severity::kNote},
};

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

/// A number at the start of `text`, which is then moved past it; 0 when there is none or when it
/// is too large to be a line.
std::uint32_t TakeNumber(std::string_view* text) {
  std::uint64_t value = 0;
  std::size_t digits = 0;
  while (digits < text->size() && IsDigit((*text)[digits]) && digits < 10) {
    value = value * 10 + static_cast<std::uint64_t>((*text)[digits] - '0');
    ++digits;
  }
  text->remove_prefix(digits);
  return value <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(value) : 0;
}

bool Take(std::string_view* text, std::string_view prefix) {
  const bool found = text->starts_with(prefix);
  if (found) {
    text->remove_prefix(prefix.size());
  }
  return found;
}

/// "error: x", "error #20-D: x", "fatal   : x": severity and message.
std::optional<std::pair<Severity, std::string_view>> TakeSeverity(std::string_view text) {
  for (const SeverityWord& word : kWords) {
    std::string_view rest = text;
    if (!Take(&rest, word.word)) {
      continue;
    }
    const std::size_t colon = rest.find(':');
    // Between the word and the colon: blanks and a number such as " #177-D".
    const std::string_view between = rest.substr(0, colon);
    if (colon == std::string_view::npos || between.size() > 16 ||
        between.find_first_not_of(" #-D0123456789") != std::string_view::npos) {
      return std::nullopt;
    }
    return std::pair(word.severity, Trim(rest.substr(colon + 1)));
  }
  return std::nullopt;
}

std::optional<Diagnostic> Make(std::string_view file, std::uint32_t line, std::string_view rest) {
  const auto taken = TakeSeverity(Trim(rest));
  if (!taken) {
    return std::nullopt;
  }
  return Diagnostic{.severity = taken->first,
                    .file = Printable(file, kMaxText),
                    .line = line,
                    .text = Printable(taken->second, kMaxText)};
}

/// "k.cu(3): error: x". The file name may itself hold parentheses.
std::optional<Diagnostic> FromCudafe(std::string_view text) {
  for (std::size_t open = text.find('('); open != std::string_view::npos && open > 0;
       open = text.find('(', open + 1)) {
    std::string_view rest = text.substr(open + 1);
    if (rest.empty() || !IsDigit(rest[0])) {
      continue;
    }
    const std::uint32_t line = TakeNumber(&rest);
    if (Take(&rest, "): ")) {
      return Make(text.substr(0, open), line, rest);
    }
  }
  return std::nullopt;
}

/// "k.cu:3:7: error: x" or "k.cu:3: error: x".
std::optional<Diagnostic> FromGcc(std::string_view text) {
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos && colon > 0;
       colon = text.find(':', colon + 1)) {
    std::string_view rest = text.substr(colon + 1);
    if (rest.empty() || !IsDigit(rest[0])) {
      continue;
    }
    const std::uint32_t line = TakeNumber(&rest);
    if (rest.size() > 1 && rest[0] == ':' && IsDigit(rest[1])) {
      rest.remove_prefix(1);
      TakeNumber(&rest);
    }
    if (Take(&rest, ": ")) {
      return Make(text.substr(0, colon), line, rest);
    }
  }
  return std::nullopt;
}

/// "ptxas error   : x" or "ptxas k.ptx, line 577; error   : x"; nvlink and nvcc likewise.
std::optional<Diagnostic> FromTool(std::string_view text) {
  if (!Take(&text, "ptxas ") && !Take(&text, "nvlink ") && !Take(&text, "nvcc ") &&
      !Take(&text, "fatbinary ")) {
    return std::nullopt;
  }
  constexpr std::string_view kLine = ", line ";
  const std::size_t comma = text.find(kLine);
  if (comma != std::string_view::npos) {
    std::string_view rest = text.substr(comma + kLine.size());
    const std::uint32_t line = TakeNumber(&rest);
    if (Take(&rest, "; ")) {
      return Make(text.substr(0, comma), line, rest);
    }
  }
  return Make("", 0, text);
}

/// Messages of programs about themselves, and of the linker.
std::optional<Diagnostic> FromPrograms(std::string_view text) {
  const auto error = [](std::string_view message) {
    return Diagnostic{.severity = Severity::kError,
                      .file = "",
                      .line = 0,
                      .text = Printable(Trim(message), kMaxText)};
  };
  if (const std::size_t at = text.find("undefined reference to "); at != std::string_view::npos) {
    return error(text.substr(at));
  }
  for (const std::string_view program : {"cc1plus: ", "g++: ", "gcc: ", "collect2: ", "cicc: "}) {
    if (text.starts_with(program)) {
      const bool no_memory = text.find("out of memory") != std::string_view::npos;
      return no_memory ? error(text) : Make("", 0, text.substr(program.size()));
    }
  }
  for (const std::string_view start :
       {"Error: ", "LLVM ERROR: ", "virtual memory exhausted", "terminate called after"}) {
    if (text.starts_with(start)) {
      return error(text);
    }
  }
  return std::nullopt;
}

std::optional<Diagnostic> FromLine(std::string_view line) {
  if (line.empty() || line[0] == ' ' || line[0] == '\t') {
    return std::nullopt;
  }
  for (const auto& parse : {FromTool, FromPrograms, FromCudafe, FromGcc}) {
    if (auto diagnostic = parse(line)) {
      return diagnostic;
    }
  }
  return std::nullopt;
}

/// Indented lines below a message of cudafe++: more of the message, then the source line and a
/// caret below it. Returns the lines that belong to the message and moves `next` past all of them.
std::string Continuation(const std::vector<std::string_view>& lines, std::size_t* next) {
  std::vector<std::string_view> kept;
  while (*next < lines.size() && lines[*next].starts_with("  ")) {
    const std::string_view text = Trim(lines[*next]);
    ++*next;
    if (text == "^") {
      if (!kept.empty()) {
        kept.pop_back();
      }
      continue;
    }
    kept.push_back(text);
  }
  std::string joined;
  for (const std::string_view text : kept) {
    joined += "; " + std::string(text);
    if (joined.size() > kMaxText) {
      break;
    }
  }
  return joined;
}

}  // namespace

std::vector<Diagnostic> ParseDiagnostics(std::string_view log) {
  std::vector<Diagnostic> diagnostics;
  const std::vector<std::string_view> lines = Lines(log);
  std::size_t next = 0;
  while (next < lines.size() && diagnostics.size() < kMaxDiagnostics) {
    auto diagnostic = FromLine(lines[next++]);
    if (!diagnostic) {
      continue;
    }
    diagnostic->text = Printable(diagnostic->text + Continuation(lines, &next), kMaxText);
    const auto same = [&](const Diagnostic& other) {
      return other.line == diagnostic->line && other.file == diagnostic->file &&
             other.text == diagnostic->text && other.severity == diagnostic->severity;
    };
    if (std::ranges::none_of(diagnostics, same)) {
      diagnostics.push_back(std::move(*diagnostic));
    }
  }
  return diagnostics;
}

void PutErrorsFirst(std::vector<Diagnostic>* diagnostics) {
  std::ranges::stable_partition(*diagnostics,
                                [](const auto& d) { return d.severity == Severity::kError; });
}

bool HasError(const std::vector<Diagnostic>& diagnostics) {
  return std::ranges::any_of(diagnostics,
                             [](const auto& d) { return d.severity == Severity::kError; });
}

}  // namespace kernelpro
