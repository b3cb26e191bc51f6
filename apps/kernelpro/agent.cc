// SPDX-License-Identifier: Apache-2.0
// agent: the search from outside. The caller writes the kernels; tree, referee and memory are ours.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "agent_desk.h"
#include "commands.h"
#include "setup.h"

namespace kernelpro::app {
namespace {

Result<search::Submission> ReadSubmission(const AgentOptions& options) {
  search::Submission s;
  s.parent = options.parent;
  s.action = options.action;
  s.reason = options.reason;
  s.finding = options.finding;
  s.origin = options.by;
  s.candidate.flags = options.flags;
  KP_ASSIGN_OR_RETURN(s.candidate.source, ReadSource(options.source));
  return s;
}

void ShowProgress(std::size_t done, std::size_t total, const std::string& what) {
  if (::isatty(STDERR_FILENO) != 0) {
    fmt::print(stderr, "\r\x1b[K{}",
               what.empty() ? "" : fmt::format("{}/{}  {}", done, total, what));
    std::fflush(stderr);
  }
}

Result<report::AgentAnswer> Do(const AgentOptions& o, bool* ok, const std::stop_token& stop) {
  AgentDesk desk;
  switch (o.verb) {
    case AgentOptions::Verb::kStart:
      return desk.Start({o.task, o.run, o.device.empty() ? "auto" : o.device, o.search, o.seed},
                        stop);
    case AgentOptions::Verb::kNext:
      return desk.Next(o.run, o.node);
    case AgentOptions::Verb::kSubmit: {
      KP_ASSIGN_OR_RETURN(const search::Submission submission, ReadSubmission(o));
      return desk.Submit(o.run, submission, o.defer, ok, stop);
    }
    case AgentOptions::Verb::kEvaluate:
      return desk.Evaluate(o.run, {o.device, o.all, o.nodes}, ShowProgress, stop);
    case AgentOptions::Verb::kDiagnose:
      return desk.Diagnose(o.run, o.node.value_or(store::kRoot));
    case AgentOptions::Verb::kMemory:
      return desk.Memory(o.run, o.text, o.most);
    case AgentOptions::Verb::kNote:
      return desk.Note(o.run, {ParseLessonKind(o.kind), o.text, o.node.value_or(0)});
    case AgentOptions::Verb::kStatus:
      return desk.Status(o.run);
    case AgentOptions::Verb::kReport:
      return desk.Report(o.run);
  }
  return Fail(ErrorCode::kInternal, "an agent command without a verb");
}

}  // namespace

int Agent(const AgentOptions& options) {
  const Interrupt interrupt;
  bool ok = true;
  Result<report::AgentAnswer> answer = Do(options, &ok, interrupt.token());
  if (!answer) {
    return Complain(answer.error(), options.json);
  }
  fmt::print("{}", options.json ? answer->json + '\n' : answer->text);
  return ok ? 0 : 1;
}

}  // namespace kernelpro::app
