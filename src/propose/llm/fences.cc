// SPDX-License-Identifier: Apache-2.0
#include "propose/llm/fences.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/text.h"

namespace kernelpro::agents {
namespace {

struct Fence {
  char mark = '`';
  std::size_t length = 0, indent = 0;
  std::string info;
};

std::optional<Fence> ParseFence(std::string_view line) {
  Fence fence;
  fence.indent = std::min(line.find_first_not_of(" \t"), line.size());
  const std::string_view rest = line.substr(fence.indent);
  if (rest.empty() || (rest[0] != '`' && rest[0] != '~')) {
    return std::nullopt;
  }
  fence.mark = rest[0];
  fence.length = std::min(rest.find_first_not_of(fence.mark), rest.size());
  fence.info = std::string(Trim(rest.substr(fence.length)));
  // "```x```" is code inside a line of text.
  if (fence.length < 3 || fence.info.find('`') != std::string::npos) {
    return std::nullopt;
  }
  return fence;
}

std::string Language(const std::string& info) {
  std::string word = info.substr(0, info.find_first_of(" \t{,:"));
  std::ranges::transform(word, word.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return word;
}

std::string_view WithoutIndent(std::string_view line, std::size_t indent) {
  const std::size_t blanks = std::min(line.find_first_not_of(" \t"), line.size());
  return line.substr(std::min(blanks, indent));
}

/// Deeper than any answer nests blocks; bounds the stack.
constexpr std::size_t kDeepest = 16;

class Reader {
 public:
  FencedText Run(std::string_view text) {
    for (const std::string_view line : Lines(text)) {
      Read(line);
    }
    while (!open_.empty()) {
      Close(false);
    }
    return std::move(out_);
  }

 private:
  struct Open {
    Fence fence;
    FencedBlock block;
    bool has_inner = false;
  };

  void Read(std::string_view line) {
    const std::optional<Fence> fence = ParseFence(line);
    if (!fence) {
      Append(line);
      return;
    }
    const bool matches = !open_.empty() && fence->info.empty() &&
                         fence->mark == open_.back().fence.mark &&
                         fence->length >= open_.back().fence.length;
    if (matches) {
      Close(true);
    } else if (open_.size() < kDeepest) {
      if (!open_.empty()) {
        open_.back().has_inner = true;
      }
      Open next;
      next.fence = *fence;
      next.block.language = Language(fence->info);
      open_.push_back(std::move(next));
    }
  }

  void Append(std::string_view line) {
    std::string& target = open_.empty() ? out_.outside : open_.back().block.text;
    target += open_.empty() ? line : WithoutIndent(line, open_.back().fence.indent);
    target += '\n';
  }

  void Close(bool closed) {
    Open done = std::move(open_.back());
    open_.pop_back();
    // Around an inner block stands text; if it is code, it is not whole.
    done.block.closed = closed && !done.has_inner;
    out_.blocks.push_back(std::move(done.block));
  }

  std::vector<Open> open_;
  FencedText out_;
};

}  // namespace

FencedText ReadFences(std::string_view text) {
  return Reader().Run(text);
}

}  // namespace kernelpro::agents
