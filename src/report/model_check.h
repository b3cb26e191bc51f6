// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "store/run_store.h"

/// How well the emulator's model foresaw what the GPU then measured, over the nodes of one run.
namespace kernelpro::report {

struct ModelCheck {
  struct Node {
    store::NodeId id = 0;
    std::string action;
    double modelled_us = 0, measured_us = 0;
  };

  std::vector<Node> nodes;  ///< ok, with both times; in order of id
  double spearman = 0;  ///< rank correlation (ties get their mean rank); 0 for fewer than 3 nodes
};

/// Nodes without both times are left out.
[[nodiscard]] ModelCheck CheckModel(const std::vector<store::NodeRecord>& nodes);

/// Rank correlation of two lists of the same length; 0 when it is not defined.
[[nodiscard]] double Spearman(const std::vector<double>& a, const std::vector<double>& b);

/// One line, and one for each of the three nodes that the model was furthest off; empty without
/// nodes.
[[nodiscard]] std::string ModelCheckText(const ModelCheck& check);
/// {spearman, nodes: [{node, action, modelled_us, measured_us}]}
[[nodiscard]] nlohmann::ordered_json ModelCheckJson(const ModelCheck& check);

}  // namespace kernelpro::report
