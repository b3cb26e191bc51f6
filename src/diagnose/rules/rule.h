// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernelpro/tool.h"

namespace kernelpro::diagnose {

/// A tool that is data: one TOML file.
///
///   id       = "lat.throttle"               # group.name; a user's rule may replace a built-in one
///   title    = "Memory instruction queues are full"
///   core     = true                         # optional
///   scope    = "program"                    # optional: judges the whole run, once; else a kernel
///   source   = "Nsight Compute's CPIStall rule"   # of the thresholds
///   looks_for = "warps wait because the load/store queue is full"
///   classes  = ["L1_SMEM_BOUND"]            # that call for it; empty: always
///   needs    = ["metric", "one|other"]      # without one of them the rule is reported as not run
///   where    = "loop"                       # optional: loop | line:METRIC | stall:REASON
///   when     = "FORMULA"                    # optional; 0 or missing: silent
///   severity = "FORMULA"                    # 0..1; missing or 0: silent
///   bound    = "FORMULA"                    # fraction of the kernel's time; missing: 0
///   confidence = 0.6
///   seen, why, check, avoid = "text with {name:form}";  do = ["text", ...]
///   not_when, fires, silent = "text"        # documentation
///   [let]                                   # names for formulas and texts, in order
///   share = "stall.lg_throttle + stall.mio_throttle"
///   [[case]]                                # the first whose `when` holds overrides what it
///   names: when = "..."                            # severity bound confidence seen why do check
///   avoid
///
/// Formulas: formula.h; names: scope.h; texts: template.h. Words in texts: {kernel}, {where}, and
/// with where = "stall:...": {consumer}, {producer}, {producer_where}.
///
/// kParse or kInvalidArgument with file, line and what is allowed there.
[[nodiscard]] Result<std::unique_ptr<Tool>> ParseRule(std::string_view toml,
                                                      std::string_view shown_path);

}  // namespace kernelpro::diagnose
