// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "codesearch/code_index.h"
#include "propose/llm/toolbox.h"

namespace kernelpro::agents {

/// What tools keep while one kernel is worked on; must outlive them.
struct ResearchState {
  std::set<std::string> shown_findings;
  bool experimented = false;  ///< one experiment a kernel
};

/// The tools that have somebody to do the work. Those that tell of performance (get_findings,
/// get_sass_loop, run_experiment) are there with the experts' feedback only: in the other modes
/// they would tell what the mode keeps back.
[[nodiscard]] std::vector<AgentTool> ResearchTools(const Setting& setting, const Turn& turn,
                                                   Workshop* workshop,
                                                   const codesearch::CodeIndex* code,
                                                   ResearchState& state);

}  // namespace kernelpro::agents
