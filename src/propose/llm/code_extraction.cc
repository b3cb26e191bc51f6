// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/code_extraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "propose/llm/elision.h"
#include "propose/llm/fences.h"
#include "propose/llm/lexical.h"

namespace kernelpro::agents {
namespace {

constexpr std::string_view kEntry = "kernelpro_run";

Extraction Refuse(std::string why) {
  return {.source = {}, .why = std::move(why)};
}

/// "\n" line ends, no byte order mark, no thoughts before the answer.
std::string Normalised(std::string_view answer) {
  std::string text;
  text.reserve(answer.size());
  for (std::size_t i = 0; i < answer.size(); ++i) {
    if (answer[i] != '\r') {
      text += answer[i];
    } else if (i + 1 == answer.size() || answer[i + 1] != '\n') {
      text += '\n';
    }
  }
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    text.erase(at, kMark.size());
  }
  constexpr std::string_view kOpen = "<think>";
  constexpr std::string_view kClose = "</think>";
  if (Trim(text).starts_with(kOpen)) {
    const std::size_t close = text.rfind(kClose);
    text = close == std::string::npos ? std::string() : text.substr(close + kClose.size());
  }
  return text;
}

struct Entity {
  std::string_view escaped;
  char plain;
};

constexpr std::array<Entity, 6> kEntities = {{{"&lt;", '<'},
                                              {"&gt;", '>'},
                                              {"&quot;", '"'},
                                              {"&#39;", '\''},
                                              {"&apos;", '\''},
                                              {"&amp;", '&'}}};

const Entity* EntityAt(std::string_view text) {
  const auto* found = std::ranges::find_if(
      kEntities, [text](const Entity& e) { return text.starts_with(e.escaped); });
  return found == kEntities.end() ? nullptr : found;
}

std::string Unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const Entity* entity = EntityAt(text.substr(i));
    out += entity == nullptr ? text[i] : entity->plain;
    i += entity == nullptr ? 1 : entity->escaped.size();
  }
  return out;
}

/// Repairs a source that went through an HTML writer. False: only a part of it did, so what "&lt;"
/// means cannot be told.
bool RepairHtml(std::string& source) {
  const std::string code = Lex(source).code;
  // In code "&lt;" can only be the address of a variable of that name, which then stands elsewhere
  // too; the same in a comment or a literal does no harm.
  bool escaped = false;
  for (const std::string_view name : {"lt", "gt"}) {
    const std::string address = fmt::format("&{};", name);
    std::string others;
    for (std::size_t i = 0; i < code.size(); ++i) {
      const bool here = code.compare(i, address.size(), address) == 0;
      others += here ? ' ' : code[i];
      i += here ? address.size() - 1 : 0;
    }
    escaped = escaped || (others.size() < code.size() && !HasWord(others, name));
  }
  if (!escaped) {
    return true;
  }
  for (std::size_t i = 0; i < source.size(); ++i) {
    const bool raw_amp =
        source[i] == '&' && EntityAt(std::string_view(source).substr(i)) == nullptr;
    if (source[i] == '<' || source[i] == '>' || raw_amp) {
      return false;
    }
  }
  source = Unescaped(source);
  return true;
}

bool IsFileName(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) {
    return false;
  }
  const std::string_view extension = name.substr(dot + 1);
  constexpr std::array<std::string_view, 8> kExtensions = {"cu", "cuh", "h",   "hpp",
                                                           "cc", "cpp", "cxx", "c"};
  return std::ranges::find(kExtensions, extension) != kExtensions.end();
}

/// Files that comments of the form "file: x.cu" or "x.cu" announce.
std::set<std::string> AnnouncedFiles(const Lexed& source) {
  std::set<std::string> files;
  for (const Comment& comment : source.comments) {
    if (!comment.alone) {
      continue;
    }
    std::string_view text = comment.text;
    for (const std::string_view prefix : {"file:", "File:", "FILE:", "filename:", "Filename:"}) {
      if (text.starts_with(prefix)) {
        text = Trim(text.substr(prefix.size()));
      }
    }
    while (!text.empty() && std::string_view("=-*#`\"' ").find(text.back()) != std::string::npos) {
      text.remove_suffix(1);
    }
    while (!text.empty() && std::string_view("=-*#`\"' ").find(text[0]) != std::string::npos) {
      text.remove_prefix(1);
    }
    if (text.find(' ') == std::string_view::npos && IsFileName(text)) {
      files.emplace(text);
    }
  }
  return files;
}

/// An own header that the source includes and the answer holds elsewhere; empty: none.
std::string OtherFileNeeded(std::string_view source, std::string_view answer) {
  constexpr int kMostIncludes = 64;
  int includes = 0;
  for (const std::string_view line : Lines(source)) {
    std::string_view text = Trim(line);
    if (!text.starts_with("#")) {
      continue;
    }
    text = Trim(text.substr(1));
    const std::size_t open = text.find('"');
    const std::size_t close = open == std::string_view::npos ? open : text.find('"', open + 1);
    if (!text.starts_with("include") || close == std::string_view::npos) {
      continue;
    }
    const std::string name(text.substr(open + 1, close - open - 1));
    if (name == "kernelpro_task.h" || !IsFileName(name) || ++includes > kMostIncludes) {
      continue;
    }
    std::size_t mentions = 0;
    for (std::size_t at = answer.find(name); at != std::string_view::npos;
         at = answer.find(name, at + 1)) {
      ++mentions;
    }
    if (mentions > 1) {
      return name;
    }
  }
  return {};
}

/// The last checks of a text that is meant to be the file.
Extraction Accept(std::string source, std::string_view answer) {
  if (source.find('\0') != std::string::npos) {
    return Refuse("the source holds zero bytes");
  }
  if (!RepairHtml(source)) {
    return Refuse(
        "parts of the source are escaped as HTML (&lt; &gt; &amp;) and parts are not, so what is "
        "meant cannot be told; write < > & as they are");
  }
  const Lexed lexed = Lex(source);
  if (!Defines(lexed.code, kEntry)) {
    return Refuse("after repairing its HTML the source does not define kernelpro_run");
  }
  if (const std::string elision = FindElision(lexed); !elision.empty()) {
    return Refuse(fmt::format(
        "the source leaves something out (\"{}\"); write the whole file, every line of it",
        Printable(elision, 80)));
  }
  if (AnnouncedFiles(lexed).size() > 1) {
    return Refuse("the source is several files in one; write one file");
  }
  if (const std::string other = OtherFileNeeded(source, answer); !other.empty()) {
    return Refuse(
        fmt::format("the source needs a second file, {}; write one file", Printable(other, 80)));
  }
  while (!source.empty() && (source.back() == '\n' || source.back() == ' ')) {
    source.pop_back();
  }
  source.erase(0, std::min(source.find_first_not_of('\n'), source.size()));
  return {.source = source + "\n", .why = {}};
}

bool StartsLikeSource(std::string_view text) {
  text = Trim(text);
  constexpr std::array<std::string_view, 14> kStarts = {
      "#include", "#pragma",  "#define",   "//",        "/*",     "extern",  "__",
      "static",   "template", "constexpr", "namespace", "using ", "typedef", "struct "};
  return std::ranges::any_of(kStarts,
                             [text](std::string_view start) { return text.starts_with(start); });
}

/// An answer without fences: only a source from its first to its last line, never one fished out of
/// a text.
Extraction FromPlainText(std::string_view text, std::string_view answer) {
  if (LooksLikePatch(text)) {
    return Refuse("the answer is a patch; write the whole file");
  }
  std::string source(text);
  const std::string shown = source.find('<') == std::string::npos ? Unescaped(source) : source;
  const Lexed lexed = Lex(shown);
  if (!HasWord(lexed.code, kEntry)) {
    return Refuse("the answer holds no code block, and no kernelpro_run");
  }
  if (!StartsLikeSource(shown)) {
    return Refuse(
        "the answer holds no code block; put the whole file into one, between ``` fences");
  }
  const std::string_view end = Trim(lexed.code);
  if (!Balanced(lexed.code) || end.empty() || (end.back() != '}' && end.back() != ';')) {
    return Refuse("the answer ends in the middle of the source, or is followed by text");
  }
  if (!Defines(lexed.code, kEntry)) {
    return Refuse("the source does not define kernelpro_run");
  }
  return Accept(std::move(source), answer);
}

bool DefinesEntry(std::string_view text) {
  const bool escaped = text.find('<') == std::string_view::npos;
  return Defines(Lex(escaped ? Unescaped(text) : std::string(text)).code, kEntry);
}

/// Why none of the blocks is the kernel.
Extraction NoKernel(const std::vector<FencedBlock>& blocks) {
  for (const FencedBlock& block : blocks) {
    if (block.language == "diff" || block.language == "patch" || LooksLikePatch(block.text)) {
      return Refuse("the answer is a patch; write the whole file");
    }
  }
  for (const FencedBlock& block : blocks) {
    if (!block.closed && !Trim(block.text).empty()) {
      return Refuse("the answer ends inside its code block: it was cut off; write a shorter file");
    }
  }
  for (const FencedBlock& block : blocks) {
    if (HasWord(Lex(block.text).code, kEntry)) {
      return Refuse("the code calls or declares kernelpro_run but does not define it");
    }
  }
  return Refuse("the code does not define kernelpro_run");
}

}  // namespace

Extraction ExtractKernel(std::string_view answer) {
  if (answer.size() > kLongestAnswer) {
    return Refuse("the answer is longer than 256 KiB");
  }
  const std::string text = Normalised(answer);
  if (Trim(text).empty()) {
    return Refuse("the answer is empty");
  }
  FencedText fenced = ReadFences(text);
  // A lone fence at the end closes what was never opened.
  std::erase_if(fenced.blocks, [](const FencedBlock& block) { return Trim(block.text).empty(); });
  if (fenced.blocks.empty()) {
    return FromPlainText(fenced.outside, text);
  }
  std::vector<const FencedBlock*> kernels;
  for (const FencedBlock& block : fenced.blocks) {
    const bool patch =
        block.language == "diff" || block.language == "patch" || LooksLikePatch(block.text);
    if (patch || !DefinesEntry(block.text)) {
      continue;
    }
    if (!block.closed) {
      return Refuse("the answer ends inside its code block: it was cut off; write a shorter file");
    }
    const bool repeated = std::ranges::any_of(kernels, [&block](const FencedBlock* other) {
      return Trim(other->text) == Trim(block.text);
    });
    if (!repeated) {
      kernels.push_back(&block);
    }
  }
  if (kernels.empty()) {
    return NoKernel(fenced.blocks);
  }
  if (kernels.size() > 1) {
    return Refuse(
        fmt::format("the answer holds {} different files that define kernelpro_run; "
                    "write one",
                    kernels.size()));
  }
  return Accept(kernels.front()->text, text);
}

}  // namespace kernelpro::agents
