// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>

#include "commands.h"

namespace kernelpro::app {
namespace {

constexpr const char* kDevice =
    "auto | emulator[:GPU] | cuda[:N]; auto is the first GPU, or the emulator where there is none";

void AddJson(CLI::App* command, bool* json) {
  command->add_flag("--json", *json, "Print one JSON object instead of text");
}

CLI::App* Add(CLI::App& app, const char* name, const char* what, const char* example) {
  CLI::App* const command = app.add_subcommand(name, what);
  command->footer(std::string("Example:\n  ") + example +
                  "\n\nExit codes: 0 done, 1 the job failed honestly, 2 bad usage or input, 3 the "
                  "machine lacks something.");
  return command;
}

void AddOptimize(CLI::App& app, OptimizeOptions& o) {
  CLI::App* const c = Add(app, "optimize", "Search for a faster kernel for a task",
                          "kernelpro optimize examples/tasks/row_softmax --evaluations 40");
  c->add_option("TASK", o.task, "Folder with task.toml, reference.cc and seed.cu");
  c->add_option("--device", o.device, kDevice)->capture_default_str();
  c->add_option("--proposer", o.proposer, "Who proposes kernels: playbook")->capture_default_str();
  c->add_option("--search", o.search, "mcts | greedy | beam | random")->capture_default_str();
  c->add_option("--evaluations", o.evaluations, "Candidates to evaluate, the seed included")
      ->check(CLI::Range(1U, 1000000U))
      ->capture_default_str();
  c->add_option("--minutes", o.minutes, "Time limit of this invocation")
      ->check(CLI::Range(0.01, 100000.0))
      ->capture_default_str();
  c->add_option("--seed", o.seed,
                "Same seed, same run on the emulator. Without it inputs come from a secret seed");
  c->add_option("--run", o.run, "Run folder to create (default: kernelpro-runs/TASK-TIME)");
  c->add_option("--resume", o.resume, "Continue the run in this folder; needs no TASK");
  AddJson(c, &o.json);
}

CLI::App* AddCandidate(CLI::App& app, const char* name, const char* what, const char* example,
                       CandidateOptions& o, bool from_file) {
  CLI::App* const c = Add(app, name, what, example);
  c->add_option("TASK", o.task, "Folder with task.toml and reference.cc");
  c->add_option("FILE", o.source, "The candidate's CUDA source (default: the task's seed.cu)");
  c->add_option("--flag", o.flags, "Extra compiler flag; may be repeated");
  c->add_option("--device", o.device, kDevice)->capture_default_str();
  c->add_flag("--no-filter", o.no_filter,
              "Real GPU: do not run the candidate on the emulator first");
  if (from_file) {
    c->add_option("--ncu", o.ncu_csv, "Read this `ncu --csv` output instead of running anything");
    c->add_option("--gpu", o.gpu, "The GPU that the --ncu file was made on")->capture_default_str();
  }
  AddJson(c, &o.json);
  return c;
}

void AddEmulate(CLI::App& app, EmulateOptions& o) {
  CLI::App* const c = Add(app, "emulate", "Run one kernel on the emulator and count what it does",
                          "kernelpro emulate copy.cu --kernel copy --grid 4096 --block 256 --arg "
                          "buf:4194304:random --arg buf:4194304 --arg i32:1048576");
  c->add_option("FILE", o.source, "CUDA source (.cu) or PTX (.ptx)")->required();
  c->add_option("--kernel", o.kernel, "Kernel name, mangled or as written")->required();
  c->add_option("--grid", o.grid, "X[,Y[,Z]] blocks")->capture_default_str();
  c->add_option("--block", o.block, "X[,Y[,Z]] threads")->capture_default_str();
  c->add_option(
      "--arg", o.arguments,
      "One per parameter: buf:BYTES[:zero|random|iota], i32:N, u32:N, i64:N, u64:N, f32:X, "
      "f64:X");
  c->add_option("--shared", o.shared, "Dynamic shared memory in bytes")->capture_default_str();
  c->add_option("--gpu", o.gpu, "GPU whose figures are used")->capture_default_str();
  CLI::Option* const sample =
      c->add_flag("--sample", o.sample, "Execute a sample of the blocks (default for large grids)");
  c->add_flag("--full", o.full, "Execute every block")->excludes(sample);
  AddJson(c, &o.json);
}

void AddSelftest(CLI::App& app, SelftestOptions& o) {
  CLI::App* const c = Add(app, "selftest",
                          "Show that the referee cannot be fooled: hostile candidates and their "
                          "honest twins",
                          "kernelpro selftest --device emulator --only 'replay_*'");
  c->add_option("--device", o.device, kDevice)->capture_default_str();
  c->add_option("--only", o.only, "Only fixtures whose name matches this shell pattern");
  c->add_flag("--quick", o.quick, "Only the subset that every build runs");
  c->add_option("--fixtures", o.fixtures,
                "Folder that holds fixtures/ and tasks/ (default: the suite that came with this "
                "program)");
  c->add_option("--jobs", o.jobs, "Compilations at once (default: one per processor)")
      ->check(CLI::Range(1U, 256U));
  AddJson(c, &o.json);
}

void AddClock(CLI::App& app, ClockOptions& o) {
  CLI::App* const c = Add(app, "clock",
                          "Show how far times of this machine's GPU can be trusted: kernels whose "
                          "ratio is known, and two clocks side by side",
                          "kernelpro clock --repeats 20");
  c->add_option("--device", o.device, kDevice)->capture_default_str();
  c->add_option("--repeats", o.repeats, "Measurements of each ratio")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  AddJson(c, &o.json);
}

int Main(int argc, char** argv) {
  CLI::App app("KernelPro makes CUDA kernels fast the way an expert does.", "kernelpro");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("kernelpro ") + KP_VERSION);
  app.footer("kernelpro COMMAND --help shows the options and an example of a command.");
  OptimizeOptions optimize;
  CandidateOptions evaluate;
  CandidateOptions profile;
  CandidateOptions diagnose;
  EmulateOptions emulate;
  SelftestOptions selftest;
  ClockOptions clock;
  PlainOptions tools;
  PlainOptions doctor;
  AddOptimize(app, optimize);
  AddCandidate(app, "evaluate", "Check and time one candidate",
               "kernelpro evaluate examples/tasks/matmul my_matmul.cu --json", evaluate, false)
      ->add_flag("--sanitize", evaluate.sanitize,
                 "Real GPU: also run it under compute-sanitizer's memcheck, racecheck, initcheck "
                 "and synccheck, as optimize does with its winner");
  AddCandidate(app, "profile", "Show the metrics of a candidate, or of an ncu file",
               "kernelpro profile examples/tasks/transpose seed.cu", profile, true);
  AddCandidate(app, "diagnose", "Say what the experts see in a candidate, or in an ncu file",
               "kernelpro diagnose --ncu report.csv --gpu h200", diagnose, true);
  AddEmulate(app, emulate);
  AddSelftest(app, selftest);
  AddClock(app, clock);
  AddJson(Add(app, "tools", "List the expert tools", "kernelpro tools"), &tools.json);
  AddJson(Add(app, "doctor", "Check what this machine has and lacks", "kernelpro doctor"),
          &doctor.json);
  const auto is_named = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_named).empty()) {
    std::fprintf(stderr, "kernelpro: there is no command '%s'; see kernelpro --help\n", argv[1]);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const std::string command = app.get_subcommands().front()->get_name();
  if (command == "optimize") {
    return Optimize(optimize);
  }
  if (command == "evaluate") {
    return Evaluate(evaluate);
  }
  if (command == "profile") {
    return ShowProfile(profile);
  }
  if (command == "diagnose") {
    return ShowDiagnosis(diagnose);
  }
  if (command == "clock") {
    return StudyTheClock(clock);
  }
  if (command == "emulate") {
    return Emulate(emulate);
  }
  if (command == "selftest") {
    return Selftest(selftest);
  }
  return command == "tools" ? ListTools(tools) : Doctor(doctor);
}

}  // namespace
}  // namespace kernelpro::app

int main(int argc, char** argv) {
  try {
    return kernelpro::app::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernelpro: unexpected: %s\n", error.what());
    return 1;
  }
}
