// SPDX-License-Identifier: Apache-2.0
#include "store/schema.h"

#include <fmt/format.h>

#include <string>

#include "base/text.h"

namespace kernelpro::store {
namespace {

constexpr std::string_view kFormat1[] = {
    "CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    "CREATE TABLE node (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, action TEXT NOT NULL, "
    "reason TEXT NOT NULL, finding TEXT NOT NULL, prior REAL NOT NULL, source TEXT NOT NULL, "
    "flags TEXT NOT NULL, content TEXT NOT NULL UNIQUE, done INTEGER NOT NULL DEFAULT 0, "
    "verdict TEXT NOT NULL DEFAULT '', verdict_reason TEXT NOT NULL DEFAULT '', "
    "time_us REAL NOT NULL DEFAULT 0, provenance TEXT NOT NULL DEFAULT '', "
    "evaluation TEXT NOT NULL DEFAULT '', diagnosis TEXT NOT NULL DEFAULT '', "
    "feedback TEXT NOT NULL DEFAULT '') STRICT",
    "CREATE TABLE proposal (id INTEGER PRIMARY KEY, node INTEGER NOT NULL REFERENCES node(id), "
    "action TEXT NOT NULL, reason TEXT NOT NULL, finding TEXT NOT NULL, prior REAL NOT NULL, "
    "source TEXT NOT NULL, flags TEXT NOT NULL, content TEXT NOT NULL, "
    "taken INTEGER NOT NULL DEFAULT 0) STRICT",
    "CREATE TABLE declined (node INTEGER NOT NULL REFERENCES node(id), action TEXT NOT NULL, "
    "why TEXT NOT NULL) STRICT",
    "CREATE INDEX proposal_by_node ON proposal(node)",
};

/// Models and agents: profiles kept whole, who wrote a kernel, lessons, exchanges, second devices.
constexpr std::string_view kFrom1To2[] = {
    "ALTER TABLE node ADD COLUMN profile TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE node ADD COLUMN origin TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE node ADD COLUMN barren INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE proposal ADD COLUMN origin TEXT NOT NULL DEFAULT ''",
    "CREATE TABLE lesson (id INTEGER PRIMARY KEY, node INTEGER NOT NULL, kind TEXT NOT NULL, "
    "text TEXT NOT NULL) STRICT",
    "CREATE TABLE exchange (id INTEGER PRIMARY KEY, node INTEGER NOT NULL, purpose TEXT NOT NULL, "
    "hash TEXT NOT NULL, request TEXT NOT NULL, state TEXT NOT NULL, "
    "response TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '', "
    "input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0, "
    "cost REAL NOT NULL DEFAULT 0, used INTEGER NOT NULL DEFAULT 0) STRICT",
    "CREATE TABLE measurement (node INTEGER NOT NULL REFERENCES node(id), device TEXT NOT NULL, "
    "gpu TEXT NOT NULL, verdict TEXT NOT NULL, verdict_reason TEXT NOT NULL, time_us REAL NOT "
    "NULL, provenance TEXT NOT NULL, evaluation TEXT NOT NULL, PRIMARY KEY (node, device)) STRICT",
};

template <std::size_t N>
Status RunAll(const Database& database, const std::string_view (&statements)[N]) {
  for (const std::string_view sql : statements) {
    KP_RETURN_IF_ERROR(database.Run(sql));
  }
  return Ok();
}

Result<std::string> Format(const Database& database) {
  std::string format = "unknown";
  KP_RETURN_IF_ERROR(database.Query("SELECT value FROM fact WHERE name = 'format'", {},
                                    [&format](const Row& row) { format = row.Text(0); }));
  return format;
}

}  // namespace

Status CreateTables(const Database& database) {
  KP_RETURN_IF_ERROR(RunAll(database, kFormat1));
  KP_RETURN_IF_ERROR(RunAll(database, kFrom1To2));
  return database.Run("INSERT INTO fact VALUES ('format', ?)", {kRunFormat});
}

Status BringUpToDate(const Database& database, std::string_view shown) {
  KP_ASSIGN_OR_RETURN(const std::string format, Format(database));
  if (format == kRunFormat) {
    return Ok();
  }
  if (format != "1") {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: run format is '{}', this KernelPro reads 1 to {}", shown,
                            Printable(format, 40), kRunFormat));
  }
  return database.Transaction([&]() -> Status {
    // Only now nobody else writes: another process may have done it in between.
    KP_ASSIGN_OR_RETURN(const std::string still, Format(database));
    if (still == kRunFormat) {
      return Ok();
    }
    KP_RETURN_IF_ERROR(RunAll(database, kFrom1To2));
    return database.Run("UPDATE fact SET value = ? WHERE name = 'format'", {kRunFormat});
  });
}

}  // namespace kernelpro::store
