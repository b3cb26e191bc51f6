// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernelpro/tool.h"

/// Every built-in tool, in the order in which equal findings rank. To add a tool: one file in this
/// folder that defines its Make function, and one line here.
#define KP_BUILT_IN_TOOLS(TOOL) \
  TOOL(MakeMemCoalesceLd)       \
  TOOL(MakeMemCoalesceSt)       \
  TOOL(MakeCmpFp64)             \
  TOOL(MakeLatBarrier)          \
  TOOL(MakeSmemBank)            \
  TOOL(MakeMemSpill)            \
  TOOL(MakeMemLocalArray)       \
  TOOL(MakeMemAtomics)          \
  TOOL(MakeMemL1Reuse)          \
  TOOL(MakeSmemPressure)        \
  TOOL(MakeParSmallGrid)        \
  TOOL(MakeParCtaRate)          \
  TOOL(MakeParTail)             \
  TOOL(MakeParBlockSize)        \
  TOOL(MakeMemWidth)            \
  TOOL(MakeMemInflight)         \
  TOOL(MakeMemExcess)           \
  TOOL(MakeMemDramRoof)         \
  TOOL(MakeLatLongScoreboard)   \
  TOOL(MakeLatIlp)              \
  TOOL(MakeOccRegisters)        \
  TOOL(MakeOccShared)           \
  TOOL(MakeOccWarps)            \
  TOOL(MakeOccCtas)             \
  TOOL(MakeCmpSfu)              \
  TOOL(MakeCmpInt)              \
  TOOL(MakeCmpDivergence)       \
  TOOL(MakeCmpNonfused)

namespace kernelpro::diagnose {

#define KP_DECLARE_TOOL(make) [[nodiscard]] std::unique_ptr<Tool> make();
KP_BUILT_IN_TOOLS(KP_DECLARE_TOOL)
#undef KP_DECLARE_TOOL

}  // namespace kernelpro::diagnose
