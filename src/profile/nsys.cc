// SPDX-License-Identifier: Apache-2.0
#include "profile/nsys.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/result.h"
#include "kernelpro/profile.h"
#include "profile/file_kind.h"
#include "profile/nsys_sqlite.h"
#include "profile/text_file.h"

namespace kernelpro {

Result<Profile> ReadNsys(const std::filesystem::path& path) {
  KP_ASSIGN_OR_RETURN(const std::string head, ReadFileHead(path, 4096));
  switch (SniffFile(head, path.string())) {
    case FileKind::kSqlite:
      return ReadNsysSqlite(path);
    case FileKind::kNsysReport:
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("{}: a report file, which only Nsight Systems itself can read; where "
                              "nsys is, run  nsys export --type sqlite --output profile.sqlite {}  "
                              "and give profile.sqlite",
                              path.string(), path.filename().string()));
    default:
      break;
  }
  KP_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  const FileKind kind = SniffFile(text, path.string());
  if (kind == FileKind::kNsysStats) {
    return ParseNsysStats(text, path.string());
  }
  return Fail(kind == FileKind::kEmpty ? ErrorCode::kNotFound : ErrorCode::kParse,
              fmt::format("{}: this is {}, not a profile of Nsight Systems (an SQLite export, or "
                          "what nsys stats printed)",
                          path.string(), Describe(kind)));
}

}  // namespace kernelpro
