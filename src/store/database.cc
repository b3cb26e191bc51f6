// SPDX-License-Identifier: Apache-2.0
#include "store/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>
#include <utility>

namespace kernelpro::store {
namespace {

struct Finalizer {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

using Statement = std::unique_ptr<sqlite3_stmt, Finalizer>;

int Bind(sqlite3_stmt* statement, int index, const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return sqlite3_bind_int64(statement, index, *integer);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return sqlite3_bind_double(statement, index, *real);
  }
  const std::string_view text = std::get<std::string_view>(value);
  return sqlite3_bind_text64(statement, index, text.data() == nullptr ? "" : text.data(),
                             text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

}  // namespace

std::int64_t Row::Integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double Row::Real(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::string Row::Text(int column) const {
  const unsigned char* const text = sqlite3_column_text(statement_, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text), size);
}

Result<Database> Database::Open(const std::filesystem::path& file, bool create) {
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(file.c_str(), &handle, flags, nullptr);
  Database database(handle);
  if (code != SQLITE_OK) {
    return database.Failure("open " + file.string());
  }
  sqlite3_busy_timeout(handle, 5000);
  for (const std::string_view pragma :
       {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON"}) {
    KP_RETURN_IF_ERROR(database.Query(pragma, {}, [](const Row&) {}));
  }
  return database;
}

Database::Database(Database&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

Database::~Database() {
  sqlite3_close(handle_);
}

Error Database::Failure(std::string_view doing) const {
  const int code = handle_ == nullptr ? SQLITE_NOMEM : sqlite3_errcode(handle_);
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT) {  // Asking once more cannot help.
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("run.db is damaged: {}", sqlite3_errmsg(handle_)));
  }
  return Fail(ErrorCode::kIo,
              fmt::format("database: cannot {}: {}", doing,
                          handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_)));
}

Status Database::Query(std::string_view sql, const std::vector<Value>& values,
                       const std::function<void(const Row&)>& each) const {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &raw, nullptr) !=
      SQLITE_OK) {
    return Failure(sql);
  }
  const Statement statement(raw);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (Bind(raw, static_cast<int>(i) + 1, values[i]) != SQLITE_OK) {
      return Failure(sql);
    }
  }
  while (true) {
    const int step = sqlite3_step(raw);
    if (step == SQLITE_DONE) {
      return Ok();
    }
    if (step != SQLITE_ROW) {
      return Failure(sql);
    }
    each(Row(raw));
  }
}

Status Database::Run(std::string_view sql, const std::vector<Value>& values) const {
  return Query(sql, values, [](const Row&) {});
}

std::int64_t Database::LastRowId() const {
  return sqlite3_last_insert_rowid(handle_);
}

Status Database::Transaction(const std::function<Status()>& work) const {
  KP_RETURN_IF_ERROR(Run("BEGIN IMMEDIATE"));
  Status done = work();
  if (done) {
    done = Run("COMMIT");
  }
  if (!done) {
    // The first failure is the one to report; a failed rollback leaves the same state on disk.
    [[maybe_unused]] const Status rolled_back = Run("ROLLBACK");
  }
  return done;
}

}  // namespace kernelpro::store
