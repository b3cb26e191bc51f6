// SPDX-License-Identifier: Apache-2.0
#include "evaluate/binary_examination.h"

#include <utility>

#include "base/file.h"
#include "evaluate/policy_check.h"
#include "evaluate/precision.h"
#include "toolchain/binary_facts.h"
#include "toolchain/disassemble.h"

namespace kernelpro {
namespace {

constexpr std::uint64_t kLargestPtx = std::uint64_t{1} << 30U;

/// Empty when there is no disassembler or nothing to disassemble.
Result<std::string> SassOf(const Build& build, const std::filesystem::path& disassembler,
                           const std::stop_token& stop, std::vector<std::string>* notes) {
  if (disassembler.empty() || build.cubin.empty()) {
    return std::string();
  }
  auto sass = Disassemble(build.cubin, disassembler, stop);
  if (!sass && sass.error().code != ErrorCode::kCancelled) {
    notes->push_back("the machine code was not looked at: " + sass.error().message);
    return std::string();
  }
  return sass;
}

}  // namespace

Result<BinaryFindings> ExamineBinary(const Build& build, const Task& task,
                                     const std::filesystem::path& disassembler,
                                     const std::stop_token& stop) {
  BinaryFindings findings;
  const auto condemn = [&findings](std::string why) {
    if (!why.empty() && !findings.condemned) {
      findings.condemned = Condemnation{Verdict::kPolicyViolation, std::move(why)};
    }
  };
  if (build.library.empty()) {
    findings.notes.emplace_back("the library was not looked at: the build names none");
  } else if (const auto facts = ReadBinaryFacts(build.library); facts) {
    condemn(WhyForbiddenBinary(*facts, task.policy));
  } else if (facts.error().code == ErrorCode::kParse) {
    condemn("its library cannot be examined: " + facts.error().message);
  } else {
    return facts.error();
  }
  if (build.ptx.empty()) {
    findings.notes.emplace_back("the precision was not looked at: the build names no PTX");
    return findings;
  }
  KP_ASSIGN_OR_RETURN(const std::string ptx, ReadFile(build.ptx, kLargestPtx));
  KP_ASSIGN_OR_RETURN(const std::string sass, SassOf(build, disassembler, stop, &findings.notes));
  findings.precision = Classify(ptx, sass, task);
  condemn(WhyTooNarrow(findings.precision, task.policy));
  return findings;
}

}  // namespace kernelpro
