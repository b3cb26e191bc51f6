// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/ptx/cursor.h"
#include "emulator/ptx/module.h"

namespace kernelpro::ptx {

/// The .loc directives of a module. Which source line an instruction counts for is known only once
/// every .file has been read (nvcc writes them last): until then SourceLocation::line holds a
/// number from `current()`.
///
/// Code that was inlined from a header of the toolkit or of the system counts for the call in the
/// user's own files: the chain of inlined_at is followed outwards from the .loc to the first
/// location whose file is not such a header; when all are, to the outermost.
class LineTable {
 public:
  static constexpr std::uint32_t kHighestFile = 0xffff;

  /// After `.file`: index "name"[, timestamp, size]. An index may be repeated.
  Status ParseFile(Cursor& cursor, std::vector<std::string>& files);
  /// After `.loc`: file line column[, function_name label[+n], inlined_at file line column].
  Status ParseLocation(Cursor& cursor);

  /// No location is in force at the start of a function.
  void StartFunction();

  /// Number of the .loc in force, 0 for none.
  [[nodiscard]] std::uint32_t current() const { return current_; }

  /// Puts real file and line where numbers from current() stand.
  void Resolve(Module& module) const;

 private:
  struct Place {
    std::uint32_t file = 0;
    std::uint32_t line = 0;
    std::uint32_t column = 0;

    friend bool operator==(const Place&, const Place&) = default;
  };

  struct PlaceHash {
    std::size_t operator()(const Place& place) const;
  };

  struct Entry {
    Place place;
    std::uint32_t inlined_at = 0;  ///< number of an earlier entry, 0 for none
  };

  Status ParsePlace(Cursor& cursor, Place& place);
  /// Number of the entry for `place`; the last one made when there are several.
  std::uint32_t Number(const Place& place);

  std::vector<Entry> entries_{1};  ///< entry 0 stands for "unknown"
  std::unordered_map<Place, std::uint32_t, PlaceHash> latest_;
  std::uint32_t current_ = 0;
};

/// True for headers of the CUDA toolkit, the compiler and the system.
[[nodiscard]] bool IsToolkitHeader(std::string_view path);

}  // namespace kernelpro::ptx
