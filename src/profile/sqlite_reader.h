// SPDX-License-Identifier: Apache-2.0
#pragma once

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

struct sqlite3;
struct sqlite3_stmt;

namespace kernelpro {

/// A row at hand while Each runs; columns by their place in the request.
class SqliteRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}

  /// 0 where the value or the column is missing or no number.
  [[nodiscard]] std::int64_t Integer(int column) const;
  /// Nothing where it is missing.
  [[nodiscard]] std::optional<std::int64_t> Maybe(int column) const;
  /// Valid until the next row.
  [[nodiscard]] std::string_view Text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

/// Somebody else's SQLite database, opened for reading as if nobody writes it. Views, triggers and
/// functions of its schema are off; `steps` bounds the work of all requests together.
class SqliteReader {
 public:
  [[nodiscard]] static Result<SqliteReader> Open(const std::filesystem::path& path,
                                                 std::uint64_t steps);

  [[nodiscard]] bool HasTable(std::string_view table) const;

  /// Calls `row` for every row of `table`, in the file's order, until it returns false. A column
  /// that the table lacks reads as NULL. No rows when there is no such table. kParse when the
  /// database is damaged or takes more steps than allowed.
  [[nodiscard]] Status Each(std::string_view table, const std::vector<std::string_view>& columns,
                            const std::function<bool(const SqliteRow&)>& row) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };

  struct Budget {
    std::uint64_t left = 0;
  };

  SqliteReader() = default;
  [[nodiscard]] Error Damaged(std::string_view doing) const;
  Status LearnTables();

  std::string path_;
  std::unique_ptr<Budget> budget_;
  std::unique_ptr<sqlite3, Close> database_;
  std::vector<std::string> tables_;
};

}  // namespace kernelpro
