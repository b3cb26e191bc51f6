// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "propose/proposer.h"
#include "store/run_store.h"

/// What a run has learnt. Part of it is written down by proposers and agents (append-only), the
/// rest follows from the nodes.
namespace kernelpro::search {

/// One lesson for each node with a result (a win, a dead end, an error), then what was written
/// down; each in order of age, no text twice.
[[nodiscard]] std::vector<Lesson> Remember(const std::vector<store::NodeRecord>& nodes,
                                           const std::vector<store::LessonRecord>& written);

/// The lessons that hold most words of the query (case ignored), best first, at most `most`; an
/// empty query matches all, youngest first.
[[nodiscard]] std::vector<Lesson> SearchMemory(const std::vector<Lesson>& lessons,
                                               std::string_view query, std::size_t most);

}  // namespace kernelpro::search
