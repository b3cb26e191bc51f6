// SPDX-License-Identifier: Apache-2.0
#include "search/emulator_workshop.h"

#include <fmt/format.h>

#include "sass/control_flow.h"
#include "sass/listing.h"
#include "sass/statistics.h"
#include "toolchain/disassemble.h"

namespace kernelpro::search {
namespace {

constexpr std::size_t kMostInstructions = 160;

std::string LoopText(const sass::Function& function) {
  const sass::Statistics statistics = sass::Analyze(function);
  if (!statistics.hot_loop) {
    return fmt::format("{}: no loop\n", function.name);
  }
  std::string text = fmt::format("{}: hot loop, bytes {:#x} to {:#x}\n", function.name,
                                 statistics.hot_loop->first, statistics.hot_loop->last);
  std::size_t shown = 0;
  for (const sass::Instruction& instruction : function.instructions) {
    if (instruction.address < statistics.hot_loop->first ||
        instruction.address > statistics.hot_loop->last) {
      continue;
    }
    if (++shown > kMostInstructions) {
      return text + "  (longer; cut here)\n";
    }
    text += fmt::format("  {:5x}  {:<56}{}\n", instruction.address, instruction.Text(),
                        instruction.line > 0 ? fmt::format(" line {}", instruction.line) : "");
  }
  return text;
}

}  // namespace

Result<std::string> EmulatorWorkshop::SassLoop(const Candidate& candidate,
                                               const std::stop_token& stop) {
  if (disassembler_.empty()) {
    return Fail(ErrorCode::kUnavailable,
                "this machine has neither cuobjdump nor nvdisasm: there is no machine code to see");
  }
  KP_ASSIGN_OR_RETURN(const BuildOutcome build,
                      toolchain_.Compile(MakeBuildRequest(task_, candidate, device_.info()), stop));
  if (!build.build) {
    return Fail(ErrorCode::kInvalidArgument, "the candidate does not compile");
  }
  KP_ASSIGN_OR_RETURN(const std::string text, Disassemble(build.build->cubin, disassembler_, stop));
  KP_ASSIGN_OR_RETURN(const sass::Listing listing, sass::ParseListing(text, "disassembly"));
  std::string loops;
  for (const sass::Function& function : listing.functions) {
    loops += LoopText(function);
  }
  return loops;
}

Result<std::string> EmulatorWorkshop::Experiment(const Candidate& candidate,
                                                 const std::stop_token& stop) {
  KP_ASSIGN_OR_RETURN(const Assessment assessment, emulator_.Assess(candidate, stop));
  const Evaluation& e = assessment.evaluation;
  if (e.verdict != Verdict::kOk) {
    return fmt::format("{}: {}\n", Name(e.verdict), e.reason);
  }
  return fmt::format("ok, {:.4g} us modelled\n{}", e.time_us, assessment.feedback);
}

}  // namespace kernelpro::search
