// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kernelpro::store {

using Value = std::variant<std::int64_t, double, std::string_view>;

/// A row of a running query; valid inside the callback only.
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}

  [[nodiscard]] std::int64_t Integer(int column) const;
  [[nodiscard]] double Real(int column) const;
  [[nodiscard]] std::string Text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

/// SQLite with errors as values. Statements are prepared per call: a run makes dozens, not
/// millions.
class Database {
 public:
  /// Write-ahead log, full sync at commit, foreign keys on.
  [[nodiscard]] static Result<Database> Open(const std::filesystem::path& file, bool create);
  Database(Database&& other) noexcept;
  Database& operator=(Database&&) = delete;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  [[nodiscard]] Status Run(std::string_view sql, const std::vector<Value>& values = {}) const;
  [[nodiscard]] Status Query(std::string_view sql, const std::vector<Value>& values,
                             const std::function<void(const Row&)>& each) const;
  [[nodiscard]] std::int64_t LastRowId() const;
  /// All of `work` or nothing.
  [[nodiscard]] Status Transaction(const std::function<Status()>& work) const;

 private:
  explicit Database(sqlite3* handle) : handle_(handle) {}

  [[nodiscard]] Error Failure(std::string_view doing) const;

  sqlite3* handle_ = nullptr;
};

}  // namespace kernelpro::store
