// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "propose/playbook/playbook.h"

namespace kernelpro::playbook {

/// A task whose TaskArgs has axes m, n, k and float tensors a, b (inputs) and c (output).
[[nodiscard]] inline Task SmallTask() {
  Task task;
  task.name = "small";
  task.axes = {"m", "n", "k"};
  task.tensors = {{"a", DType::kF32, Role::kInput, {"m", "k"}, {}},
                  {"b", DType::kF32, Role::kInput, {"k", "n"}, {}},
                  {"c", DType::kF32, Role::kOutput, {"m", "n"}, {}}};
  task.tolerance = {1e-4, 1e-4};
  return task;
}

[[nodiscard]] inline Finding MakeFinding(std::string id, double severity, double bound) {
  Finding finding;
  finding.id = std::move(id);
  finding.title = "Title of " + finding.id;
  finding.severity = severity;
  finding.bound = bound;
  finding.seen = "32.0 sectors per request, 4 would do";
  return finding;
}

/// A kernel and its launch as a whole candidate.
[[nodiscard]] inline std::string Program(std::string_view kernel, std::string_view launch) {
  return "#include \"kernelpro_task.h\"\n\n" + std::string(kernel) +
         "\nextern \"C\" cudaError_t kernelpro_run(const TaskArgs* args, cudaStream_t stream) {\n"
         "  const int m = static_cast<int>(args->m);\n"
         "  const int n = static_cast<int>(args->n);\n"
         "  const int k = static_cast<int>(args->k);\n" +
         std::string(launch) + "\n  return cudaGetLastError();\n}\n";
}

[[nodiscard]] inline Proposals Ask(Proposer& playbook, const Task& task, std::string source,
                                   std::vector<Finding> findings = {}) {
  const Candidate parent{std::move(source), {}};
  Diagnosis diagnosis;
  diagnosis.findings = std::move(findings);
  const Profile profile;
  auto answer = playbook.Propose({task, parent, diagnosis, profile, 0}, {});
  EXPECT_TRUE(answer.ok()) << (answer ? "" : answer.error().message);
  return answer ? *answer : Proposals{};
}

/// One playbook for all tests of a program: its headers are precompiled once. It goes before main
/// returns, because libclang's own globals are gone when ours would be.
class PlaybookEnvironment final : public ::testing::Environment {
 public:
  void TearDown() override { playbook_.reset(); }

  [[nodiscard]] Proposer& Get() {
    if (playbook_ == nullptr) {
      playbook_ = MakePlaybook({});
    }
    return *playbook_;
  }

 private:
  std::unique_ptr<Proposer> playbook_;
};

// GoogleTest owns it.
inline PlaybookEnvironment* const kPlaybookEnvironment =
    static_cast<PlaybookEnvironment*>(::testing::AddGlobalTestEnvironment(new PlaybookEnvironment));

[[nodiscard]] inline Proposer& SharedPlaybook() {
  return kPlaybookEnvironment->Get();
}

/// The proposal whose action starts so; nothing when it is not offered.
[[nodiscard]] inline const Proposal* Find(const Proposals& answer, std::string_view action) {
  for (const Proposal& proposal : answer.proposals) {
    if (proposal.action.starts_with(action)) {
      return &proposal;
    }
  }
  return nullptr;
}

[[nodiscard]] inline std::string WhyNot(const Proposals& answer, std::string_view action) {
  for (const Declined& declined : answer.declined) {
    if (declined.action.starts_with(action)) {
      return declined.why;
    }
  }
  return "(not declined)";
}

}  // namespace kernelpro::playbook
