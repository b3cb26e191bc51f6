// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "search/driver.h"

/// For tests: kernels without a compiler and a proposer that is asked on demand. A source is the
/// path to it, "s.1.t50": each piece is a step. The last piece decides what it is worth.
namespace kernelpro::search::testing {

inline std::string LastPiece(const std::string& source) {
  return std::string(Split(source, '.').back());
}

/// "w..." is wrong, "u..." unsupported, "i..." our own failure, "t50" takes 50 us; of any other the
/// time falls with the depth, but not at every step.
class PathAssessor : public Assessor {
 public:
  Result<Assessment> Assess(const Candidate& candidate, const std::stop_token&) override {
    ++assessed;
    if (source != nullptr && assessed == stop_at) {
      source->request_stop();
    } else {
      EXPECT_TRUE(seen.insert(candidate.source).second) << candidate.source << " evaluated twice";
    }
    Assessment a;
    const std::string piece = LastPiece(candidate.source);
    a.evaluation.verdict = piece[0] == 'w'   ? Verdict::kWrongResult
                           : piece[0] == 'u' ? Verdict::kUnsupported
                           : piece[0] == 'i' ? Verdict::kInfrastructureError
                                             : Verdict::kOk;
    if (a.evaluation.verdict != Verdict::kOk) {
      a.evaluation.reason = "reason of " + candidate.source;
      return a;
    }
    a.evaluation.time_us = TimeOf(candidate.source);
    a.feedback = "feedback of " + candidate.source;
    a.profile.kernels.resize(1);
    a.profile.kernels[0].name = candidate.source;
    a.profile.kernels[0].time_us = a.evaluation.time_us;
    a.diagnosis = Rediagnose(a.profile);
    return a;
  }

  [[nodiscard]] Diagnosis Rediagnose(const Profile& profile) const override {
    Diagnosis diagnosis;
    for (const KernelProfile& kernel : profile.kernels) {
      Finding finding;
      finding.id = "slow." + LastPiece(kernel.name);
      finding.title = "Slow " + kernel.name;
      finding.bound = 0.5;
      diagnosis.findings.push_back(finding);
    }
    return diagnosis;
  }

  static double TimeOf(const std::string& path) {
    const std::string piece = LastPiece(path);
    long long given = 0;
    if (piece[0] == 't' && ParseInteger(piece.substr(1), &given)) {
      return static_cast<double>(given);
    }
    unsigned mixed = 7;
    for (const char c : path) {
      mixed = mixed * 31U + static_cast<unsigned char>(c);
    }
    const auto depth = static_cast<double>(Split(path, '.').size());
    return 1000.0 * std::pow(0.85, depth) * (1.0 + 0.1 * (mixed % 7U));
  }

  int assessed = 0;
  std::set<std::string> seen;
  std::stop_source* source = nullptr;
  int stop_at = -1;
};

inline std::string Text(const NodeBrief& n) {
  return std::to_string(n.node) + "<" + std::to_string(n.parent) + " " + n.action + "|" + n.reason +
         "|" + n.finding + "|" + n.verdict + "|" + n.verdict_reason + "|" +
         std::to_string(n.time_us) + "\n";
}

/// All that a proposer is told.
inline std::string Text(const ProposalRequest& r) {
  std::string text = "about " + Text(r.node) + r.parent.source + "\nseed " +
                     std::to_string(r.seed) + "\nfeedback " + r.feedback + "\nbest " +
                     Text(r.best) + std::to_string(r.seed_us) + r.provenance + r.gpu + "\n";
  for (const NodeBrief& n : r.path) {
    text += "path " + Text(n);
  }
  for (const NodeBrief& n : r.tried) {
    text += "tried " + Text(n);
  }
  for (const Lesson& l : r.memory) {
    text += "memory " + std::to_string(l.node) + std::string(Name(l.kind)) + l.text + "\n";
  }
  for (const Finding& f : r.diagnosis.findings) {
    text += "finding " + f.id + f.title + std::to_string(f.bound) + "\n";
  }
  for (const KernelProfile& k : r.profile.kernels) {
    text += "kernel " + k.name + std::to_string(k.time_us) + "\n";
  }
  return text;
}

inline Proposal Step(const std::string& parent, const std::string& piece, double prior = 0.5) {
  Proposal proposal;
  proposal.candidate.source = parent + "." + piece;
  proposal.action = "step_" + piece;
  proposal.reason = "because of " + piece;
  proposal.finding = "slow." + LastPiece(parent);
  proposal.prior = prior;
  return proposal;
}

/// Its k-th child of a node is the k-th piece of the plan for that node, else the number k. An
/// empty piece is an answer without a kernel, "=x" proposes the source x as it stands.
class PlannedProposer : public Proposer {
 public:
  [[nodiscard]] std::string_view name() const override { return "planned"; }

  [[nodiscard]] bool on_demand() const override { return true; }

  Result<Proposals> Propose(const ProposalRequest& request, const std::stop_token&) override {
    requests.push_back(Text(request));
    nodes.push_back(request.node.node);
    const auto asked = static_cast<int>(requests.size());
    if (asked == fail_at) {
      return Fail(fail_with, "planted");
    }
    if (source != nullptr && asked == stop_at) {
      source->request_stop();
      if (cut_off) {
        return Fail(ErrorCode::kCancelled, "stopped");
      }
    }
    const std::size_t k = request.tried.size();
    const auto planned = plan.find(request.parent.source);
    const std::string piece = planned != plan.end() && k < planned->second.size()
                                  ? planned->second[k]
                                  : std::to_string(k);
    Proposals answer;
    if (piece.empty()) {
      answer.declined.push_back({"nothing", "no idea for " + request.parent.source});
      return answer;
    }
    answer.proposals.push_back(Step(request.parent.source, piece));
    if (piece[0] == '=') {
      answer.proposals.back().candidate.source = piece.substr(1);
    }
    answer.lessons.push_back({Lesson::Kind::kFact, "made " + piece, request.node.node});
    return answer;
  }

  std::map<std::string, std::vector<std::string>> plan;
  std::vector<std::string> requests;
  std::vector<store::NodeId> nodes;  ///< that were asked about
  int fail_at = -1;
  ErrorCode fail_with = ErrorCode::kUnavailable;
  std::stop_source* source = nullptr;
  int stop_at = -1;
  bool cut_off = true;  ///< no answer when stopped
};

class SilentObserver : public ProgressObserver {
 public:
  void OnProgress(const Progress&) override {}
};

/// Runs and runs continued, each by its name, with one proposer and one assessor.
class ToyRunTest : public ::testing::Test {
 protected:
  ToyRunTest() : temporary_(TemporaryFolder::Create("kp-toy").value()) {}

  [[nodiscard]] std::filesystem::path folder(const std::string& run) const {
    return temporary_.path() / run;
  }

  [[nodiscard]] std::unique_ptr<store::RunStore> OpenRun(const std::string& run) const {
    return std::filesystem::exists(folder(run)) ? store::RunStore::Open(folder(run)).value()
                                                : store::RunStore::Create(folder(run), {}).value();
  }

  Result<SearchResult> Search(const std::string& run, std::uint32_t evaluations,
                              std::string_view policy = "mcts", std::uint64_t seed = 1) {
    const auto store = OpenRun(run);
    const auto chosen = MakePolicy(policy).value();
    auto result = RunSearch({task, *store, assessor, proposer, *chosen, clock, observer}, {"s", {}},
                            {.evaluations = evaluations,
                             .time = std::chrono::hours(1),
                             .seed = seed,
                             .repairs = repairs,
                             .gpu = "toy gpu"},
                            stop.get_token());
    nodes = store->Nodes().value();
    return result;
  }

  /// Another run from here on.
  void Forget() {
    assessor.seen.clear();
    assessor.assessed = 0;
    proposer.requests.clear();
    proposer.nodes.clear();
  }

  [[nodiscard]] std::vector<std::string> Sources() const {
    std::vector<std::string> sources;
    for (const auto& node : nodes) {
      sources.push_back(node.source);
    }
    return sources;
  }

  Task task;
  PathAssessor assessor;
  PlannedProposer proposer;
  SystemClock clock;
  SilentObserver observer;
  std::stop_source stop;
  std::uint32_t repairs = 2;
  std::vector<store::NodeRecord> nodes;

 private:
  TemporaryFolder temporary_;
};

}  // namespace kernelpro::search::testing
