// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_run_store.h"

#include <nlohmann/json.hpp>

namespace kernelpro::store {
namespace {

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

NodeRecord ReadNode(const Row& row) {
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
  n.profile = row.Text(17);
  n.origin = row.Text(18);
  n.barren = row.Integer(19);
  return n;
}

}  // namespace

std::optional<std::string> SqliteRunStore::Fact(std::string_view name) const {
  std::optional<std::string> value;
  const Status read = database_.Query("SELECT value FROM fact WHERE name = ?", {name},
                                      [&value](const Row& row) { value = row.Text(0); });
  return read ? value : std::nullopt;
}

Status SqliteRunStore::SetFact(std::string_view name, std::string_view value) {
  return database_.Run(
      "INSERT INTO fact VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
      {name, value});
}

Result<NodeId> SqliteRunStore::AddNode(const NodeRecord& node,
                                       std::optional<std::int64_t> proposal) {
  const std::string flags = FlagsText(node.flags);
  NodeId id = 0;
  KP_RETURN_IF_ERROR(database_.Transaction([&]() -> Status {
    KP_RETURN_IF_ERROR(database_.Run(
        "INSERT INTO node (parent, action, reason, finding, prior, source, flags, content, "
        "origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        {node.parent, node.action, node.reason, node.finding, node.prior, node.source, flags,
         node.content, node.origin}));
    id = database_.LastRowId();
    return proposal ? TakeProposal(*proposal) : Ok();
  }));
  return id;
}

Status SqliteRunStore::InsertProposals(NodeId node, const std::vector<ProposalRecord>& proposals,
                                       const std::vector<DeclinedRecord>& declined) {
  for (const ProposalRecord& p : proposals) {
    const std::string flags = FlagsText(p.flags);
    KP_RETURN_IF_ERROR(database_.Run(
        "INSERT INTO proposal (node, action, reason, finding, prior, source, flags, content, "
        "origin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        {node, p.action, p.reason, p.finding, p.prior, p.source, flags, p.content, p.origin}));
  }
  for (const DeclinedRecord& d : declined) {
    KP_RETURN_IF_ERROR(
        database_.Run("INSERT INTO declined VALUES (?, ?, ?)", {node, d.action, d.why}));
  }
  return Ok();
}

Status SqliteRunStore::Finish(const NodeResult& result) {
  return database_.Transaction([&]() -> Status {
    bool first = false;
    KP_RETURN_IF_ERROR(database_.Query(
        "UPDATE node SET done = 1, verdict = ?, verdict_reason = ?, time_us = ?, provenance = ?, "
        "evaluation = ?, diagnosis = ?, feedback = ?, profile = ? WHERE id = ? AND done = 0 "
        "RETURNING id",
        {result.verdict, result.verdict_reason, result.time_us, result.provenance,
         result.evaluation, result.diagnosis, result.feedback, result.profile, result.node},
        [&first](const Row&) { first = true; }));
    return first ? InsertProposals(result.node, result.proposals, result.declined) : Ok();
  });
}

Status SqliteRunStore::TakeProposal(std::int64_t proposal) {
  return database_.Run("UPDATE proposal SET taken = 1 WHERE id = ?", {proposal});
}

Result<std::vector<NodeRecord>> SqliteRunStore::Nodes() const {
  std::vector<NodeRecord> nodes;
  KP_RETURN_IF_ERROR(database_.Query(
      "SELECT id, parent, action, reason, finding, prior, source, flags, content, done, verdict, "
      "verdict_reason, time_us, provenance, evaluation, diagnosis, feedback, profile, origin, "
      "barren FROM node ORDER BY id",
      {}, [&nodes](const Row& row) { nodes.push_back(ReadNode(row)); }));
  return nodes;
}

Result<std::vector<ProposalRecord>> SqliteRunStore::Proposals(NodeId node) const {
  std::vector<ProposalRecord> proposals;
  KP_RETURN_IF_ERROR(database_.Query(
      "SELECT id, node, action, reason, finding, prior, source, flags, content, origin, taken "
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
        p.origin = row.Text(9);
        p.taken = row.Integer(10) != 0;
        proposals.push_back(std::move(p));
      }));
  return proposals;
}

Result<std::vector<DeclinedRecord>> SqliteRunStore::Declined(NodeId node) const {
  std::vector<DeclinedRecord> declined;
  KP_RETURN_IF_ERROR(
      database_.Query("SELECT node, action, why FROM declined WHERE node = ? ORDER BY rowid",
                      {node}, [&declined](const Row& row) {
                        declined.push_back({row.Integer(0), row.Text(1), row.Text(2)});
                      }));
  return declined;
}

}  // namespace kernelpro::store
