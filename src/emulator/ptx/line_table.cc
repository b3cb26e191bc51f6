// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/line_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "emulator/ptx/cursor.h"
#include "emulator/ptx/lexer.h"
#include "emulator/ptx/module.h"

namespace kernelpro::ptx {

bool IsToolkitHeader(std::string_view path) {
  constexpr std::array<std::string_view, 4> kRoots = {"/usr/include/", "/usr/lib/",
                                                      "/usr/local/cuda", "/opt/cuda"};
  constexpr std::array<std::string_view, 4> kParts = {"/targets/x86_64-linux/include/",
                                                      "/targets/sbsa-linux/include/",
                                                      "/include/cccl/", "/site-packages/nvidia/"};
  return std::ranges::any_of(kRoots,
                             [&](std::string_view root) { return path.starts_with(root); }) ||
         std::ranges::any_of(kParts, [&](std::string_view part) {
           return path.find(part) != std::string_view::npos;
         });
}

std::size_t LineTable::PlaceHash::operator()(const Place& place) const {
  std::uint64_t key =
      (std::uint64_t{place.file} << 48U) ^ (std::uint64_t{place.line} << 16U) ^ place.column;
  key *= 0x9e3779b97f4a7c15ULL;
  return static_cast<std::size_t>(key ^ (key >> 32U));
}

Status LineTable::ParseFile(Cursor& cursor, std::vector<std::string>& files) {
  KP_ASSIGN_OR_RETURN(const std::uint32_t index, cursor.ExpectCount("a file number", kHighestFile));
  KP_ASSIGN_OR_RETURN(const std::string_view name, cursor.ExpectString("a file name in quotes"));
  if (files.size() <= index) {
    files.resize(std::size_t{index} + 1);
  }
  files[index] = name;
  while (cursor.Accept(',')) {
    KP_RETURN_IF_ERROR(cursor.ExpectInteger("the file's time or size"));
  }
  return Ok();
}

Status LineTable::ParsePlace(Cursor& cursor, Place& place) {
  KP_ASSIGN_OR_RETURN(place.file, cursor.ExpectCount("a file number"));
  KP_ASSIGN_OR_RETURN(place.line, cursor.ExpectCount("a line number"));
  KP_ASSIGN_OR_RETURN(place.column, cursor.ExpectCount("a column number"));
  return Ok();
}

std::uint32_t LineTable::Number(const Place& place) {
  const auto next = static_cast<std::uint32_t>(entries_.size());
  const auto [found, is_new] = latest_.try_emplace(place, next);
  if (is_new) {
    entries_.push_back({place, 0});
  }
  return found->second;
}

Status LineTable::ParseLocation(Cursor& cursor) {
  Entry entry;
  KP_RETURN_IF_ERROR(ParsePlace(cursor, entry.place));
  while (cursor.Accept(',')) {
    KP_ASSIGN_OR_RETURN(const std::string_view attribute,
                        cursor.ExpectWord("function_name or inlined_at"));
    if (attribute == "function_name") {
      KP_RETURN_IF_ERROR(cursor.ExpectWord("a label"));
      if (cursor.Accept('+')) {
        KP_RETURN_IF_ERROR(cursor.ExpectInteger("an offset"));
      }
    } else if (attribute == "inlined_at") {
      Place call;
      KP_RETURN_IF_ERROR(ParsePlace(cursor, call));
      entry.inlined_at = Number(call);
    } else {
      return cursor.Unexpected("function_name or inlined_at before this");
    }
  }
  const auto found = latest_.find(entry.place);
  if (found != latest_.end() && entries_[found->second].inlined_at == entry.inlined_at) {
    current_ = found->second;
    return Ok();
  }
  current_ = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back(entry);
  latest_[entry.place] = current_;
  return Ok();
}

void LineTable::StartFunction() {
  latest_.clear();
  current_ = 0;
}

void LineTable::Resolve(Module& module) const {
  std::vector<bool> is_header(module.files.size(), false);
  for (std::size_t i = 0; i < module.files.size(); ++i) {
    is_header[i] = IsToolkitHeader(module.files[i]);
  }
  // An entry names only earlier ones as its caller, so one pass settles every chain.
  std::vector<SourceLocation> visible(entries_.size());
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const std::uint32_t file = entry.place.file;
    if (entry.inlined_at != 0 && file < is_header.size() && is_header[file]) {
      visible[i] = visible[entry.inlined_at];
    } else if (file < module.files.size()) {
      visible[i] = {.file = file, .line = entry.place.line};
    }
  }
  for (Function& function : module.functions) {
    for (Instruction& instruction : function.body) {
      const SourceLocation& place = visible[instruction.where.line];
      instruction.where.file = place.file;
      instruction.where.line = place.line;
    }
  }
}

}  // namespace kernelpro::ptx
