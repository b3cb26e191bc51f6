// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "store/database.h"
#include "store/folder_lock.h"
#include "store/run_store.h"

namespace kernelpro::store {

/// The one implementation of RunStore. Nodes and proposals are in sqlite_run_store.cc, lessons,
/// exchanges and measurements in sqlite_run_records.cc.
class SqliteRunStore final : public RunStore {
 public:
  /// Without a lock it is a private copy, whose folder `copy` goes with it.
  SqliteRunStore(std::filesystem::path folder, std::optional<FolderLock> lock, Database database,
                 std::optional<TemporaryFolder> copy = std::nullopt)
      : folder_(std::move(folder)),
        copy_(std::move(copy)),
        lock_(std::move(lock)),
        database_(std::move(database)) {}

  [[nodiscard]] const std::filesystem::path& folder() const override { return folder_; }

  [[nodiscard]] std::optional<std::string> Fact(std::string_view name) const override;
  [[nodiscard]] Status SetFact(std::string_view name, std::string_view value) override;

  [[nodiscard]] Result<NodeId> AddNode(const NodeRecord& node,
                                       std::optional<std::int64_t> proposal) override;
  [[nodiscard]] Status Finish(const NodeResult& result) override;
  [[nodiscard]] Status TakeProposal(std::int64_t proposal) override;
  [[nodiscard]] Status AddExpansion(const Expansion& expansion) override;
  [[nodiscard]] Status AddLesson(const LessonRecord& lesson) override;
  [[nodiscard]] Result<std::int64_t> AddExchange(const ExchangeRecord& exchange) override;
  [[nodiscard]] Status FinishExchange(const ExchangeRecord& exchange) override;
  [[nodiscard]] Status SetMeasurement(const MeasurementRecord& measurement) override;

  [[nodiscard]] Result<std::vector<NodeRecord>> Nodes() const override;
  [[nodiscard]] Result<std::vector<ProposalRecord>> Proposals(NodeId node) const override;
  [[nodiscard]] Result<std::vector<DeclinedRecord>> Declined(NodeId node) const override;
  [[nodiscard]] Result<std::vector<LessonRecord>> Lessons() const override;
  [[nodiscard]] Result<std::vector<ExchangeRecord>> Exchanges() const override;
  [[nodiscard]] Result<std::vector<MeasurementRecord>> Measurements() const override;

 private:
  [[nodiscard]] Status InsertProposals(NodeId node, const std::vector<ProposalRecord>& proposals,
                                       const std::vector<DeclinedRecord>& declined);

  std::filesystem::path folder_;
  // Destroyed last to first: the database is closed before its lock is dropped or its copy removed.
  std::optional<TemporaryFolder> copy_;
  std::optional<FolderLock> lock_;
  Database database_;
};

}  // namespace kernelpro::store
