// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "propose/llm/llm_proposer.h"
#include "search/workbench.h"

namespace kernelpro::search {

/// What a researching model may try: the disassembler where there is one, and the emulator.
/// Everything it is given must outlive it.
class EmulatorWorkshop final : public Workshop {
 public:
  /// `emulator` judges on the emulator; `disassembler` may be empty.
  EmulatorWorkshop(const Task& task, Toolchain& toolchain, Device& device, Workbench emulator,
                   std::filesystem::path disassembler)
      : task_(task),
        toolchain_(toolchain),
        device_(device),
        emulator_(std::move(emulator)),
        disassembler_(std::move(disassembler)) {}

  /// The hot loop of each kernel, at most 160 instructions each. kUnavailable without a
  /// disassembler.
  [[nodiscard]] Result<std::string> SassLoop(const Candidate& candidate,
                                             const std::stop_token& stop) override;
  /// Verdict, modelled time and feedback.
  [[nodiscard]] Result<std::string> Experiment(const Candidate& candidate,
                                               const std::stop_token& stop) override;

 private:
  const Task& task_;
  Toolchain& toolchain_;
  Device& device_;
  Workbench emulator_;
  std::filesystem::path disassembler_;
};

}  // namespace kernelpro::search
