// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <kainjow/mustache.hpp>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "propose/llm/embedded_prompts.h"

namespace kernelpro::agents {
namespace {

namespace mustache = kainjow::mustache;

constexpr std::uint64_t kLongestPrompt = 1U << 20U;

struct Tag {
  char kind = 0;  ///< '#', '^', '/', '!' or 0: a name
  std::string name;
  std::size_t line = 0;
};

std::size_t LineAt(std::string_view text, std::size_t at) {
  return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, at), '\n'));
}

Error Wrong(std::string_view shown, std::size_t line, std::string_view what) {
  return Fail(ErrorCode::kParse, fmt::format("{}:{}: {}", shown, line, what));
}

bool IsName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// The library takes much more than this and says little about what it does not take; and it has
/// no notion of a name that nobody fills.
Result<std::vector<Tag>> ReadTags(std::string_view text, std::string_view shown) {
  std::vector<Tag> tags;
  for (std::size_t at = text.find("{{"); at != std::string_view::npos; at = text.find("{{", at)) {
    Tag tag;
    tag.line = LineAt(text, at);
    const std::size_t end = text.find("}}", at + 2);
    if (end == std::string_view::npos) {
      return Wrong(shown, tag.line, "\"{{\" without \"}}\"");
    }
    std::string_view inside = text.substr(at + 2, end - at - 2);
    at = end + 2;
    if (inside.starts_with('!')) {
      continue;
    }
    if (!inside.empty() && std::string_view("#^/").find(inside[0]) != std::string_view::npos) {
      tag.kind = inside[0];
      inside.remove_prefix(1);
    }
    tag.name = std::string(Trim(inside));
    if (!IsName(tag.name)) {
      return Wrong(shown, tag.line,
                   fmt::format("{{{{{}}}}} is none of {{{{name}}}}, {{{{#name}}}}, {{{{^name}}}}, "
                               "{{{{/name}}}}, {{{{! comment}}}}",
                               Printable(inside, 60)));
    }
    tags.push_back(std::move(tag));
  }
  return tags;
}

Status CheckSections(const std::vector<Tag>& tags, std::string_view shown) {
  std::vector<const Tag*> open;
  for (const Tag& tag : tags) {
    if (tag.kind == '#' || tag.kind == '^') {
      open.push_back(&tag);
    } else if (tag.kind == '/') {
      if (open.empty() || open.back()->name != tag.name) {
        return Wrong(shown, tag.line,
                     fmt::format("{{{{/{}}}}} ends no section that is open here", tag.name));
      }
      open.pop_back();
    }
  }
  if (!open.empty()) {
    return Wrong(shown, open.back()->line,
                 fmt::format("the section {} has no end: {{{{/{}}}}}", open.back()->name,
                             open.back()->name));
  }
  return Ok();
}

/// Line of the first character that may not be in a prompt; nothing when there is none.
std::optional<std::size_t> BadLine(std::string_view text) {
  const std::string clean = Printable(text, text.size() + 1);
  const auto [a, b] = std::ranges::mismatch(text, clean);
  if (a == text.end() && b == clean.end()) {
    return std::nullopt;
  }
  return LineAt(text, static_cast<std::size_t>(a - text.begin()));
}

Status Check(const PromptFile& prompt, std::string_view text, std::string_view shown) {
  if (const std::optional<std::size_t> bad = BadLine(text)) {
    return Wrong(shown, *bad, "a control character, or bytes that are not UTF-8");
  }
  KP_ASSIGN_OR_RETURN(const std::vector<Tag> tags, ReadTags(text, shown));
  for (const Tag& tag : tags) {
    if (std::ranges::find(prompt.names, tag.name) == prompt.names.end()) {
      return Wrong(shown, tag.line,
                   prompt.names.empty()
                       ? fmt::format("unknown name {}; this prompt has none", tag.name)
                       : fmt::format("unknown name {}; this prompt has {}", tag.name,
                                     fmt::join(prompt.names, ", ")));
    }
  }
  KP_RETURN_IF_ERROR(CheckSections(tags, shown));
  const mustache::mustache parsed{std::string(text)};
  if (!parsed.is_valid()) {
    return Fail(ErrorCode::kParse, fmt::format("{}: {}", shown, parsed.error_message()));
  }
  return Ok();
}

std::string WithoutReturns(std::string text) {
  for (std::size_t at = text.find("\r\n"); at != std::string::npos; at = text.find("\r\n", at)) {
    text.erase(at, 1);
  }
  return text;
}

Result<std::string> TextOf(std::string_view file, const std::string& folder) {
  if (!folder.empty()) {
    return ReadFile(std::filesystem::path(folder) / file, kLongestPrompt);
  }
  const auto& all = EmbeddedPrompts();
  const auto found = std::ranges::find(all, file, &EmbeddedPrompt::file);
  if (found == all.end()) {
    return Fail(ErrorCode::kInternal, fmt::format("the program was built without {}", file));
  }
  return std::string(found->text);
}

}  // namespace

const std::vector<PromptFile>& PromptFiles() {
  static const std::vector<PromptFile> kFiles = {
      {"system.md", {"task"}},
      {"task.md",
       {"name", "description", "gpu", "provenance", "precision", "libraries", "tolerance", "shapes",
        "header"}},
      {"seed.md", {"attempt", "attempts"}},
      {"planner.md",
       {"times", "performance", "source", "path", "tried", "memory", "findings", "tools"}},
      {"coder.md", {"times", "technique", "plan", "finding", "note", "memory", "source"}},
      {"repairer.md", {"verdict", "reason", "tried", "memory", "source"}},
      {"researcher.md", {"technique", "plan", "source", "calls"}},
      {"note_taker.md", {"children", "memory"}},
      {"retry.md", {"problem"}},
      {"placebo.md", {}},
  };
  return kFiles;
}

Result<Prompts> Prompts::Load(const std::string& folder) {
  Prompts prompts;
  for (const PromptFile& prompt : PromptFiles()) {
    Result<std::string> text = TextOf(prompt.file, folder);
    if (!text) {
      return std::move(text).error().Wrap(fmt::format("prompt {}", prompt.file));
    }
    const std::string shown = folder.empty()
                                  ? fmt::format("prompts/{}", prompt.file)
                                  : (std::filesystem::path(folder) / prompt.file).string();
    std::string clean = WithoutReturns(std::move(*text));
    KP_RETURN_IF_ERROR(Check(prompt, clean, shown));
    prompts.texts_.emplace(prompt.file, std::move(clean));
  }
  return prompts;
}

std::string Prompts::Render(std::string_view file, const PromptValues& values) const {
  const auto text = texts_.find(file);
  KP_CHECK(text != texts_.end()) << file;
  const auto declared = std::ranges::find(PromptFiles(), file, &PromptFile::file);
  mustache::data data;
  for (const auto& [name, value] : values) {
    KP_CHECK(std::ranges::find(declared->names, name) != declared->names.end())
        << name << " of " << file;
    data.set(name, value.empty() ? mustache::data(false) : mustache::data(value));
  }
  mustache::mustache parsed{text->second};
  // The texts are for a model, not for a browser.
  parsed.set_custom_escape([](const std::string& value) { return value; });
  return parsed.render(data);
}

}  // namespace kernelpro::agents
