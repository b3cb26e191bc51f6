// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernelpro/profile.h"

namespace kernelpro {

/// What several sources say of the same kernels, as one Profile: counters, disassembly, compiler
/// log, trace, emulation. Kernels keep the order of the first source that has them.
///
/// Two entries are one kernel when their mangled names are equal; else when their demangled names
/// with template arguments are; else when the names without arguments are, at least one side's
/// arguments are unknown, and neither source has another kernel of that name; else when each of two
/// sources has a single kernel (then `notes` says so). Twins such as f<4> and f<8> are never
/// joined. An entry that joins nothing stays an entry of its own.
///
/// A figure that is there is replaced only by one that was obtained in a better way: measured
/// before counted before modelled. What one source lists as missing and another has is not missing.
/// The device is a real GPU's name where any source knows one.
[[nodiscard]] Profile MergeEvidence(std::vector<Profile> sources);

}  // namespace kernelpro
