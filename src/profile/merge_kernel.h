// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "kernelpro/profile.h"

namespace kernelpro {

/// Adds figures to those that are there. One that is there is replaced only by one that was
/// obtained in a better way: measured before counted before modelled.
void MergeMetrics(std::map<std::string, Metric>&& from, std::map<std::string, Metric>& into);

/// Adds what another source says of the same kernel, by the same precedence. Of lists (hot spots,
/// lines, opcodes) the first source's stands, its hot spots getting the places that the other
/// knows.
void MergeKernel(KernelProfile&& from, KernelProfile& into);

}  // namespace kernelpro
