// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "propose/playbook/edits.h"
#include "propose/playbook/source_model.h"

namespace kernelpro::playbook {

/// Multiplies the grid's x component of one launch by `factor` (source text).
void ScaleGridX(const SourceModel& model, const Node& launch, std::string_view factor,
                Edits& edits);

/// Gives one launch a new grid (which = 0) or block (1). A dim3 variable that only this launch uses
/// gets the new components where it is declared; otherwise the expression goes into the launch.
void ReplaceShape(const SourceModel& model, const Node& launch, std::size_t which,
                  std::string_view components, Edits& edits);

/// The text of the launch argument for a parameter; empty when there is none.
[[nodiscard]] std::string ArgumentFor(const SourceModel& model, const Node& kernel,
                                      const Node& launch, const Node& parameter);

/// An expression of the kernel, written for the place of the launch: parameters become arguments.
/// Empty when it uses anything else that the kernel declares.
[[nodiscard]] std::string HostExpression(const SourceModel& model, const Node& kernel,
                                         const Node& launch, const Node& expression);

/// Where a declaration can be put in front of a function at file level: above its comment.
[[nodiscard]] std::uint32_t BeforeFunction(const SourceModel& model, const Node& function);

/// Two pointer arguments of the launch are the same expression.
[[nodiscard]] bool PassesPointerTwice(const SourceModel& model, const Node& launch);

}  // namespace kernelpro::playbook
