// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <string_view>

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

void AddModel(CLI::App* c, ModelOptions& o) {
  const char* const group = "Proposer llm";
  const auto add = [&](const char* name, auto& value, const char* what) {
    return c->add_option(name, value, what)->group(group);
  };
  add("--model", o.model,
      "openai:NAME (any server that speaks OpenAI's chat completions) | anthropic:NAME");
  add("--base-url", o.base_url,
      "The server, e.g. http://127.0.0.1:8080/v1 (default: the provider's)");
  add("--key-file", o.key_file,
      "File with the key, readable by you alone (default: $OPENAI_API_KEY, $ANTHROPIC_API_KEY)");
  add("--max-cost", o.max_cost,
      "Dollars that the run may spend, all sessions together; the last request may pass it")
      ->check(CLI::Range(0.0, 1e6));
  add("--max-tokens", o.max_tokens, "Tokens that the run may spend, in and out together");
  // Messages ask for IN,OUT; without the delimiter the next option would be taken for OUT.
  add("--price", o.price, "Dollars per million tokens, where the table has no price")
      ->delimiter(',')
      ->type_name("IN,OUT");
  add("--prices", o.prices, "A table of prices of your own (docs/models.md)");
  c->add_flag("--dry-run", o.dry_run, "Print the prompts, their tokens and price; ask nobody")
      ->group(group);
  add("--feedback", o.feedback, "What the model is told: tools | raw | none | placebo")
      ->check(CLI::IsMember({"tools", "raw", "none", "placebo"}))
      ->capture_default_str();
  add("--orchestration", o.orchestration,
      "proactive: all tools speak | reactive: the model asks for them")
      ->check(CLI::IsMember({"proactive", "reactive"}))
      ->capture_default_str();
  add("--effort", o.effort, "minimal | low | medium | high: how long the model reasons")
      ->check(CLI::IsMember({"minimal", "low", "medium", "high"}));
  add("--temperature", o.temperature, "Of the kernels' writer")->capture_default_str();
  c->add_flag("--no-temperature", o.no_temperature, "The model takes none")->group(group);
  add("--seed-temperatures", o.seed_temperatures,
      "The first kernels are written from the task alone, one at each of these")
      ->delimiter(',')
      ->capture_default_str();
  add("--seed-rounds", o.seed_rounds, "How many times over; 0: none")->capture_default_str();
  add("--answer-tokens", o.answer_tokens, "Of one answer, at most")
      ->check(CLI::Range(256U, 1000000U))
      ->capture_default_str();
  add("--repairs", o.repairs, "How many wrong kernels in a row are mended")
      ->check(CLI::Range(0U, 20U))
      ->capture_default_str();
  c->add_flag("--no-research", o.no_research, "No tools before a kernel is written")->group(group);
  c->add_flag("--no-stream", o.no_stream, "Ask for whole answers")->group(group);
  add("--code", o.code, "Folder with sources that the model may search");
  add("--prompts", o.prompts, "Folder with prompts of your own (prompts/README.md)");
}

void AddOptimize(CLI::App& app, OptimizeOptions& o) {
  CLI::App* const c = Add(app, "optimize", "Search for a faster kernel for a task",
                          "kernelpro optimize examples/tasks/row_softmax --evaluations 40");
  c->add_option("TASK", o.task, "Folder with task.toml, reference.cc and seed.cu");
  c->add_option("--device", o.device, kDevice)->capture_default_str();
  c->add_option(
       "--proposer", o.proposer,
       "Who proposes kernels: playbook | llm (with --model) | replay:RUN (a recorded run again)")
      ->capture_default_str();
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
  AddModel(c, o.model);
  AddJson(c, &o.json);
}

CLI::App* AddCandidate(CLI::App& app, const char* name, const char* what, const char* example,
                       CandidateOptions& o, const char* task) {
  CLI::App* const c = Add(app, name, what, example);
  c->add_option("TASK", o.task, task);
  c->add_option("FILE", o.source, "The candidate's CUDA source (default: the task's seed.cu)");
  c->add_option("--flag", o.flags, "Extra compiler flag; may be repeated");
  c->add_option("--device", o.device, kDevice)->capture_default_str();
  c->add_flag("--no-filter", o.no_filter,
              "Real GPU: do not run the candidate on the emulator first");
  AddJson(c, &o.json);
  return c;
}

/// profile and diagnose.
CLI::App* AddDiagnose(CLI::App& app, const char* name, const char* what, const char* example,
                      DiagnoseOptions& o) {
  CLI::App* const c =
      AddCandidate(app, name, what, example, o.candidate,
                   "Folder with task.toml and reference.cc; or a CUDA program with a main: its .cu "
                   "file, or on a real GPU the program itself");
  c->add_option("--kernel", o.kernel,
                "Of a program: the kernel, as written or mangled (default: the one that takes most "
                "time)");
  c->add_option("--arg", o.arguments, "Of a program: an argument; may be repeated");
  c->add_flag("--no-counters", o.no_counters,
              "Of a program on a real GPU: leave the hardware counters alone");
  c->add_flag(
      "--no-samples", o.no_samples,
      "Of a program on a real GPU: do not sample which instructions warps wait at (faster)");
  c->add_option("--energy", o.energy_seconds,
                "Of a candidate on a real GPU: measure the energy of a call over so many seconds "
                "(5 or more)")
      ->check(CLI::Range(5.0, 600.0));
  c->add_option("--ncu", o.files.ncu, "A file of Nsight Compute: CSV, text or .ncu-rep");
  c->add_option("--nsys", o.files.nsys, "A file of Nsight Systems: stats as text or CSV, SQLite");
  c->add_option("--sass", o.files.sass,
                "Machine code: cuobjdump -sass, nvdisasm (text or JSON), a cubin or a program");
  c->add_option("--ptxas", o.files.ptxas, "A build log with what ptxas said (-Xptxas -v)");
  c->add_option("--activity", o.files.activity, "A trace of kernelpro's activity library");
  c->add_option("--sanitizer", o.files.sanitizer, "A log of compute-sanitizer: is it right at all");
  c->add_option("--profile", o.files.profile, "A profile that --save wrote");
  c->add_option("--gpu", o.gpu,
                "Whose figures are used for files: auto, h200, h100, a100, l4, rtx4090")
      ->capture_default_str();
  c->add_option("--save", o.save, "Write the profile to this file as JSON");
  return c;
}

void AddExperts(CLI::App* c, DiagnoseOptions& o) {
  c->add_option("--before", o.before,
                "Compare: the profile before a change (any file of the above)");
  c->add_option("--after", o.after, "Compare: the profile after it");
  c->add_option("--rules", o.rules, "Folder with rules of your own (docs/plugins.md)");
  c->add_option("--tool", o.tools,
                "A program of your own: gets the profile as JSON, answers with findings; may be "
                "repeated");
  c->add_option("--tool-seconds", o.tool_seconds, "How long such a program may take")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  c->add_option("--format", o.format, "text | feedback (for a model) | markdown")
      ->check(CLI::IsMember({"text", "feedback", "markdown"}))
      ->capture_default_str();
}

void AddTools(CLI::App& app, ToolsOptions& o) {
  CLI::App* const c = Add(app, "tools", "List the expert tools, or show one",
                          "kernelpro tools show mem.coalesce_ld");
  AddJson(c, &o.json);
  c->add_option("--rules", o.rules, "Folder with rules of your own");
  c->add_subcommand("list", "List the tools (the default)")->fallthrough();
  CLI::App* const show = c->add_subcommand("show", "What a tool looks for, and its formulas");
  show->add_option("ID", o.id, "mem.coalesce_ld, ...")->required();
  show->fallthrough();
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

CLI::App* AddVerb(CLI::App* agent, AgentOptions& o, AgentOptions::Verb verb, const char* name,
                  const char* what, const char* example) {
  CLI::App* const c = Add(*agent, name, what, example);
  c->callback([&o, verb] { o.verb = verb; });
  AddJson(c, &o.json);
  return c;
}

void AddAgent(CLI::App& app, AgentOptions& o) {
  using Verb = AgentOptions::Verb;
  CLI::App* const agent = Add(
      app, "agent",
      "Drive a search from outside: you write the kernels, KernelPro judges, explains and "
      "remembers",
      "kernelpro agent start examples/tasks/matmul --run my_run\n  kernelpro agent next my_run\n"
      "  kernelpro agent submit my_run k.cu --parent 1 --action tile_64x64");
  agent->require_subcommand(1);
  CLI::App* c = AddVerb(agent, o, Verb::kStart, "start", "Make a run and judge the seed",
                        "kernelpro agent start examples/tasks/matmul --run my_run");
  c->add_option("TASK", o.task, "Folder with task.toml, reference.cc and seed.cu")->required();
  c->add_option("--run", o.run, "Run folder to create (default: kernelpro-runs/TASK-TIME)");
  c->add_option(
      "--device", o.device,
      "auto | emulator[:GPU] | cuda[:N]; where there is no GPU, kernels of a cuda run wait");
  c->add_option("--search", o.search, "mcts | greedy | beam | random")->capture_default_str();
  c->add_option("--seed", o.seed, "Same seed, same inputs and choices");

  const auto run = [&o](CLI::App* command) {
    command->add_option("RUN", o.run, "Run folder")->required();
    return command;
  };
  c = run(AddVerb(agent, o, Verb::kNext, "next",
                  "The kernel to go on from, what the experts say about it, what was learnt",
                  "kernelpro agent next my_run"));
  c->add_option("--node", o.node,
                "Look at this node instead of the one that the search would take");

  c = run(AddVerb(agent, o, Verb::kSubmit, "submit", "Add a kernel to the run and judge it",
                  "kernelpro agent submit my_run k.cu --parent 1 --action tile_64x64 --finding "
                  "mem.l1_reuse --reason 'each element was read 16 times'"));
  c->add_option("FILE", o.source, "The whole kernel")->required();
  c->add_option("--parent", o.parent, "Node that it was made from")->required();
  c->add_option("--action", o.action, "Short id of what was done")->required();
  c->add_option("--reason", o.reason, "One sentence: why it should help");
  c->add_option("--finding", o.finding, "Id of the finding that it answers");
  c->add_option("--by", o.by, "Who wrote it, e.g. the model's name");
  c->add_option("--flag", o.flags, "Compiler flag of the allowed list; may be repeated");
  c->add_flag("--defer", o.defer, "Do not judge it now");

  c = run(AddVerb(agent, o, Verb::kEvaluate, "evaluate",
                  "Judge kernels that wait; with another device: judge the run's kernels there too",
                  "kernelpro agent evaluate my_run --pending"));
  CLI::Option* const pending =
      c->add_flag("--pending", o.pending, "Kernels without a result on that device (the default)");
  c->add_flag("--all", o.all, "On another device: also those that were judged there before")
      ->excludes(pending);
  c->add_option("--node", o.nodes, "Only this node; may be repeated")->excludes(pending);
  c->add_option("--device", o.device, kDevice);

  c = run(AddVerb(agent, o, Verb::kDiagnose, "diagnose", "All that the experts say about a node",
                  "kernelpro agent diagnose my_run --node 4"));
  c->add_option("--node", o.node, "Which node (default: the seed)");

  c = run(AddVerb(agent, o, Verb::kMemory, "memory", "What the run has learnt",
                  "kernelpro agent memory my_run 'bank conflicts'"));
  c->add_option("QUERY", o.text, "Words to look for (default: everything, youngest first)");
  c->add_option("--most", o.most, "Lessons to show at most")->capture_default_str();

  c = run(AddVerb(agent, o, Verb::kNote, "note", "Add a lesson to the run's memory",
                  "kernelpro agent note my_run 'cp.async needs 16-byte alignment' --kind fact"));
  c->add_option("TEXT", o.text, "One or two sentences")->required();
  c->add_option("--kind", o.kind, "error | dead_end | win | fact")
      ->check(CLI::IsMember({"error", "dead_end", "win", "fact"}))
      ->capture_default_str();
  c->add_option("--node", o.node, "Node that taught it");

  run(AddVerb(agent, o, Verb::kStatus, "status", "The tree so far",
              "kernelpro agent status my_run"));
  run(AddVerb(agent, o, Verb::kReport, "report", "The result so far, and the best kernel as a file",
              "kernelpro agent report my_run"));
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

/// True, after saying so, when `word` is no command of `app`: CLI11 would say that one is missing.
bool IsUnknown(const CLI::App& app, const char* shown, const char* word) {
  const auto is_named = [&](const CLI::App* command) { return command->get_name() == word; };
  if (word == nullptr || word[0] == '-' || !app.get_subcommands(is_named).empty()) {
    return false;
  }
  std::fprintf(stderr, "kernelpro: there is no command '%s'; see %s --help\n", word, shown);
  return true;
}

int Main(int argc, char** argv) {
  CLI::App app("KernelPro makes CUDA kernels fast the way an expert does.", "kernelpro");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("kernelpro ") + KP_VERSION);
  app.footer("kernelpro COMMAND --help shows the options and an example of a command.");
  OptimizeOptions optimize;
  CandidateOptions evaluate;
  DiagnoseOptions profile;
  DiagnoseOptions diagnose;
  EmulateOptions emulate;
  AgentOptions agent;
  SelftestOptions selftest;
  ClockOptions clock;
  ToolsOptions tools;
  PlainOptions doctor;
  AddOptimize(app, optimize);
  AddCandidate(app, "evaluate", "Check and time one candidate",
               "kernelpro evaluate examples/tasks/matmul my_matmul.cu --json", evaluate,
               "Folder with task.toml and reference.cc")
      ->add_flag("--sanitize", evaluate.sanitize,
                 "Real GPU: also run it under compute-sanitizer's memcheck, racecheck, initcheck "
                 "and synccheck, as optimize does with its winner");
  AddDiagnose(
      app, "profile",
      "Show the metrics of a candidate, of a CUDA program, or what a reader understood of a "
      "file",
      "kernelpro profile --ncu report.csv --json", profile);
  AddExperts(AddDiagnose(app, "diagnose",
                         "Say what the experts see in a candidate, in a CUDA program, or in files",
                         "kernelpro diagnose --ncu report.csv --ptxas build.log", diagnose),
             diagnose);
  AddAgent(app, agent);
  Add(app, "mcp",
      "Serve the agent commands as tools of the Model Context Protocol, on standard input and "
      "output",
      "claude mcp add kernelpro -- kernelpro mcp");
  AddEmulate(app, emulate);
  AddSelftest(app, selftest);
  AddClock(app, clock);
  AddTools(app, tools);
  AddJson(Add(app, "doctor", "Check what this machine has and lacks", "kernelpro doctor"),
          &doctor.json);
  if (argc > 1 && (IsUnknown(app, "kernelpro", argv[1]) ||
                   (std::string_view(argv[1]) == "agent" &&
                    IsUnknown(*app.get_subcommand("agent"), "kernelpro agent", argv[2])))) {
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const std::string command = app.get_subcommands().front()->get_name();
  if (!optimize.model.model.empty() && optimize.proposer == "playbook") {
    optimize.proposer = "llm";  // Who names a model wants it asked.
  }
  const std::map<std::string, std::function<int()>> commands = {
      {"optimize", [&] { return Optimize(optimize); }},
      {"agent", [&] { return Agent(agent); }},
      {"mcp", [] { return Mcp(); }},
      {"evaluate", [&] { return Evaluate(evaluate); }},
      {"profile", [&] { return ShowProfile(profile); }},
      {"diagnose", [&] { return ShowDiagnosis(diagnose); }},
      {"clock", [&] { return StudyTheClock(clock); }},
      {"emulate", [&] { return Emulate(emulate); }},
      {"selftest", [&] { return Selftest(selftest); }},
      {"tools", [&] { return ShowTools(tools); }},
      {"doctor", [&] { return Doctor(doctor); }}};
  return commands.at(command)();
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
