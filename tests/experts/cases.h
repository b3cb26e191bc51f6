// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernelpro/finding.h"
#include "kernelpro/profile.h"
#include "kernelpro/tool.h"

/// The experts' evidence: micro kernels that must fire a tool or leave it silent, pairs of a flawed
/// and a repaired kernel, and kernels of libraries. Sources, lists and the script that measures
/// them: tests/gpu/experts. Stored profiles, one file a program: tests/data/experts.
namespace kernelpro::experts {

struct MatrixCase {
  std::string name, program, tool;
  bool fires = false;
  std::map<std::string, double> task;  ///< "compulsory_bytes", "flops" where the list has them
};

struct PairCase {
  std::string name, program;
  std::vector<std::string> tools;  ///< that count as naming the planted flaw, the main one first
  std::map<std::string, double> task;
};

struct TunedCase {
  std::string name, program, kernel;  ///< kernel: regular expression over demangled names
  std::map<std::string, double> task;
};

[[nodiscard]] Result<std::vector<MatrixCase>> ReadMatrix(const std::filesystem::path& folder);
[[nodiscard]] Result<std::vector<PairCase>> ReadPairs(const std::filesystem::path& list);
[[nodiscard]] Result<std::vector<TunedCase>> ReadTuned(const std::filesystem::path& folder);

/// Stored profiles by program, read once.
class Profiles {
 public:
  explicit Profiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Null when there is no such program.
  [[nodiscard]] const Profile* Program(const std::string& program);
  /// The profile of one kernel alone (with its program's system figures); nothing when it is not
  /// there.
  [[nodiscard]] std::optional<Profile> Kernel(const std::string& program,
                                              const std::string& kernel);

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::optional<Profile>> programs_;
};

[[nodiscard]] Hardware H200();

/// The built-in tools' findings on the profile, with the task's figures.
[[nodiscard]] Diagnosis Judge(Profile profile, const std::map<std::string, double>& task);

/// Whether a tool had something to say, be it suppressed in favour of another.
[[nodiscard]] bool Fired(const Diagnosis& diagnosis, const std::string& id);

/// Pairs whose repair gained less hold no flaw to find.
inline constexpr double kLeastGain = 0.05;

/// Position of the first finding that has one of the ids; 0 is the primary one. Nothing: none has.
[[nodiscard]] std::optional<std::size_t> RankOf(const Diagnosis& diagnosis,
                                                const std::vector<std::string>& ids);

}  // namespace kernelpro::experts
