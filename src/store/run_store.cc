// SPDX-License-Identifier: Apache-2.0
#include "store/run_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "store/database.h"

namespace kernelpro::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "1";

constexpr std::string_view kSchema[] = {
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

std::string FlagsText(const std::vector<std::string>& flags) {
  return nlohmann::json(flags).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> ParseFlags(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  std::vector<std::string> flags;
  if (json.is_array()) {
    for (const auto& flag : json) {
      if (flag.is_string()) {
        flags.push_back(flag.get<std::string>());
      }
    }
  }
  return flags;
}

/// An advisory lock on <folder>/lock that the kernel drops when the process dies.
class FolderLock {
 public:
  [[nodiscard]] static Result<FolderLock> Take(const fs::path& folder) {
    const fs::path file = folder / "lock";
    FolderLock lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (lock.fd_ < 0) {
      return Fail(ErrorCode::kIo,
                  fmt::format("cannot write to {}: {}", folder.string(),
                              std::error_code(errno, std::generic_category()).message()));
    }
    if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("run {} is in use by another kernelpro", folder.string()));
    }
    return lock;
  }

  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  FolderLock& operator=(FolderLock&&) = delete;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  ~FolderLock() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

 private:
  explicit FolderLock(int fd) : fd_(fd) {}

  int fd_;
};

class SqliteRunStore final : public RunStore {
 public:
  SqliteRunStore(fs::path folder, FolderLock lock, Database database)
      : folder_(std::move(folder)), lock_(std::move(lock)), database_(std::move(database)) {}

  [[nodiscard]] const fs::path& folder() const override { return folder_; }

  [[nodiscard]] std::optional<std::string> Fact(std::string_view name) const override {
    std::optional<std::string> value;
    const Status read = database_.Query("SELECT value FROM fact WHERE name = ?", {name},
                                        [&value](const Row& row) { value = row.Text(0); });
    return read ? value : std::nullopt;
  }

  [[nodiscard]] Status SetFact(std::string_view name, std::string_view value) override {
    return database_.Run(
        "INSERT INTO fact VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = "
        "excluded.value",
        {name, value});
  }

  [[nodiscard]] Result<NodeId> AddNode(const NodeRecord& node,
                                       std::optional<std::int64_t> proposal) override {
    const std::string flags = FlagsText(node.flags);
    NodeId id = 0;
    KP_RETURN_IF_ERROR(database_.Transaction([&]() -> Status {
      KP_RETURN_IF_ERROR(database_.Run(
          "INSERT INTO node (parent, action, reason, finding, prior, source, flags, content) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
          {node.parent, node.action, node.reason, node.finding, node.prior, node.source, flags,
           node.content}));
      id = database_.LastRowId();
      return proposal ? TakeProposal(*proposal) : Ok();
    }));
    return id;
  }

  [[nodiscard]] Status Finish(const NodeResult& result) override {
    return database_.Transaction([&]() -> Status {
      KP_RETURN_IF_ERROR(database_.Run(
          "UPDATE node SET done = 1, verdict = ?, verdict_reason = ?, time_us = ?, provenance = ?, "
          "evaluation = ?, diagnosis = ?, feedback = ? WHERE id = ? AND done = 0",
          {result.verdict, result.verdict_reason, result.time_us, result.provenance,
           result.evaluation, result.diagnosis, result.feedback, result.node}));
      for (const ProposalRecord& p : result.proposals) {
        const std::string flags = FlagsText(p.flags);
        KP_RETURN_IF_ERROR(database_.Run(
            "INSERT INTO proposal (node, action, reason, finding, prior, source, flags, content) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            {result.node, p.action, p.reason, p.finding, p.prior, p.source, flags, p.content}));
      }
      for (const DeclinedRecord& d : result.declined) {
        KP_RETURN_IF_ERROR(
            database_.Run("INSERT INTO declined VALUES (?, ?, ?)", {result.node, d.action, d.why}));
      }
      return Ok();
    });
  }

  [[nodiscard]] Status TakeProposal(std::int64_t proposal) override {
    return database_.Run("UPDATE proposal SET taken = 1 WHERE id = ?", {proposal});
  }

  [[nodiscard]] Result<std::vector<NodeRecord>> Nodes() const override {
    std::vector<NodeRecord> nodes;
    KP_RETURN_IF_ERROR(database_.Query(
        "SELECT id, parent, action, reason, finding, prior, source, flags, content, done, verdict, "
        "verdict_reason, time_us, provenance, evaluation, diagnosis, feedback FROM node ORDER BY "
        "id",
        {}, [&nodes](const Row& row) {
          NodeRecord n;
          n.id = row.Integer(0);
          n.parent = row.Integer(1);
          n.action = row.Text(2);
          n.reason = row.Text(3);
          n.finding = row.Text(4);
          n.prior = row.Real(5);
          n.source = row.Text(6);
          n.flags = ParseFlags(row.Text(7));
          n.content = row.Text(8);
          n.done = row.Integer(9) != 0;
          n.verdict = row.Text(10);
          n.verdict_reason = row.Text(11);
          n.time_us = row.Real(12);
          n.provenance = row.Text(13);
          n.evaluation = row.Text(14);
          n.diagnosis = row.Text(15);
          n.feedback = row.Text(16);
          nodes.push_back(std::move(n));
        }));
    return nodes;
  }

  [[nodiscard]] Result<std::vector<ProposalRecord>> Proposals(NodeId node) const override {
    std::vector<ProposalRecord> proposals;
    KP_RETURN_IF_ERROR(database_.Query(
        "SELECT id, node, action, reason, finding, prior, source, flags, content, taken "
        "FROM proposal WHERE node = ? ORDER BY id",
        {node}, [&proposals](const Row& row) {
          ProposalRecord p;
          p.id = row.Integer(0);
          p.node = row.Integer(1);
          p.action = row.Text(2);
          p.reason = row.Text(3);
          p.finding = row.Text(4);
          p.prior = row.Real(5);
          p.source = row.Text(6);
          p.flags = ParseFlags(row.Text(7));
          p.content = row.Text(8);
          p.taken = row.Integer(9) != 0;
          proposals.push_back(std::move(p));
        }));
    return proposals;
  }

  [[nodiscard]] Result<std::vector<DeclinedRecord>> Declined(NodeId node) const override {
    std::vector<DeclinedRecord> declined;
    KP_RETURN_IF_ERROR(
        database_.Query("SELECT node, action, why FROM declined WHERE node = ? ORDER BY rowid",
                        {node}, [&declined](const Row& row) {
                          declined.push_back({row.Integer(0), row.Text(1), row.Text(2)});
                        }));
    return declined;
  }

 private:
  fs::path folder_;
  FolderLock lock_;
  Database database_;
};

}  // namespace

Result<std::unique_ptr<RunStore>> RunStore::Create(
    const fs::path& folder, const std::map<std::string, std::string>& facts) {
  std::error_code error;
  if (fs::exists(folder / "run.db", error)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} already holds a run; continue it with --resume {}, or name another "
                            "folder",
                            folder.string(), folder.string()));
  }
  fs::create_directories(folder, error);
  if (error) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("cannot create run folder {}: {}", folder.string(), error.message()));
  }
  KP_ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(folder));
  KP_ASSIGN_OR_RETURN(Database database, Database::Open(folder / "run.db", true));
  KP_RETURN_IF_ERROR(database.Transaction([&]() -> Status {
    for (const std::string_view sql : kSchema) {
      KP_RETURN_IF_ERROR(database.Run(sql));
    }
    KP_RETURN_IF_ERROR(database.Run("INSERT INTO fact VALUES ('format', ?)", {kFormat}));
    for (const auto& [name, value] : facts) {
      KP_RETURN_IF_ERROR(database.Run("INSERT INTO fact VALUES (?, ?)", {name, value}));
    }
    return Ok();
  }));
  return std::unique_ptr<RunStore>(
      std::make_unique<SqliteRunStore>(folder, std::move(lock), std::move(database)));
}

Result<std::unique_ptr<RunStore>> RunStore::Open(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder / "run.db", error)) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} holds no run (there is no run.db in it)", folder.string()));
  }
  KP_ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(folder));
  KP_ASSIGN_OR_RETURN(Database database, Database::Open(folder / "run.db", false));
  auto store = std::make_unique<SqliteRunStore>(folder, std::move(lock), std::move(database));
  const std::optional<std::string> format = store->Fact("format");
  if (format != kFormat) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: run format is '{}', this KernelPro reads '{}'", folder.string(),
                            Printable(format.value_or("unknown"), 40), kFormat));
  }
  return std::unique_ptr<RunStore>(std::move(store));
}

}  // namespace kernelpro::store
