// SPDX-License-Identifier: Apache-2.0
#include "profile/sqlite_reader.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text.h"

namespace kernelpro {
namespace {

constexpr int kStepsPerCall = 1000;
constexpr std::size_t kMostTables = 2000;

/// Plain reads of plain tables. Functions, attached files and everything that writes are refused,
/// whoever asks: we or the file's schema.
int Authorize(void* /*unused*/, int action, const char* /*unused*/, const char* /*unused*/,
              const char* /*unused*/, const char* /*unused*/) {
  return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_PRAGMA ? SQLITE_OK
                                                                                     : SQLITE_DENY;
}

/// "file:///a%20b.sqlite?immutable=1": no lock, no journal beside it is looked at.
std::string Uri(const std::filesystem::path& path) {
  std::string uri = "file://";
  for (const char c : std::filesystem::absolute(path).string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '_' || c == '-';
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri + "?immutable=1";
}

std::string Quoted(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Statement Prepare(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  return Statement(statement);
}

void Harden(sqlite3* database) {
  for (const int option : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                           SQLITE_DBCONFIG_TRUSTED_SCHEMA}) {
    sqlite3_db_config(database, option, 0, nullptr);
  }
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, 16 << 20);
  sqlite3_limit(database, SQLITE_LIMIT_SQL_LENGTH, 100'000);
  sqlite3_limit(database, SQLITE_LIMIT_EXPR_DEPTH, 20);
  sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_set_authorizer(database, Authorize, nullptr);
  sqlite3_exec(database, "PRAGMA cell_size_check=ON", nullptr, nullptr, nullptr);
  sqlite3_exec(database, "PRAGMA mmap_size=0", nullptr, nullptr, nullptr);
}

}  // namespace

std::int64_t SqliteRow::Integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::optional<std::int64_t> SqliteRow::Maybe(int column) const {
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) {
    return std::nullopt;
  }
  return sqlite3_column_int64(statement_, column);
}

std::string_view SqliteRow::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) {
    return {};
  }
  return {reinterpret_cast<const char*>(text),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

void SqliteReader::Close::operator()(sqlite3* database) const {
  sqlite3_close(database);
}

Error SqliteReader::Damaged(std::string_view doing) const {
  if (budget_->left == 0) {
    return Fail(ErrorCode::kParse,
                fmt::format("{}: {} takes more work than is allowed; is the database what nsys "
                            "exported?",
                            path_, doing));
  }
  return Fail(ErrorCode::kParse, fmt::format("{}: {}: {}", path_, doing,
                                             Printable(sqlite3_errmsg(database_.get()), 200)));
}

Result<SqliteReader> SqliteReader::Open(const std::filesystem::path& path, std::uint64_t steps) {
  SqliteReader reader;
  reader.path_ = path.string();
  reader.budget_ = std::make_unique<Budget>(Budget{steps / kStepsPerCall});
  sqlite3* database = nullptr;
  const int opened = sqlite3_open_v2(
      Uri(path).c_str(), &database,
      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
      nullptr);
  reader.database_.reset(database);
  if (opened != SQLITE_OK) {
    return Fail(ErrorCode::kIo, fmt::format("{}: cannot be opened as an SQLite database ({})",
                                            path.string(), sqlite3_errstr(opened)));
  }
  Harden(database);
  sqlite3_progress_handler(
      database, kStepsPerCall,
      [](void* data) {
        auto* budget = static_cast<Budget*>(data);
        budget->left -= budget->left > 0 ? 1 : 0;
        return budget->left == 0 ? 1 : 0;
      },
      reader.budget_.get());
  KP_RETURN_IF_ERROR(reader.LearnTables());
  return reader;
}

Status SqliteReader::LearnTables() {
  const Statement statement =
      Prepare(database_.get(), "SELECT name, type, rootpage FROM sqlite_master");
  if (statement == nullptr) {
    return Damaged("the list of tables");
  }
  int result = sqlite3_step(statement.get());
  for (; result == SQLITE_ROW && tables_.size() < kMostTables;
       result = sqlite3_step(statement.get())) {
    const SqliteRow row(statement.get());
    // A view could stand for any amount of work, a virtual table for any code.
    if (row.Text(1) == "table" && row.Integer(2) > 0) {
      tables_.emplace_back(row.Text(0));
    }
  }
  return result == SQLITE_DONE || result == SQLITE_ROW ? Ok() : Damaged("the list of tables");
}

bool SqliteReader::HasTable(std::string_view table) const {
  return std::ranges::find(tables_, table) != tables_.end();
}

Status SqliteReader::Each(std::string_view table, const std::vector<std::string_view>& columns,
                          const std::function<bool(const SqliteRow&)>& row) const {
  if (!HasTable(table)) {
    return Ok();
  }
  std::vector<std::string> present;
  const Statement info = Prepare(database_.get(), "PRAGMA table_info(" + Quoted(table) + ")");
  while (info != nullptr && sqlite3_step(info.get()) == SQLITE_ROW) {
    present.emplace_back(SqliteRow(info.get()).Text(1));
  }
  std::string sql;
  for (const std::string_view column : columns) {
    const bool there = std::ranges::find(present, column) != present.end();
    sql += (sql.empty() ? "SELECT " : ", ") + (there ? Quoted(column) : std::string("NULL"));
  }
  sql += " FROM " + Quoted(table);
  const Statement statement = Prepare(database_.get(), sql);
  if (statement == nullptr) {
    return Damaged(fmt::format("table {}", table));
  }
  int result = sqlite3_step(statement.get());
  while (result == SQLITE_ROW && row(SqliteRow(statement.get()))) {
    result = sqlite3_step(statement.get());
  }
  return result == SQLITE_DONE || result == SQLITE_ROW ? Ok()
                                                       : Damaged(fmt::format("table {}", table));
}

}  // namespace kernelpro
