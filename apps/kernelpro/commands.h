// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "evidence_files.h"

/// The subcommands: options as parsed, and what each returns to the shell: 0 done, 1 the job failed
/// honestly, 2 bad usage or input, 3 the machine lacks something.
namespace kernelpro::app {

/// Which model proposes, what it is told and what it may spend.
struct ModelOptions {
  std::string model;     ///< "openai:NAME" | "anthropic:NAME"
  std::string base_url;  ///< empty: the provider's own
  std::filesystem::path key_file;
  std::filesystem::path prices;
  std::optional<std::array<double, 2>> price;  ///< dollars per million tokens: in, out
  std::optional<double> max_cost;              ///< dollars, of the run in all its sessions
  std::optional<std::uint64_t> max_tokens;     ///< in and out together, likewise
  std::string feedback = "tools";
  std::string orchestration = "proactive";
  std::string effort;
  double temperature = 0.7;
  bool no_temperature = false;
  std::vector<double> seed_temperatures = {0.2, 0.4, 0.6, 0.8, 1.0};
  std::uint32_t seed_rounds = 1;
  std::uint32_t answer_tokens = 16384;
  std::uint32_t repairs = 2;
  bool no_research = false;
  bool no_stream = false;
  std::filesystem::path code;     ///< sources that the researcher may search
  std::filesystem::path prompts;  ///< the user's own, in place of the built-in ones
  bool dry_run = false;
};

struct OptimizeOptions {
  std::filesystem::path task;
  std::string device = "auto";
  std::string proposer = "playbook";
  std::string search = "mcts";
  std::uint32_t evaluations = 40;
  double minutes = 5;
  std::optional<std::uint64_t> seed;
  std::filesystem::path run;
  std::filesystem::path resume;
  ModelOptions model;
  bool json = false;
};

struct CandidateOptions {  ///< evaluate
  std::filesystem::path task;
  std::filesystem::path source;
  std::vector<std::string> flags;
  std::string device = "auto";
  bool no_filter = false;  ///< real GPU: do not ask the emulator first
  bool sanitize = false;   ///< evaluate: compute-sanitizer too
  bool json = false;
};

/// profile and diagnose: a candidate of a task, a program of its own, or files.
struct DiagnoseOptions {
  CandidateOptions candidate;          ///< task: also a .cu file or a program
  std::string kernel;                  ///< of a program
  std::vector<std::string> arguments;  ///< of a program
  bool no_counters = false;            ///< of a program: leave the hardware counters alone
  bool no_samples = false;             ///< of a program: do not sample instructions
  double energy_seconds = 0;           ///< of a candidate on a real GPU, >= 5; 0: not measured
  EvidenceFiles files;
  std::string gpu = "auto";  ///< whose figures are used for files
  std::filesystem::path before, after;
  std::filesystem::path rules;               ///< folder of the user's rules
  std::vector<std::filesystem::path> tools;  ///< the user's own programs
  double tool_seconds = 10;
  std::string format = "text";  ///< text | feedback | markdown
  std::filesystem::path save;   ///< the profile as JSON
};

struct EmulateOptions {
  std::filesystem::path source;  ///< .cu or .ptx
  std::string kernel;
  std::string grid = "1";
  std::string block = "1";
  std::vector<std::string> arguments;
  std::uint64_t shared = 0;
  std::string gpu = "h200";
  bool sample = false;
  bool full = false;
  bool json = false;
};

/// agent VERB: which of the fields count depends on the verb.
struct AgentOptions {
  enum class Verb : std::uint8_t {
    kStart,
    kNext,
    kSubmit,
    kEvaluate,
    kDiagnose,
    kMemory,
    kNote,
    kStatus,
    kReport,
  };
  Verb verb = Verb::kStatus;
  std::filesystem::path run;     ///< of start: the folder to make
  std::filesystem::path task;    ///< start
  std::filesystem::path source;  ///< submit
  std::string device;            ///< start: empty is auto; evaluate: empty is the run's own
  std::string search = "mcts";
  std::optional<std::uint64_t> seed;
  std::int64_t parent = 1;
  std::string action, reason, finding, by;
  std::vector<std::string> flags;
  bool defer = false;
  bool pending = false;  ///< evaluate: what it does anyway, said aloud
  bool all = false;
  std::vector<std::int64_t> nodes;   ///< evaluate
  std::optional<std::int64_t> node;  ///< next, diagnose, note
  std::string text;                  ///< note: what was learnt; memory: the query
  std::string kind = "fact";
  std::size_t most = 20;
  bool json = false;
};

struct ClockOptions {
  std::string device = "auto";
  std::uint32_t repeats = 5;
  bool json = false;
};

struct PlainOptions {  ///< doctor
  bool json = false;
};

struct ToolsOptions {
  std::string id;               ///< show: which tool; empty: list all
  std::filesystem::path rules;  ///< the user's, beside the built-in ones
  bool json = false;
};

struct SelftestOptions {
  std::string device = "auto";
  std::string only;  ///< shell pattern of fixture names; empty: all
  bool quick = false;
  std::filesystem::path fixtures;  ///< folder of the suite; empty: the one that came with us
  unsigned jobs = 0;               ///< compilations at once; 0: one per processor
  bool json = false;
};

[[nodiscard]] int Optimize(const OptimizeOptions& options);
[[nodiscard]] int Agent(const AgentOptions& options);
[[nodiscard]] int Mcp();
[[nodiscard]] int Evaluate(const CandidateOptions& options);
[[nodiscard]] int ShowProfile(const DiagnoseOptions& options);
[[nodiscard]] int ShowDiagnosis(const DiagnoseOptions& options);
[[nodiscard]] int Emulate(const EmulateOptions& options);
[[nodiscard]] int Selftest(const SelftestOptions& options);
[[nodiscard]] int StudyTheClock(const ClockOptions& options);
[[nodiscard]] int ShowTools(const ToolsOptions& options);
[[nodiscard]] int Doctor(const PlainOptions& options);

}  // namespace kernelpro::app
