// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_run_store.h"

namespace kernelpro::store {

Status SqliteRunStore::AddExpansion(const Expansion& expansion) {
  return database_.Transaction([&]() -> Status {
    KP_RETURN_IF_ERROR(InsertProposals(expansion.node, expansion.proposals, expansion.declined));
    for (const LessonRecord& lesson : expansion.lessons) {
      KP_RETURN_IF_ERROR(AddLesson(lesson));
    }
    KP_RETURN_IF_ERROR(
        database_.Run("UPDATE exchange SET used = 1 WHERE node = ?", {expansion.node}));
    return database_.Run(expansion.barren ? "UPDATE node SET barren = barren + 1 WHERE id = ?"
                                          : "UPDATE node SET barren = 0 WHERE id = ?",
                         {expansion.node});
  });
}

Status SqliteRunStore::AddLesson(const LessonRecord& lesson) {
  return database_.Run("INSERT INTO lesson (node, kind, text) VALUES (?, ?, ?)",
                       {lesson.node, lesson.kind, lesson.text});
}

Result<std::vector<LessonRecord>> SqliteRunStore::Lessons() const {
  std::vector<LessonRecord> lessons;
  KP_RETURN_IF_ERROR(database_.Query(
      "SELECT id, node, kind, text FROM lesson ORDER BY id", {}, [&lessons](const Row& row) {
        lessons.push_back({row.Integer(0), row.Integer(1), row.Text(2), row.Text(3)});
      }));
  return lessons;
}

Result<std::int64_t> SqliteRunStore::AddExchange(const ExchangeRecord& e) {
  KP_RETURN_IF_ERROR(database_.Run(
      "INSERT INTO exchange (node, purpose, hash, request, state, input_tokens, output_tokens, "
      "cost) VALUES (?, ?, ?, ?, 'sent', ?, ?, ?)",
      {e.node, e.purpose, e.hash, e.request, e.input_tokens, e.output_tokens, e.cost}));
  return database_.LastRowId();
}

Status SqliteRunStore::FinishExchange(const ExchangeRecord& e) {
  return database_.Run(
      "UPDATE exchange SET state = ?, response = ?, model = ?, input_tokens = ?, output_tokens = "
      "?, cost = ? WHERE id = ?",
      {e.state, e.response, e.model, e.input_tokens, e.output_tokens, e.cost, e.id});
}

Result<std::vector<ExchangeRecord>> SqliteRunStore::Exchanges() const {
  std::vector<ExchangeRecord> exchanges;
  KP_RETURN_IF_ERROR(database_.Query(
      "SELECT id, node, purpose, hash, request, state, response, model, input_tokens, "
      "output_tokens, cost, used FROM exchange ORDER BY id",
      {}, [&exchanges](const Row& row) {
        ExchangeRecord e;
        e.id = row.Integer(0);
        e.node = row.Integer(1);
        e.purpose = row.Text(2);
        e.hash = row.Text(3);
        e.request = row.Text(4);
        e.state = row.Text(5);
        e.response = row.Text(6);
        e.model = row.Text(7);
        e.input_tokens = row.Integer(8);
        e.output_tokens = row.Integer(9);
        e.cost = row.Real(10);
        e.used = row.Integer(11) != 0;
        exchanges.push_back(std::move(e));
      }));
  return exchanges;
}

Status SqliteRunStore::SetMeasurement(const MeasurementRecord& m) {
  return database_.Run("INSERT OR REPLACE INTO measurement VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                       {m.node, m.device, m.gpu, m.verdict, m.verdict_reason, m.time_us,
                        m.provenance, m.evaluation});
}

Result<std::vector<MeasurementRecord>> SqliteRunStore::Measurements() const {
  std::vector<MeasurementRecord> measurements;
  KP_RETURN_IF_ERROR(database_.Query(
      "SELECT node, device, gpu, verdict, verdict_reason, time_us, provenance, "
      "evaluation FROM measurement ORDER BY device, node",
      {}, [&measurements](const Row& row) {
        measurements.push_back({row.Integer(0), row.Text(1), row.Text(2), row.Text(3), row.Text(4),
                                row.Real(5), row.Text(6), row.Text(7)});
      }));
  return measurements;
}

}  // namespace kernelpro::store
