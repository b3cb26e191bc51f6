// SPDX-License-Identifier: Apache-2.0
#include "store/run_store.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "store/database.h"
#include "store/folder_lock.h"
#include "store/schema.h"
#include "store/sqlite_run_store.h"

namespace kernelpro::store {
namespace {

namespace fs = std::filesystem;

Status MustHoldARun(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "run.db", error)) {
    return Ok();
  }
  return Fail(ErrorCode::kNotFound,
              fmt::format("{} holds no run (there is no run.db in it)", folder.string()));
}

Status CopyIfThere(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(from, error)) {
    fs::remove(to, error);
    return Ok();
  }
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (!error) {
    fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write, error);
  }
  if (error) {
    return Fail(ErrorCode::kIo, fmt::format("cannot read {}: {}", from.string(), error.message()));
  }
  return Ok();
}

/// The header of the log; SQLite gives it another number whenever it begins the log anew. Empty
/// without a log.
std::string LogHeader(const fs::path& folder) {
  constexpr std::uint64_t kLogHeaderBytes = 32;  // sqlite.org/fileformat2.html, "The WAL File"
  const Result<std::string> header = ReadFileHead(folder / "run.db-wal", kLogHeaderBytes);
  return header ? *header : std::string();  // A log that cannot be read fails when it is copied.
}

/// The database and the log beside it, which holds what is not in the database yet. They fit
/// together when the log was not begun anew in between: then what the database lacks is in it.
Status CopyRun(const fs::path& folder, const fs::path& copy) {
  constexpr int kMostAttempts = 50;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const std::string header = LogHeader(folder);
    for (const char* name : {"run.db", "run.db-wal"}) {
      KP_RETURN_IF_ERROR(CopyIfThere(folder / name, copy / name));
    }
    if (LogHeader(folder) == header) {
      return Ok();
    }
  }
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{} is being written faster than it can be copied", folder.string()));
}

/// `folder` is what the user knows it as.
Result<Database> OpenDatabase(const fs::path& file, const fs::path& folder) {
  Result<Database> database = Database::Open(file, false);
  if (!database) {
    return std::move(database).error().Wrap(folder.string());
  }
  if (Status known = BringUpToDate(*database, folder.string()); !known) {
    Error error = std::move(known).error();
    return error.message.starts_with(folder.string()) ? std::move(error)
                                                      : std::move(error).Wrap(folder.string());
  }
  return database;
}

}  // namespace

Result<std::unique_ptr<RunStore>> RunStore::Create(
    const fs::path& folder, const std::map<std::string, std::string>& facts) {
  std::error_code error;
  if (fs::exists(folder / "run.db", error)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{0} already holds a run; continue it with kernelpro optimize --resume "
                            "{0} or kernelpro agent next {0}, or name another folder",
                            folder.string()));
  }
  fs::create_directories(folder, error);
  if (error) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("cannot create run folder {}: {}", folder.string(), error.message()));
  }
  KP_ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(folder));
  KP_ASSIGN_OR_RETURN(Database database, Database::Open(folder / "run.db", true));
  KP_RETURN_IF_ERROR(database.Transaction([&]() -> Status {
    KP_RETURN_IF_ERROR(CreateTables(database));
    for (const auto& [name, value] : facts) {
      KP_RETURN_IF_ERROR(database.Run("INSERT INTO fact VALUES (?, ?)", {name, value}));
    }
    return Ok();
  }));
  return std::unique_ptr<RunStore>(
      std::make_unique<SqliteRunStore>(folder, std::move(lock), std::move(database)));
}

Result<std::unique_ptr<RunStore>> RunStore::Open(const fs::path& folder) {
  KP_RETURN_IF_ERROR(MustHoldARun(folder));
  KP_ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(folder));
  KP_ASSIGN_OR_RETURN(Database database, OpenDatabase(folder / "run.db", folder));
  return std::unique_ptr<RunStore>(
      std::make_unique<SqliteRunStore>(folder, std::move(lock), std::move(database)));
}

Result<std::unique_ptr<RunStore>> RunStore::OpenForReading(const fs::path& folder) {
  KP_RETURN_IF_ERROR(MustHoldARun(folder));
  KP_ASSIGN_OR_RETURN(Database database, OpenDatabase(folder / "run.db", folder));
  return std::unique_ptr<RunStore>(
      std::make_unique<SqliteRunStore>(folder, std::nullopt, std::move(database)));
}

Result<std::unique_ptr<RunStore>> RunStore::OpenCopy(const fs::path& folder) {
  KP_RETURN_IF_ERROR(MustHoldARun(folder));
  KP_ASSIGN_OR_RETURN(TemporaryFolder copy, TemporaryFolder::Create("kernelpro-run"));
  KP_RETURN_IF_ERROR(CopyRun(folder, copy.path()));
  KP_ASSIGN_OR_RETURN(Database database, OpenDatabase(copy.path() / "run.db", folder));
  return std::unique_ptr<RunStore>(
      std::make_unique<SqliteRunStore>(folder, std::nullopt, std::move(database), std::move(copy)));
}

}  // namespace kernelpro::store
